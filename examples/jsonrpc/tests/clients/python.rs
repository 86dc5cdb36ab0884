//! Python with its packages in a folder of its own.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use example_testing::{printed, run, say, skip};

/// The packages, with their versions.
const PACKAGES: [(&str, &str, &str); 2] =
    [("websockets", "websockets.sync.client", "websockets>=15,<18"), ("pika", "pika", "pika>=1.3,<2")];

pub(crate) struct Python(PathBuf);

impl Python {
    /// With `websockets`, if that can be installed.
    pub(crate) fn any() -> Option<Self> {
        let plain = || run("python3", &["--version"]).map(|_| Self("python3".into()));
        Self::with("websockets").or_else(plain)
    }

    pub(crate) fn has(&self, module: &str) -> bool {
        self.run(&["-c", &format!("import {module}")]).is_some()
    }

    /// Installs a package if it is missing; if that fails, prints that the test is skipped.
    pub(crate) fn with(package: &str) -> Option<Self> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let (name, module, version) = PACKAGES.into_iter().find(|(name, ..)| *name == package)?;
        let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-jsonrpc");
        let this = Self(venv.join("bin/python"));
        let has_it = || this.0.exists() && this.has(module);
        if has_it() {
            return Some(this);
        }
        let venv = venv.to_str().expect("a path that is text");
        let made = run("python3", &["-m", "venv", venv]).is_some_and(|made| made.status.success());
        if made && this.run(&["-m", "pip", "install", "--quiet", version]).is_some() && has_it() {
            return Some(this);
        }
        skip(&format!("Python's package {name} cannot be installed"));
        None
    }

    fn run(&self, args: &[&str]) -> Option<()> {
        run(self.0.to_str()?, args).filter(|output| output.status.success()).map(drop)
    }

    /// Runs a scene of client.py, which has to succeed, and prints its output.
    #[track_caller]
    pub(crate) fn scene(&self, args: &[&str]) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/client.py");
        let args = [&["-B", script], args].concat();
        let printed = printed(&run(self.0.to_str().expect("text"), &args).expect("it was found above"));
        say(printed.trim_end());
        printed
    }
}
