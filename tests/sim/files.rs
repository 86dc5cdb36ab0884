//! Files in a simulation, and what a crash leaves of them.

use std::collections::HashSet;
use std::io::{BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt};
use paceline::blocking::fs::{self, File, OpenOptions};
use paceline::sim::{Sim, check};
use paceline::{Timer, Unblock, unblock};

use super::{in_another_process, panic_of};

/// Writes a file, and makes it durable with its name.
fn write_durably(path: &str, content: &str) {
    let mut file = File::create(path).unwrap();
    file.write_all(content.as_bytes()).unwrap();
    file.sync_all().unwrap();
    File::open("/").unwrap().sync_all().unwrap();
}

/// A node that runs a closure in its first life, and then waits.
fn with_node(sim: &mut Sim, mut first: impl FnMut() + Send + 'static) {
    let mut lives = 0;
    sim.node("server", move || {
        lives += 1;
        if lives == 1 {
            first();
        }
        std::future::pending()
    });
}

fn crash_and_restart(sim: &Sim) {
    sim.network().crash("server");
    sim.network().restart("server");
}

#[test]
fn what_was_synced_survives_and_the_rest_does_not() {
    for seed in 0..20 {
        let mut sim = Sim::new(seed);
        let files = sim.files();
        files.set_survival(0.0..=0.0);
        with_node(&mut sim, || {
            write_durably("/durable", "one");
            fs::write("/new", "two").unwrap();
            fs::write("/durable", "three").unwrap();
        });
        sim.run_for(Duration::from_secs(1));
        let read = |path: &'static str| files.on("server", || fs::read_to_string(path));
        assert_eq!(read("/durable").unwrap(), "three");
        crash_and_restart(&sim);
        sim.run_for(Duration::from_secs(1));
        assert_eq!(read("/durable").unwrap(), "one");
        assert_eq!(read("/new").unwrap_err().kind(), ErrorKind::NotFound);
    }
}

/// Fails if seeds do not decide what survives, or if a seed decides differently the next time.
#[test]
fn the_seed_decides_what_survives() {
    let outcome = |seed| {
        let mut sim = Sim::new(seed);
        let files = sim.files();
        files.set_sector(1);
        with_node(&mut sim, || {
            write_durably("/a", "");
            fs::write("/a", "ab").unwrap();
            fs::write("/b", "").unwrap();
        });
        crash_and_restart(&sim);
        files.on("server", || (fs::read("/a").unwrap(), fs::exists("/b").unwrap()))
    };
    let outcomes: Vec<_> = (0..300).map(outcome).collect();
    assert_eq!(outcomes, (0..300).map(outcome).collect::<Vec<_>>());
    let contents: HashSet<_> = outcomes.iter().map(|(content, _)| content.as_slice()).collect();
    assert_eq!(contents, [b"".as_slice(), b"a", b"\0b", b"ab"].into());
    for (content, is_there) in [(b"ab", true), (b"ab", false), (b"\0b", true), (b"\0b", false)] {
        assert!(outcomes.contains(&(content.to_vec(), is_there)), "{content:?} {is_there}");
    }
}

#[test]
fn each_node_has_files_of_its_own_and_none_sees_the_real_ones() {
    let mut sim = Sim::new(7);
    let one = sim.client("one", async { fs::write("/a", "of one") });
    sim.block_on(one).unwrap();
    let two = sim.client("two", async { fs::read("/a") });
    assert_eq!(sim.block_on(two).unwrap_err().kind(), ErrorKind::NotFound);
    fs::write("a", "of the test").unwrap();
    assert_eq!(fs::read_to_string("/a").unwrap(), "of the test");
    assert_eq!(sim.files().on("one", || fs::read_to_string("/a")).unwrap(), "of one");
    assert!(!fs::exists("Cargo.toml").unwrap() && fs::exists("/tmp").unwrap());
    drop(sim);
    assert!(fs::exists("Cargo.toml").unwrap() && !fs::exists("a").unwrap());
}

