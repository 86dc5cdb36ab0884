//! The model: what is seen, and what a crash leaves.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod differential;
mod results;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::disk::{Disk, ROOT_INODE};
use super::inode::{Content, Ino, MOST_PENDING};
use crate::sim::net::Errno;
use crate::sim::rng::Rng;
use crate::simulated::files::{FileKind, OpenFlags};

const NOW: Duration = Duration::from_secs(1);
const WRITE: OpenFlags = OpenFlags {
    read: true,
    write: true,
    append: false,
    truncate: false,
    create: true,
    create_new: false,
    mode: 0o644,
};

/// A disk, and the calls of a test, which are to succeed.
struct Scene {
    disk: Disk,
    last: u64,
}

impl Scene {
    fn new() -> Self {
        Self { disk: Disk::new(NOW), last: 0 }
    }

    fn open(&mut self, path: &str) -> u64 {
        self.last += 1;
        self.disk.open(self.last, Path::new(path), WRITE, NOW).unwrap();
        self.last
    }

    fn write(&mut self, path: &str, bytes: &[u8]) {
        let file = self.open(path);
        self.disk.set_len(file, 0, NOW).unwrap();
        self.disk.write(file, bytes, None, NOW).unwrap();
        self.disk.close(file);
    }

    fn sync(&mut self, path: &str) {
        self.last += 1;
        let flags = OpenFlags { read: true, ..OpenFlags::default() };
        self.disk.open(self.last, Path::new(path), flags, NOW).unwrap();
        self.disk.sync(self.last, true).unwrap();
        self.disk.close(self.last);
    }

    fn rename(&mut self, from: &str, to: &str) {
        self.disk.rename(Path::new(from), Path::new(to), NOW).unwrap();
    }

    fn mkdir(&mut self, path: &str) {
        self.disk.create_dir(Path::new(path), 0o755, NOW).unwrap();
    }

    fn crash(&mut self, survives: bool) -> Vec<String> {
        self.disk.crash(4, &mut || survives, &mut |_| true)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        match &self.disk.inode(self.disk.walk(Path::new(path), true)?.found?).content {
            Content::File(file) => Ok(file.live.clone()),
            _ => Err(Errno::IsDirectory),
        }
    }
}

#[test]
fn an_entry_needs_a_sync_of_its_directory_and_content_one_of_its_file() {
    for (syncs_entry, syncs_content, left) in [
        (false, false, Err(Errno::NoEntry)),
        (false, true, Err(Errno::NoEntry)),
        (true, false, Ok(vec![])),
        (true, true, Ok(b"content".to_vec())),
    ] {
        let mut scene = Scene::new();
        scene.write("/a", b"content");
        if syncs_content {
            scene.sync("/a");
        }
        if syncs_entry {
            scene.sync("/");
        }
        assert_eq!(scene.read("/a").unwrap(), b"content");
        scene.crash(false);
        assert_eq!(scene.read("/a"), left, "{syncs_entry} {syncs_content}");
    }
}

#[test]
fn what_survives_is_what_was_seen() {
    let mut scene = Scene::new();
    scene.mkdir("/d");
    scene.write("/d/a", b"12345678");
    scene.write("/d/b", b"to be removed");
    scene.rename("/d/a", "/c");
    scene.disk.remove_file(Path::new("/d/b"), NOW).unwrap();
    let file = scene.open("/c");
    scene.disk.set_len(file, 5, NOW).unwrap();
    scene.disk.write(file, b"xy", Some(6), NOW).unwrap();
    assert_eq!(scene.crash(true), Vec::<String>::new());
    assert_eq!(scene.read("/c").unwrap(), b"12345\0xy");
    assert_eq!(scene.read("/d/a"), Err(Errno::NoEntry));
    assert_eq!(scene.read("/d/b"), Err(Errno::NoEntry));
    assert_eq!(scene.disk.read(file, &mut [0], None), Err(Errno::BadDescriptor), "a crash closes files");
}

/// Fails if a write is lost or kept as a whole, or torn elsewhere than at the end of a sector.
#[test]
fn a_write_is_torn_between_sectors() {
    let mut seen = BTreeMap::new();
    for seed in 0..200 {
        let mut scene = Scene::new();
        scene.write("/a", b"--");
        scene.sync("/");
        scene.sync("/a");
        let file = scene.open("/a");
        scene.disk.write(file, b"abcdefgh", Some(2), NOW).unwrap();
        let mut rng = Rng::new(seed);
        let lost = scene.disk.crash(4, &mut || rng.chance(0.5), &mut |_| true);
        let content = String::from_utf8(scene.read("/a").unwrap()).unwrap();
        seen.insert(content.replace('\0', "."), lost.join(""));
    }
    let (lost, torn) = ("changes of /a: 1 lost", "changes of /a: 1 torn");
    let expected = [
        ("--", lost),
        ("--ab", torn),
        ("--..cdef", torn),
        ("--......gh", torn),
        ("--abcdef", torn),
        ("--ab....gh", torn),
        ("--..cdefgh", torn),
        ("--abcdefgh", ""),
    ];
    assert_eq!(seen, expected.map(|(content, lost)| (content.to_owned(), lost.to_owned())).into());
}

