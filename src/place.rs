//! How reports name places and threads: [`SourceLine`] a line of source, [`ThreadName`] a thread.

use std::fmt;
use std::panic::Location;
use std::process;

/// Folders below which source is not the program's own; how many folders below them are left out, too: that
/// of the registry's index, and that of the compiler's commit with its `library`; and with how many digits of
/// a hash the first folder below ends. (A crate of the program may be named `registry`.)
const FOREIGN: [(&str, usize, usize); 4] = [
    ("/registry/src/", 1, 16),
    ("/git/checkouts/", 0, 16),
    ("/rustc/", 2, 0),
    ("/lib/rustlib/src/rust/library/", 0, 0),
];

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
    FOREIGN.iter().find_map(|(folder, skipped, digits)| {
        // The bytes are at the same places in both paths.
        let rest = &path[slashed.find(folder)? + folder.len()..];
        let first = rest.split(['/', '\\']).next()?.as_bytes();
        let hash = &first[first.len().checked_sub(*digits)?..];
        let rest = (0..*skipped).try_fold(rest, |rest, _| Some(rest.split_once(['/', '\\'])?.1))?;
        hash.iter().all(u8::is_ascii_hexdigit).then_some(rest)
    })
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
            ("crates/registry/src/api/handler.rs", "crates/registry/src/api/handler.rs"),
            ("/me/.cargo/registry/src/index-1949cf8c6b5b557f/axum-0.8.9/src/lib.rs", "axum-0.8.9/src/lib.rs"),
            (
                "C:\\cargo\\registry\\src\\index-1949cf8c6b5b557f\\axum-0.8.9\\src\\lib.rs",
                "axum-0.8.9\\src\\lib.rs",
            ),
            ("/me/.cargo/git/checkouts/x-6f17d22bba15001f/2e/src/lib.rs", "x-6f17d22bba15001f/2e/src/lib.rs"),
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
