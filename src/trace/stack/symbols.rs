//! [`Frame`]: a function on a stack, with its line. [`Site`]: where the program is on a stack.

use std::env;
use std::fmt;
use std::sync::OnceLock;

use crate::place::{own_path, without_folders};

/// A function on a stack. One that was inlined has a frame of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Its path, without the numbers of closures and the hash.
    pub(crate) name: String,
    /// The file, line and column, if they are known.
    pub(crate) place: Option<(String, u32, u32)>,
}

/// The innermost function of the program on a stack, and what it has called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) frame: Frame,
    /// Whether there is a function of the program. If there is none, the site is the innermost function of a
    /// package.
    pub(crate) is_of_program: bool,
    /// The path of the outermost function of a package that the program calls there, except the standard
    /// library.
    pub(crate) callee: Option<String>,
    /// What is waited for, as far as functions of a runtime tell.
    pub(crate) kind: Option<WaitKind>,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitKind {
    Timer,
    Socket,
    Closure,
    Task,
}

/// Functions that tell what is waited for, by the beginnings of their paths or by their files: in a build
/// with lines only, inlined functions have no path. The files are those in the folder of this crate, or in
/// that of a package, whose version is left out.
const KINDS: [(&str, &str, WaitKind); 5] = [
    ("paceline::reactor::timers", "reactor/timers.rs", WaitKind::Timer),
    ("paceline::reactor::source", "reactor/source.rs", WaitKind::Socket),
    ("tokio::runtime::blocking", "tokio/src/runtime/blocking.rs", WaitKind::Closure),
    ("paceline::blocking", "blocking/mod.rs", WaitKind::Closure),
    ("async_task::task", "async-task/src/task.rs", WaitKind::Task),
];

/// Crates that are no part of the program, in a build without lines. The names of some closures and of
/// inlined functions have no path.
const LIBRARIES: [&str; 7] =
    ["core::", "std::", "alloc::", "backtrace::", "paceline::", "async_task::", "tokio::"];
/// How many of them say nothing of what is waited for.
const SILENT: usize = 6;

/// Returns the functions that are at an address to which a call returns: more than one if some are inlined.
pub(super) fn resolve(call: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    // The call is before the address.
    let within = std::ptr::without_provenance_mut(call.saturating_sub(1));
    backtrace::resolve(within, |symbol| {
        let place = symbol.filename().zip(symbol.lineno());
        let place = place.map(|(file, line)| (file.display().to_string(), line, symbol.colno().unwrap_or(0)));
        let name = symbol.name().map(|name| format!("{name:#}")).unwrap_or_default();
        frames.push(Frame { name, place });
    });
    frames
}

/// Returns the folder with the source of this crate, as debug information has it.
fn own_folder() -> Option<&'static str> {
    static FOLDER: OnceLock<Option<String>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let here = resolve(own_folder as fn() -> _ as usize + 2);
        here.into_iter().find_map(|frame| {
            let file = frame.place?.0.replace('\\', "/");
            Some(file.strip_suffix("trace/stack/symbols.rs")?.to_string())
        })
    });
    folder.as_deref()
}

/// Returns the folder in which the program was started, with a slash.
fn current_folder() -> Option<&'static str> {
    static FOLDER: OnceLock<Option<String>> = OnceLock::new();
    let folder = || env::current_dir().map(|path| path.join("").display().to_string()).ok();
    FOLDER.get_or_init(folder).as_deref()
}

impl Frame {
    /// Returns the path without the trait that is implemented, and without closures.
    pub(crate) fn short_name(&self) -> &str {
        let mut name = self.name.as_str();
        while let Some(outer) = name.strip_suffix("::{{closure}}") {
            name = outer;
        }
        // "<Type as Trait>::function", "<Type>::function".
        let Some(implemented) = name.strip_prefix('<') else { return name };
        let end = implemented.find(" as ").or_else(|| implemented.rfind(">::")).unwrap_or(implemented.len());
        implemented[..end].trim_start_matches('&').trim_start_matches("mut ")
    }

    /// Returns whether the name is a path, and not the short name of an inlined function without debug
    /// information of its own.
    fn has_path(&self) -> bool {
        self.short_name().split('<').next().is_some_and(|path| path.contains("::"))
    }

    /// Returns whether the path says what is called in which package.
    fn is_telling(&self) -> bool {
        let name = self.short_name();
        self.has_path() && !LIBRARIES[..SILENT].iter().any(|library| name.starts_with(library))
    }

    /// Returns whether the file is one of a package in a registry, except those that paceline calls there.
    fn is_of_package(&self) -> bool {
        let of_others = ["core/", "std/", "alloc/", "backtrace-", "async-task-"];
        let file = self.place.as_ref().and_then(|(file, ..)| own_path(file));
        file.is_some_and(|file| !of_others.iter().any(|other| file.starts_with(other)))
            && !self.is_of_library()
    }

