//! The same random calls on files of a simulation and on files of the system, with the results compared.
//!
//! Outside of a simulation, the functions of `blocking::fs` are those of the standard library. So a script
//! runs twice, in a folder of the same path: on the files of the system, and in a simulation. Its calls
//! depend on the seed, and on how many files are open. The first difference ends the comparison.
//!
//! The results leave out what differs by intention, or between file systems of Linux:
//!
//! | what | on Linux | in a simulation |
//! |---|---|---|
//! | length and links of a directory | depend on the file system | 0, and one for its entry |
//! | `seek` from the end of a directory | depends on the file system | `EINVAL`, as in tmpfs |
//! | order of the entries of a directory | depends on the file system | that of their names |
//! | number of an inode | may be used again | is not used again |
//! | time of access | calls that read may change it | only programs set it |
//! | time of a change of attributes | has its own value | is the time of the last modification |
//! | permissions of a new file or directory | lack the bits of the umask | are those that the program gives |
//! | sync | may fail, and takes milliseconds | fails by `Files::set_errors` |
//! | error of an argument that is wrong in itself | may have no number | has the number of `EINVAL` |

use std::env;
use std::fmt::Debug;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, UNIX_EPOCH};

use crate::sim::{Rng, Sim};
use crate::simulated::for_tokio::symlink;
use crate::simulated::fs::{self, File, Metadata, OpenOptions, Permissions};

/// The calls of a script.
const CALLS: usize = 200;

/// The seeds of the test that always runs.
const FEW: u64 = 200;

/// The names in most calls.
const NAMES: [&str; 12] = ["a", "b", "d", "d/x", "d/y", "e", "e/d", "e/d/x", "l", "l/x", "a/", "e/../d/x"];

/// The names in other calls.
///
/// A script must not leave the folder above its own. So a name has one `..` at most, and symbolic links have
/// none.
#[rustfmt::skip]
const ODD_NAMES: [&str; 20] = [
    "", ".", "b/", "d/", "l/", "d/.", "a/.", "l/.", "nope/.", "nope/x", "d/..", "l/..", "d/../a", "l/../b", "./d/./x",
    "d//x", "d/./", "e/d/", "l/x/", "a\0b",
];

/// The paths in symbolic links.
const TARGETS: [&str; 9] = ["d", "a", "e/d", "l", "nope", "a/", "d/.", ".", ""];

/// Permissions that no umask gives to a new file or directory, and with which an owner may make all calls.
const MODES: [u32; 2] = [0o710, 0o701];

/// The files of the system or of a simulation, and the state of a script.
struct World {
    is_real: bool,
    folder: PathBuf,
    open: Vec<File>,
    random: Rng,
}

/// Returns the result of a call as it is compared.
fn text<T: Debug>(result: io::Result<T>) -> String {
    match result.as_ref().map_err(|error| (error.kind(), error.raw_os_error())) {
        Ok(value) => format!("{value:?}"),
        Err((kind, None | Some(libc::EINVAL))) => format!("{kind:?}"),
        Err((kind, Some(number))) => format!("error {number}, {kind:?}"),
    }
}

/// Returns what is compared of metadata. Permissions and times are compared if the script has set them.
fn about(metadata: &Metadata) -> String {
    let kind = metadata.file_type();
    let sizes = (!kind.is_dir()).then(|| (metadata.len(), metadata.nlink()));
    let mode = Some(metadata.mode()).filter(|mode| MODES.contains(&(mode & 0o7777)));
    let modified = Some(metadata.mtime()).filter(|seconds| *seconds < 1000);
    format!("{kind:?} {sizes:?} {mode:?} {modified:?}")
}

/// Returns the entries of a directory, in order.
fn entries(path: &Path) -> io::Result<Vec<String>> {
    let about = |entry: fs::DirEntry| Ok(format!("{:?} {}", entry.file_name(), about(&entry.metadata()?)));
    let mut entries: Vec<_> =
        fs::read_dir(path)?.map(|entry| entry.and_then(about)).collect::<io::Result<_>>()?;
    entries.sort();
    Ok(entries)
}