#[test]
fn closures_and_streams_of_unblock_see_the_files_of_their_node() {
    let mut sim = Sim::new(7);
    let client = sim.client("client", async {
        unblock(|| fs::write("/a", "content")).await.unwrap();
        let mut file = Unblock::new(unblock(|| OpenOptions::new().append(true).open("/a")).await.unwrap());
        file.write_all(b", and more").await.unwrap();
        file.close().await.unwrap();
        let mut content = String::new();
        Unblock::new(File::open("/a").unwrap()).read_to_string(&mut content).await.unwrap();
        let names = Unblock::new(unblock(|| fs::read_dir("/")).await.unwrap());
        (content, names.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>().await)
    });
    let (content, names) = sim.block_on(client);
    assert_eq!((content.as_str(), names), ("content, and more", vec!["a".into(), "tmp".into()]));
}

/// Fails if a destructor writes to the files of the next life, or if a file stays open.
#[test]
fn a_crash_closes_files_and_destructors_write_nothing() {
    struct WritesWhenDropped;
    impl Drop for WritesWhenDropped {
        fn drop(&mut self) {
            assert!(fs::write("/b", "from a destructor").is_err());
        }
    }
    let mut sim = Sim::new(7);
    let files = sim.files();
    files.set_survival(0.0..=0.0);
    let mut lives = 0;
    sim.node("server", move || {
        lives += 1;
        async move {
            if lives == 1 {
                let (_drops, file) = (WritesWhenDropped, File::create("/a").unwrap());
                let mut file = BufWriter::new(file);
                file.write_all(b"buffered").unwrap();
                std::future::pending::<()>().await;
            }
        }
    });
    sim.run_for(Duration::from_secs(1));
    let open = files.on("server", || File::open("/a").unwrap());
    crash_and_restart(&sim);
    sim.run_for(Duration::from_secs(1));
    assert!(open.metadata().unwrap_err().to_string().contains("crashed since it opened the file"));
    assert_eq!(files.on("server", || fs::read_dir("/").unwrap().count()), 1, "only /tmp is left");
}

/// Fails if a change is no event, or if an event does not say what was changed.
#[test]
fn a_check_compares_changes_of_files() {
    let runs = AtomicU32::new(0);
    let text = panic_of(|| {
        check(7, |sim| {
            let content = if runs.fetch_add(1, Relaxed) == 0 { "1" } else { "three" };
            sim.block_on(async move { fs::write("/a", content) }).unwrap();
        });
    });
    for run in [" first run", "second run"] {
        let bytes = if run == "second run" { "5 bytes" } else { "1 byte" };
        assert!(text.contains(&format!("{run}: at 0ns, while task 1, spawned at")), "{text}");
        assert!(text.contains(&format!("is polled: writes {bytes} at 0 of /a")), "{text}");
    }
}

#[test]
fn a_crash_is_an_event_that_says_what_was_lost() {
    let runs = AtomicU32::new(0);
    let text = panic_of(|| {
        check(7, |sim| {
            let survives = f64::from(runs.fetch_add(1, Relaxed));
            sim.files().set_survival(survives..=survives);
            with_node(sim, || fs::write("/a", "one").unwrap());
            sim.run_for(Duration::from_secs(1));
            crash_and_restart(sim);
        });
    });
    let lost = "server loses what was not synced: create /a; changes of /a: 1 lost";
    assert!(text.contains(lost), "{text}");
}

#[test]
fn disks_are_full_or_broken() {
    let sim = Sim::new(7);
    let files = sim.files();
    files.set_capacity("test", 4);
    fs::write("/a", "1234").unwrap();
    assert_eq!(fs::write("/b", "5").unwrap_err().kind(), ErrorKind::StorageFull);
    fs::remove_file("/a").unwrap();
    fs::write("/b", "5").unwrap();

    files.set_errors("test", 1.0);
    let mut file = OpenOptions::new().read(true).write(true).open("/b").unwrap();
    let errors =
        [file.write(b"6").unwrap_err(), file.read(&mut [0]).unwrap_err(), file.sync_all().unwrap_err()];
    if cfg!(target_os = "linux") {
        assert!(errors.iter().all(|error| error.raw_os_error() == Some(5)), "{errors:?}");
    }
    files.set_errors("test", 0.0);
    files.set_corruption("test", 1.0);
    let wrong = fs::read("/b").unwrap();
    assert_eq!((wrong.len(), (wrong[0] ^ b'5').count_ones()), (1, 1));
    files.set_corruption("test", 0.0);
    assert_eq!(fs::read("/b").unwrap(), b"5");
}