/// Fails if a sync of one directory makes the entries of another durable, or one half of a rename.
#[test]
fn a_sync_of_a_directory_is_for_its_entries_and_whole_renames() {
    let begin = || {
        let mut scene = Scene::new();
        ["/from", "/to"].into_iter().for_each(|path| scene.mkdir(path));
        scene.sync("/");
        scene.write("/from/a", b"a");
        scene.sync("/from/a");
        scene
    };
    let mut scene = begin();
    scene.write("/to/b", b"b");
    scene.sync("/to");
    scene.crash(false);
    assert_eq!((scene.read("/from/a"), scene.read("/to/b")), (Err(Errno::NoEntry), Ok(vec![])));
    for synced in ["/from", "/to"] {
        let mut scene = begin();
        scene.rename("/from/a", "/to/a");
        scene.sync(synced);
        scene.crash(false);
        assert_eq!((scene.read("/from/a"), scene.read("/to/a")), (Err(Errno::NoEntry), Ok(b"a".to_vec())));
    }
}

#[test]
fn a_replacement_is_seen_as_a_whole() {
    for survivors in 0..8 {
        let mut scene = Scene::new();
        scene.write("/state", b"old");
        ["/", "/state"].into_iter().for_each(|path| scene.sync(path));
        scene.write("/new", b"new");
        scene.sync("/new");
        scene.rename("/new", "/state");
        let mut left = survivors;
        let mut survives = || {
            left -= 1;
            left >= 0
        };
        scene.disk.crash(1, &mut survives, &mut |_| true);
        // The first change is the creation, the second one the rename.
        let state: &[u8] = if survivors < 2 { b"old" } else { b"new" };
        assert_eq!(scene.read("/state").unwrap(), state);
        assert_eq!(scene.read("/new").is_ok(), survivors == 1);
    }
}

/// Fails if an entry or a sector is a fault of its own, if a fault that is left out loses something, or if
/// other numbers are drawn then.
#[test]
fn a_loss_is_one_fault_and_draws_the_same_if_it_is_left_out() {
    let crash = |seed, leaves_out: &str| {
        let mut scene = Scene::new();
        scene.write("/old", b"old");
        ["/", "/old"].into_iter().for_each(|path| scene.sync(path));
        scene.write("/old", b"12345678");
        scene.write("/new", b"12345678");
        scene.rename("/new", "/old");
        scene.write("/other", b"12345678");
        let (mut rng, mut asked) = (Rng::new(seed), Vec::new());
        let mut may_lose = |what: &str| {
            asked.push(what.to_owned());
            what != leaves_out
        };
        let lost = scene.disk.crash(1, &mut || rng.chance(0.5), &mut may_lose);
        (rng.next_u64(), asked, lost.join("; "), ["/old", "/other"].map(|path| scene.read(path)))
    };
    for seed in 0..20 {
        let [(next, asked, lost, _), (next_if_kept, asked_if_kept, kept_entries, left), no_content] =
            ["", "entries", "content"].map(|leaves_out| crash(seed, leaves_out));
        assert_eq!((next, &asked), (next_if_kept, &asked_if_kept), "seed {seed}");
        assert_eq!((next, &asked), (no_content.0, &no_content.1), "seed {seed}");
        let content = asked.iter().filter(|what| *what == "content").count();
        assert_eq!((content, lost.matches("changes of").count()), (3, 3), "seed {seed}: {lost}");
        assert_eq!(asked.len() - content, usize::from(lost.contains("create /other")), "seed {seed}: {lost}");
        assert!(kept_entries.starts_with("changes of ") && left.iter().all(Result::is_ok), "{kept_entries}");
        assert!(!no_content.2.contains("changes of "), "{}", no_content.2);
        let whole = [b"12345678".as_slice(), b"old"];
        assert!(no_content.3.iter().flatten().all(|content| whole.contains(&content.as_slice())));
    }
}