impl World {
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len() as u64) as usize].clone()
    }

    fn name(&mut self) -> String {
        match self.random.below(200) {
            0 => "n".repeat(255),
            1 => "n".repeat(256),
            2..50 => self.pick(&ODD_NAMES).into(),
            50..100 => self.pick(&NAMES[..3]).into(),
            _ => self.pick(&NAMES).into(),
        }
    }

    /// Makes the next call. Returns it with its result.
    fn step(&mut self) -> String {
        let (name, other) = (self.name(), self.name());
        let (path, to) = (&*self.folder.join(&name), &*self.folder.join(&other));
        let mode = Permissions::from_mode(self.pick(&MODES));
        let (call, result) = match self.random.below(40) {
            0..5 => return self.open(&name, path),
            5..16 if self.open.is_empty() => return self.open(&name, path),
            5..16 => return self.call_file(mode),
            16..18 => ("create_dir", text(fs::create_dir(path))),
            18 => ("create_dir_all", text(fs::create_dir_all(path))),
            19 => ("remove_dir", text(fs::remove_dir(path))),
            // Seldom, as the folder may be empty afterwards.
            20 if self.random.below(4) == 0 => ("remove_dir_all", text(fs::remove_dir_all(path))),
            20 => ("remove_file", text(fs::remove_file(path))),
            21..25 => ("rename", text(fs::rename(path, to))),
            25..27 => ("hard_link", text(fs::hard_link(path, to))),
            27..29 => return self.symlink(&name, path),
            29..31 => ("copy", text(fs::copy(path, to))),
            31 => ("write", text(fs::write(path, "hello"))),
            32 => ("read", text(fs::read_to_string(path))),
            33 => ("read_dir", text(entries(path))),
            34 => ("read_link", text(fs::read_link(path))),
            35 => ("canonicalize", text(fs::canonicalize(path))),
            36 => ("exists", text(fs::exists(path))),
            37 => ("metadata", text(fs::metadata(path).map(|it| about(&it)))),
            38 => ("symlink_metadata", text(fs::symlink_metadata(path).map(|it| about(&it)))),
            _ => ("set_permissions", text(fs::set_permissions(path, mode))),
        };
        format!("{call} {name:?} {other:?}: {result}")
    }

    fn open(&mut self, name: &str, path: &Path) -> String {
        let [read, write, create] = [(); 3].map(|()| self.random.chance(0.5));
        let [append, truncate, create_new] = [(); 3].map(|()| self.random.chance(0.25));
        let mut options = OpenOptions::new();
        options
            .read(read)
            .write(write)
            .append(append)
            .truncate(truncate)
            .create(create)
            .create_new(create_new);
        let result = text(options.open(path).map(|file| self.open.push(file)));
        let flags = [read, write, append, truncate, create, create_new].map(u8::from);
        format!("open {name:?} {flags:?}: {result}")
    }

    fn symlink(&mut self, name: &str, path: &Path) -> String {
        let target = match self.random.below(50) {
            0 => "n".repeat(4096).into(),
            1 => "a\0b".into(),
            2..7 => self.folder.join("d"),
            _ => PathBuf::from(self.pick(&TARGETS)),
        };
        format!("symlink {target:?} at {name:?}: {}", text(symlink(&target, path)))
    }

    fn call_file(&mut self, mode: Permissions) -> String {
        let which = self.random.below(self.open.len() as u64) as usize;
        let (kind, n, letter) = (self.random.below(18), self.random.below(20), self.random.below(26) as u8);
        let mut file = &self.open[which];
        let mut buffer = vec![b'a' + letter; n as usize];
        let (call, result) = match kind {
            0..3 => ("write", text(file.write(&buffer))),
            3..5 => ("read", text(file.read(&mut buffer))),
            5 => ("write_at", text(file.write_at(b"at!", n))),
            6 => ("read_at", text(file.read_at(&mut buffer, n))),
            7 => ("set_len", text(file.set_len(n))),
            8..10 => ("seek from the start", text(file.seek(SeekFrom::Start(n)))),
            10 => ("seek by 10 less", text(file.seek(SeekFrom::Current(n as i64 - 10)))),
            11 if file.metadata().is_ok_and(|it| it.is_file()) => {
                ("seek from the end, by 15 less", text(file.seek(SeekFrom::End(n as i64 - 15))))
            }
            11..13 => ("metadata", text(file.metadata().map(|it| about(&it)))),
            13 => ("set_permissions", text(file.set_permissions(mode))),
            14 => ("set_modified", text(file.set_modified(UNIX_EPOCH + Duration::from_secs(n)))),
            // Only in the simulation, where this is not to change what is seen.
            15 => ("sync", text(if self.is_real { Ok(()) } else { file.sync_all() })),
            16 => ("clone", text(file.try_clone().map(|file| self.open.push(file)))),
            _ => {
                self.open.swap_remove(which);
                ("close", String::new())
            }
        };
        format!("{call}, file {which}, {n}: {result}, {:?}", String::from_utf8_lossy(&buffer))
    }
}

/// Runs the script of a seed.
fn run(seed: u64, is_real: bool, folder: &Path) -> Vec<String> {
    fs::create_dir_all(folder).unwrap();
    let mut world = World { is_real, folder: folder.into(), open: Vec::new(), random: Rng::new(seed) };
    (0..CALLS).map(|_| world.step()).collect()
}

/// Returns a folder in memory, if the system has one and `TMPDIR` names no other: a disk takes milliseconds
/// for some of the calls.
fn temporary_folder() -> PathBuf {
    let in_memory = Path::new("/dev/shm");
    let folder = match env::var_os("TMPDIR") {
        None if in_memory.is_dir() => in_memory.into(),
        _ => env::temp_dir(),
    };
    folder.canonicalize().unwrap()
}

/// Returns the first difference of a script.
fn compare(seed: u64) -> Option<String> {
    let above = temporary_folder().join(format!("paceline-files-{}-{seed}", process::id()));
    let folder = above.join("files");
    let expected = run(seed, true, &folder);
    std::fs::remove_dir_all(&above).unwrap();
    let sim = Sim::new(seed);
    let got = run(seed, false, &folder);
    drop(sim);
    let at = expected.iter().zip(&got).position(|(expected, got)| expected != got)?;
    let before = got[at.saturating_sub(20)..at].join("\n  ");
    Some(format!("seed {seed}, call {at}:\n  {before}\nLinux {}\nhere  {}", expected[at], got[at]))
}

fn assert_no_differences(seeds: impl Iterator<Item = u64>) {
    let differences: Vec<_> = seeds.filter_map(compare).take(10).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn results_of_a_few_scripts_are_those_of_linux() {
    assert_no_differences(0..FEW);
}

#[test]
#[ignore = "makes millions of calls"]
fn results_are_those_of_linux() {
    let count = env::var("SCRIPTS").map_or(10_000, |count| count.parse().unwrap());
    assert_no_differences(FEW..FEW + count);
}