#[test]
fn files_have_the_calls_of_the_standard_library() {
    let _sim = Sim::new(7);
    fs::create_dir_all("/a/b/..").unwrap();
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open("/a/b/c").unwrap();
    file.write_all(b"0123456789").unwrap();
    file.seek(SeekFrom::Current(-6)).unwrap();
    let mut clone = file.try_clone().unwrap();
    let mut two = [0; 2];
    clone.read_exact(&mut two).unwrap();
    assert_eq!(&two, b"45");
    assert_eq!(file.stream_position().unwrap(), 6, "clones share their position");
    file.set_len(8).unwrap();
    assert_eq!(fs::copy("/a/b/c", "/a/d").unwrap(), 8);
    fs::rename("/a/d", "/a/b/c").unwrap();
    assert_eq!(fs::read("/a/b/c").unwrap(), b"01234567");
    fs::hard_link("/a/b/c", "/a/e").unwrap();
    assert_eq!(fs::canonicalize("a/../a/./e").unwrap().to_str(), Some("/a/e"));
    fs::remove_file("/a/b/c").unwrap();
    fs::remove_dir("/a/b").unwrap();
    assert_eq!(fs::remove_dir("/a").unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    // The first step empties the target, which is the source here.
    fs::write("/a/f", "content").unwrap();
    fs::hard_link("/a/f", "/a/g").unwrap();
    assert_eq!((fs::copy("/a/f", "/a/g").unwrap(), fs::read("/a/f").unwrap()), (0, vec![]));
    assert_eq!(fs::copy("/a", "/g").unwrap_err().kind(), ErrorKind::InvalidInput);
    fs::remove_dir_all("/a").unwrap();
    assert!(!fs::exists("/a").unwrap());
    // The directory before the `..` is removed with the others.
    fs::create_dir_all("/b/c/d").unwrap();
    fs::write("/b/e", "").unwrap();
    fs::remove_dir_all("/b/c/..").unwrap();
    assert_eq!(fs::read_dir("/b").unwrap().count(), 0);
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[test]
fn metadata_is_that_of_the_simulation() {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};

    let mut sim = Sim::new(7);
    let network = sim.network();
    sim.run_for(Duration::from_secs(10));
    let file = OpenOptions::new().write(true).create(true).mode(0o600).open("/a").unwrap();
    (&file).write_all(b"12345").unwrap();
    let about = file.metadata().unwrap();
    assert_eq!(about.modified().unwrap(), network.wall_clock("test"));
    assert!(about.is_file() && about.len() == 5 && about.permissions().mode() == 0o100_600);
    assert!(about.created().is_err());
    fs::hard_link("/a", "/b").unwrap();
    paceline::blocking::sync_fs::symlink("/a", "/c").unwrap();
    let [a, b, c] = ["/a", "/b", "/c"].map(|path| fs::metadata(path).unwrap());
    assert!(a.ino() == b.ino() && a.ino() == c.ino() && a.nlink() == 2);
    assert!(fs::symlink_metadata("/c").unwrap().is_symlink() && fs::metadata("/tmp").unwrap().is_dir());
    let kinds = fs::read_dir("/").unwrap().map(|entry| entry.unwrap().file_type().unwrap());
    let kinds: Vec<_> = kinds.map(|kind| (kind.is_file(), kind.is_symlink(), kind.is_dir())).collect();
    assert_eq!(
        kinds,
        [(true, false, false), (true, false, false), (false, true, false), (false, false, true)]
    );

    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(5);
    file.set_times(fs::FileTimes::new().set_accessed(time)).unwrap();
    let changed = file.metadata().unwrap();
    assert_eq!((changed.accessed().unwrap(), changed.modified().ok()), (time, about.modified().ok()));
    file.set_modified(time).unwrap();
    fs::set_permissions("/a", fs::Permissions::from_mode(0o444)).unwrap();
    let changed = file.metadata().unwrap();
    assert!(changed.modified().unwrap() == time && changed.permissions().readonly());
    fs::write("/d", "").unwrap();
    for target in ["/d", "/e"] {
        fs::copy("/a", target).unwrap();
        assert_eq!(fs::metadata(target).unwrap().permissions().mode(), 0o100_444);
    }
}

#[cfg(unix)]
#[test]
fn what_a_simulation_does_not_know_is_an_error_that_says_what_to_do() {
    use std::os::fd::AsFd;
    use std::os::unix::fs::OpenOptionsExt;

    let sim = Sim::new(7);
    let error = OpenOptions::new().write(true).custom_flags(1).open("/a").unwrap_err();
    assert!(
        error.kind() == ErrorKind::Unsupported && error.to_string().contains("call `sync_data`"),
        "{error}"
    );
    let mut options = OpenOptions::from(std::fs::OpenOptions::new());
    let error = options.custom_flags(0).write(true).create(true).open("/a").unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("instead"), "{error}");
    let file =
        OpenOptions::new().write(true).create(true).custom_flags(1).custom_flags(0).open("/a").unwrap();
    assert!(panic_of(|| _ = file.as_fd()).contains("use its methods"));
    let elsewhere = std::thread::scope(|scope| scope.spawn(|| file.sync_all()).join().unwrap());
    assert!(elsewhere.unwrap_err().to_string().contains("by another thread"));
    drop(sim);
    assert!(file.sync_all().unwrap_err().to_string().contains("outside of it"));
}