    /// Returns whether a library has the type, and the trait that is implemented for it, if there is one: a
    /// trait of the program may be implemented for a type of a library.
    fn is_of_library(&self) -> bool {
        let is_of = |path: &str| LIBRARIES.iter().any(|library| path.starts_with(library));
        let implemented = self.name.strip_prefix('<').and_then(|name| name.split_once(" as "));
        is_of(self.short_name()) && implemented.is_none_or(|(_, of_trait)| is_of(of_trait))
    }

    /// Returns whether the function belongs to the program: not to a package of a registry, to the standard
    /// library or to a runtime. `own` is the folder of this crate.
    fn is_of_program(&self, own: Option<&str>) -> bool {
        let is_foreign = |(file, ..): &(String, u32, u32)| {
            own_path(file).is_some() || own.is_some_and(|own| file.replace('\\', "/").starts_with(own))
        };
        !self.is_of_library() && !self.place.as_ref().is_some_and(is_foreign)
    }

    fn kind(&self, own: Option<&str>) -> Option<WaitKind> {
        let file = self.place.as_ref().map(|(file, ..)| file.replace('\\', "/")).unwrap_or_default();
        let of_package = || {
            let (package, rest) = own_path(&file)?.split_once('/')?;
            Some(format!("{}/{rest}", package.rsplit_once('-')?.0))
        };
        let file = own.and_then(|own| file.strip_prefix(own)).map(String::from).or_else(of_package);
        let is_it = |(path, at, _): &&(&str, &str, _)| {
            self.short_name().starts_with(path) || file.as_deref() == Some(at)
        };
        KINDS.iter().find(is_it).map(|(.., kind)| *kind)
    }
}

impl fmt::Display for Frame {
    /// Writes the place, with the function in parentheses if that has a path; or else the function. With
    /// `{:#}` its whole name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if f.alternate() { &self.name } else { self.short_name() };
        let Some((file, line, column)) = &self.place else { return write!(f, "in {name}") };
        let file = without_folders(file);
        let file = current_folder().and_then(|folder| file.strip_prefix(folder)).unwrap_or(file);
        write!(f, "at {}:{line}", file.strip_prefix("./").unwrap_or(file))?;
        if *column > 0 {
            write!(f, ":{column}")?;
        }
        // Without complete debug information some names are short, and say nothing.
        if self.has_path() { write!(f, " ({name})") } else { Ok(()) }
    }
}

impl Site {
    /// Returns the site of the program on a stack. Looks at no frame beyond the innermost one of the program
    /// that has a line.
    pub(super) fn of(frames: impl Iterator<Item = Frame>) -> Option<Self> {
        Self::among(frames, own_folder())
    }

    fn among(frames: impl Iterator<Item = Frame>, own: Option<&str>) -> Option<Self> {
        let (mut of_package, mut without_line) = (None::<Frame>, Vec::new());
        let (mut callees, mut kind) = (Vec::new(), None);
        for frame in frames {
            let is_of_program = frame.is_of_program(own);
            if is_of_program && frame.place.is_some() {
                return Some(Self::at(frame, callees, kind));
            }
            kind = kind.or(frame.kind(own));
            if frame.is_of_package() && of_package.is_none() {
                of_package = Some(frame.clone());
            }
            if is_of_program && frame.is_telling() {
                without_line.push(frame);
            } else if frame.is_telling() {
                callees.push(frame.short_name().to_string());
            }
        }
        // Packages from a registry are often built without debug information, and the program with it. If it
        // has none either, the crate of the outermost function counts as the program: that of the task.
        if let Some(crate_name) = without_line.last().map(|frame| root(frame.short_name()).to_string()) {
            let at = without_line.iter().position(|frame| root(frame.short_name()) == crate_name)?;
            callees.extend(without_line[..at].iter().map(|frame| frame.short_name().to_string()));
            return Some(Self::at(without_line.swap_remove(at), callees, kind));
        }
        Some(Self { frame: of_package?, is_of_program: false, callee: None, kind })
    }

    /// Returns the site of the program with this function, which has called the `callees`, the innermost
    /// first.
    fn at(frame: Frame, callees: Vec<String>, kind: Option<WaitKind>) -> Self {
        // A closure that a macro of a package makes has the file of the package, and a path of the program.
        let own = root(frame.short_name());
        let callee = callees.into_iter().rev().find(|name| root(name) != own);
        Self { frame, is_of_program: true, callee, kind }
    }
}