/// Fails if a text has the path that a file had before its directory was renamed, or before a crash took that
/// back.
#[test]
fn a_path_is_that_of_today() {
    let mut scene = Scene::new();
    scene.mkdir("/d");
    scene.write("/d/a", b"old");
    ["/", "/d", "/d/a"].into_iter().for_each(|path| scene.sync(path));
    let file = scene.open("/d/a");
    let path =
        |scene: &Scene| scene.disk.path_of(scene.disk.walk(Path::new("/d/a"), true).unwrap().found.unwrap());
    scene.rename("/d", "/e");
    scene.disk.write(file, b"new", None, NOW).unwrap();
    assert_eq!(scene.crash(false), ["rename /d to /e", "changes of /e/a: 1 lost"]);
    assert_eq!(path(&scene), Path::new("/d/a"));
    let file = scene.open("/d/a");
    let ino = scene.disk.open_file(file).unwrap().ino;
    scene.disk.remove_file(Path::new("/d/a"), NOW).unwrap();
    scene.disk.remove_dir(Path::new("/d"), NOW).unwrap();
    scene.sync("/");
    assert_eq!(scene.disk.path_of(ino), Path::new("/d/a"), "it is still open");
}

#[test]
fn attributes_need_a_sync_of_all() {
    for (all, mode) in [(false, 0o644), (true, 0o600)] {
        let mut scene = Scene::new();
        let file = scene.open("/a");
        scene.sync("/");
        let ino = scene.disk.open_file(file).unwrap().ino;
        scene.disk.inode_mut(ino).attributes.mode = 0o600;
        scene.disk.sync(file, all).unwrap();
        scene.crash(false);
        assert_eq!(scene.disk.inode(ino).attributes.mode, mode);
    }
}

/// Fails if the changes that wait for a sync are kept without a bound.
#[test]
fn old_changes_become_durable() {
    let mut scene = Scene::new();
    let file = scene.open("/a");
    scene.sync("/");
    for number in 0..=MOST_PENDING {
        scene.disk.write(file, &[1], Some(number as u64), NOW).unwrap();
        scene.disk.symlink(Path::new("x"), &PathBuf::from(format!("/{number}")), NOW).unwrap();
    }
    scene.crash(false);
    assert_eq!(scene.read("/a").unwrap(), [1]);
    assert!(scene.disk.read_link(Path::new("/0")).is_ok() && scene.disk.read_link(Path::new("/1")).is_err());
}

/// Counts what keeps each inode.
fn references(disk: &Disk) -> BTreeMap<Ino, u32> {
    let mut found = BTreeMap::from([(ROOT_INODE, 0)]);
    let mut add = |ino: Ino| *found.entry(ino).or_insert(0) += 1;
    for inode in disk.inodes.values() {
        if let Content::Directory(directory) = &inode.content {
            directory.live.values().chain(directory.durable.values()).copied().for_each(&mut add);
        }
    }
    for edit in disk.pending.iter().flat_map(|change| &change.edits) {
        add(edit.directory);
        edit.to.into_iter().for_each(&mut add);
    }
    disk.open.values().for_each(|file| add(file.ino));
    found
}

/// Random calls: fails if an inode is lost, kept for ever, or counted wrongly.
#[test]
fn inodes_are_kept_as_long_as_something_leads_to_them() {
    for seed in 0..50 {
        let (mut rng, mut scene) = (Rng::new(seed), Scene::new());
        let names = ["/a", "/b", "/c", "/a/a", "/a/b", "/b/a", "/tmp/a"];
        for _ in 0..300 {
            let [one, other] = [(); 2].map(|()| Path::new(names[rng.below(names.len() as u64) as usize]));
            scene.last += 1;
            let (number, disk) = (scene.last, &mut scene.disk);
            // Many of these are errors.
            let _ = match rng.below(10) {
                0 | 1 => disk.create_dir(one, 0, NOW),
                2 => disk.hard_link(one, other, NOW),
                3 => disk.remove_file(one, NOW),
                4 => disk.remove_dir(one, NOW),
                5 => disk.rename(one, other, NOW),
                6 => disk.open(number, one, WRITE, NOW).map(drop),
                7 => {
                    disk.close(1 + rng.below(number));
                    Ok(())
                }
                8 => {
                    let at = 1 + rng.below(number);
                    let _ = disk.write(at, b"abc", None, NOW);
                    disk.sync(at, false)
                }
                _ if rng.chance(0.1) => {
                    let may_lose = rng.chance(0.7);
                    disk.crash(2, &mut || rng.chance(0.7), &mut |_| may_lose);
                    Ok(())
                }
                _ => disk.open(number, one, OpenFlags { read: true, ..OpenFlags::default() }, NOW).map(drop),
            };
            let counted: BTreeMap<_, _> = disk.inodes.iter().map(|(ino, it)| (*ino, it.references)).collect();
            let is_root = |ino: &Ino| *ino == ROOT_INODE;
            let mut expected = references(disk);
            expected.retain(|ino, count| is_root(ino) || *count > 0);
            assert_eq!(counted, expected, "seed {seed}");
            let len = |(ino, inode): (&Ino, &super::inode::Inode)| match inode.kind() {
                FileKind::File if inode.links + inode.opens > 0 => inode.status(*ino).len,
                _ => 0,
            };
            assert_eq!(disk.used, disk.inodes.iter().map(len).sum::<u64>());
        }
    }
}