/// A crash between the calls of a program that replaces a file leaves one of the two contents, and without a
/// sync, seeds find that it is neither.
#[test]
fn a_missing_sync_is_found() {
    fn replace(content: &str, syncs: bool) -> std::io::Result<()> {
        let mut file = File::create("/state.new")?;
        file.write_all(content.as_bytes())?;
        if syncs {
            file.sync_all()?;
        }
        fs::rename("/state.new", "/state")?;
        File::open("/")?.sync_all()
    }
    let left = |seed, syncs| {
        let mut sim = Sim::new(seed);
        sim.node("server", move || async move {
            for content in ["one", "two", "three"] {
                if unblock(move || replace(content, syncs)).await.is_err() {
                    return;
                }
            }
        });
        let mut rng = sim.rng();
        let network = sim.network();
        sim.at(Duration::from_millis(20 + rng.below(80)), move || network.crash("server"));
        sim.run_for(Duration::from_secs(1));
        sim.files().on("server", || fs::read_to_string("/state")).unwrap_or_else(|_| "one".into())
    };
    let contents = ["one", "two", "three"];
    assert!((0..200).all(|seed| contents.contains(&left(seed, true).as_str())));
    assert!((0..200).any(|seed| !contents.contains(&left(seed, false).as_str())));
}

#[test]
fn a_task_that_crashes_its_own_node_changes_no_files_afterwards() {
    let mut sim = Sim::new(7);
    let network = sim.network();
    let client = sim.client("client", async move {
        network.crash("client");
        assert!(fs::write("/a", "late").is_err());
    });
    client.detach();
    sim.block_on(Timer::after(Duration::from_secs(1)));
    assert!(!sim.files().on("client", || fs::exists("/a")).unwrap());
    assert_eq!(sim.report().panics, 0);
}

/// Takes votes, and does not sync them.
#[paceline::sim(seeds = 100)]
#[ignore = "a planted bug, run by a test below in another process"]
fn votes_twice(sim: &mut Sim) {
    let files = sim.files();
    sim.node("voter", || async {
        for vote in ["/1", "/2", "/3"] {
            if unblock(move || fs::write(vote, vote)).await.is_err() {
                return;
            }
            Timer::after(Duration::from_millis(200)).await;
        }
    });
    let network = sim.network();
    sim.at(Duration::from_secs(2), move || network.crash("voter"));
    sim.run_for(Duration::from_secs(3));
    let second = files.on("voter", || fs::read_to_string("/2"));
    assert!(second.is_ok_and(|text| text == "/2"), "the second vote is not there");
}

/// Fails if what a crash loses of one file is no fault of its own, which a plan may leave out, or if the page
/// does not show it.
#[test]
fn a_page_says_which_change_matters() {
    let page = in_another_process("files::votes_twice", &[]);
    let page = String::from_utf8_lossy(&page.stderr);
    assert!(page.contains("the second vote is not there"), "{page}");
    let lines = ["voter  writes 2 bytes at 0 of /2", "voter  crashes", "voter  loses what was not synced: "];
    assert!(lines.iter().all(|line| page.contains(line)), "{page}");
    let lost = page.lines().find(|line| line.contains("loses what was not synced")).unwrap();
    assert!(lost.contains("/2") && !lost.contains("changes of /1"), "{page}");
}