/// Returns the name of the crate in a path.
fn root(path: &str) -> &str {
    path.split("::").next().unwrap_or_default()
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    const REGISTRY: &str = "/root/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f";

    fn frame(name: &str, file: &str) -> Frame {
        let place = (!file.is_empty()).then(|| (file.into(), 12, 20));
        Frame { name: name.into(), place }
    }

    fn site(frames: &[(&str, &str)]) -> Option<Site> {
        Site::among(frames.iter().map(|(name, file)| frame(name, file)), Some("/me/paceline/src/"))
    }

    #[test]
    fn the_site_is_the_innermost_function_of_the_program() {
        let lock = format!("{REGISTRY}/async-lock-3.4.1/src/mutex.rs");
        let select = format!("{REGISTRY}/tokio-1.54.1/src/macros/select.rs");
        let site = site(&[
            ("paceline::observed::shim::clone", "/me/paceline/src/observed/shim.rs"),
            (
                "<core::task::wake::Waker as core::clone::Clone>::clone",
                "/rustc/5/library/core/src/task/wake.rs",
            ),
            ("poll_inner", "/me/paceline/src/net.rs"),
            ("event_listener::Listener::poll", ""),
            ("<async_lock::mutex::Lock<T> as core::future::future::Future>::poll", &lock),
            ("bank::transfer::{{closure}}::{{closure}}", &select),
            ("bank::transfer::{{closure}}", "src/bank.rs"),
            ("bank::main", "src/bank.rs"),
        ]);
        let site = site.unwrap();
        assert_eq!(site.frame.to_string(), "at src/bank.rs:12:20 (bank::transfer)");
        assert!(site.is_of_program && site.kind.is_none());
        assert_eq!(site.callee.as_deref(), Some("async_lock::mutex::Lock<T>"));
    }

    #[test]
    fn without_a_function_of_the_program_it_is_the_innermost_one_of_a_package() {
        let tokio = format!("{REGISTRY}/hyper-util-0.1.21/src/rt/tokio.rs");
        let axum = format!("{REGISTRY}/axum-0.8.9/src/serve/mod.rs");
        let frames = [
            ("paceline::reactor::source::Source::wait", "/me/paceline/src/reactor/source.rs"),
            ("<hyper_util::rt::tokio::TokioIo<T> as hyper::rt::io::Read>::poll_read", &*tokio),
            ("axum::serve::handle_connection::{{closure}}", &*axum),
        ];
        let found = site(&frames).unwrap();
        let text = "at hyper-util-0.1.21/src/rt/tokio.rs:12:20 (hyper_util::rt::tokio::TokioIo<T>)";
        assert_eq!((found.frame.to_string().as_str(), found.is_of_program), (text, false));
        assert_eq!((found.kind, found.callee), (Some(WaitKind::Socket), None));
        assert_eq!(site(&[("", ""), ("core::x", "")]), None);
    }

    #[test]
    fn a_function_with_a_line_comes_before_one_without() {
        let found = site(&[("dep::lock", ""), ("mine::main::{{closure}}", "src/main.rs")]).unwrap();
        assert_eq!(found.frame.to_string(), "at src/main.rs:12:20 (mine::main)");
        let found =
            site(&[("dep::lock", ""), ("mine::wait", ""), ("<mine::Main>::poll", ""), ("std::run", "")]);
        let found = found.unwrap();
        assert_eq!(
            (found.frame.to_string().as_str(), found.callee.as_deref()),
            ("in mine::wait", Some("dep::lock"))
        );
    }

    #[test]
    fn a_trait_of_the_program_for_a_type_of_a_library() {
        let found = site(&[
            ("<alloc::vec::Vec<T> as core::clone::Clone>::clone", "/home/me/std/vec.rs"),
            ("<alloc::vec::Vec<T> as mine::Ext>::sum", "src/ext.rs"),
            ("mine::main", "src/main.rs"),
        ]);
        assert_eq!(found.unwrap().frame.to_string(), "at src/ext.rs:12:20 (alloc::vec::Vec<T>)");
    }

    /// Inlined functions in a build with lines only.
    #[test]
    fn files_tell_what_is_waited_for() {
        let task = format!("{REGISTRY}/async-task-4.7.2/src/task.rs");
        for (file, kind) in [
            ("/me/paceline/src/reactor/timers.rs", Some(WaitKind::Timer)),
            ("/me/paceline/src/blocking/mod.rs", Some(WaitKind::Closure)),
            ("/me/paceline/src/tokio/src/runtime/blocking.rs", Some(WaitKind::Closure)),
            (&task, Some(WaitKind::Task)),
            (&format!("{REGISTRY}/mio-1.0.4/src/blocking/mod.rs"), None),
            (&format!("{REGISTRY}/other-0.1.0/src/reactor/timers.rs"), None),
        ] {
            let found = site(&[("poll", file), ("mine::main", "src/main.rs")]).unwrap();
            assert_eq!(found.kind, kind, "{file}");
        }
    }

    #[test]
    fn the_symbols_of_this_test_are_known() {
        let frames =
            super::super::Stack::here(usize::MAX).frames().map(|frame| frame.name).collect::<Vec<_>>();
        assert!(frames.iter().any(|name| name.contains("the_symbols_of_this_test_are_known")), "{frames:#?}");
    }
}
