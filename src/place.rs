//! How reports name places and threads: [`SourceLine`] a line of source, [`ThreadName`] a thread.

use std::fmt;
use std::panic::Location;
use std::process;

/// Folders below which source is not the program's own, and how many folders below them are left out, too:
/// that of the registry's index, and that of the compiler's commit with its `library`.
const FOREIGN: [(&str, usize); 4] =
    [("/registry/src/", 1), ("/git/checkouts/", 0), ("/rustc/", 2), ("/lib/rustlib/src/rust/library/", 0)];

/// Displays a line of source as "src/main.rs:9:5"; in a package of a registry as
/// "axum-0.8.9/src/serve/mod.rs:389:5".
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceLine<'a>(pub(crate) &'a Location<'a>);

impl fmt::Display for SourceLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(at) = self;
        write!(f, "{}:{}:{}", without_folders(at.file()), at.line(), at.column())
    }
}

/// Returns the path of a file in a package of a registry or in the standard library from the folder of the
/// package on; another path whole.
pub(crate) fn without_folders(path: &str) -> &str {
    own_path(path).unwrap_or(path)
}

/// Returns the part of a path that begins with the folder of the package, if the package is none of the
/// program's own.
pub(crate) fn own_path(path: &str) -> Option<&str> {
    let slashed = path.replace('\\', "/");
    let (at, skipped) = FOREIGN
        .iter()
        .find_map(|(folder, skipped)| slashed.find(folder).map(|at| (at + folder.len(), *skipped)))?;
    // The bytes are at the same places in both paths.
    (0..skipped).try_fold(&path[at..], |rest, _| Some(rest.split_once(['/', '\\'])?.1))
}

/// Displays a thread by its name, and, if that has no number, by the number that the system knows it by:
/// "paceline-1", "tokio-rt-worker (4711)". The main thread, whose number is that of the process, has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadName<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) number: Option<u32>,
}

impl fmt::Display for ThreadName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.unwrap_or("a thread without a name");
        f.write_str(name)?;
        let number = self.number.filter(|number| *number != process::id());
        match number.filter(|_| !name.ends_with(|last: char| last.is_ascii_digit())) {
            Some(number) => write!(f, " ({number})"),
            None => Ok(()),
        }
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_with_the_folder_of_its_package() {
        for (path, short) in [
            ("src/main.rs", "src/main.rs"),
            ("/home/me/registry/src/main.rs", "/home/me/registry/src/main.rs"),
            ("/root/.cargo/registry/src/index.crates.io-19/axum-0.8.9/src/lib.rs", "axum-0.8.9/src/lib.rs"),
            ("C:\\cargo\\registry\\src\\index-19\\axum-0.8.9\\src\\lib.rs", "axum-0.8.9\\src\\lib.rs"),
            ("/root/.cargo/git/checkouts/x-1f/2e/src/lib.rs", "x-1f/2e/src/lib.rs"),
            ("/rustc/59807616e/library/std/src/thread/mod.rs", "std/src/thread/mod.rs"),
            ("/root/.rustup/toolchains/x/lib/rustlib/src/rust/library/core/src/x.rs", "core/src/x.rs"),
        ] {
            assert_eq!(without_folders(path), short);
        }
        let here = Location::caller();
        assert_eq!(SourceLine(here).to_string(), here.to_string());
    }

    #[test]
    fn a_thread_has_a_number_if_its_name_has_none() {
        let is = |name, number, text: &str| assert_eq!(ThreadName { name, number }.to_string(), text);
        is(Some("paceline-1"), Some(7), "paceline-1");
        is(Some("tokio-rt-worker"), Some(7), "tokio-rt-worker (7)");
        is(Some("tokio-rt-worker"), None, "tokio-rt-worker");
        is(Some("main"), Some(process::id()), "main");
        is(None, Some(7), "a thread without a name (7)");
    }
}
