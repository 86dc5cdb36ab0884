//! [`Command`]: that of the standard library, with asynchronous waits for its children.

use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ExitStatus, Output, Stdio};

use super::Child;

#[derive(Debug)]
pub struct Command {
    std: std::process::Command,
    kill_on_drop: bool,
}

macro_rules! settings {
    ($($name:ident $([$($generics:tt)+])? ($($arg:ident: $ty:ty),*);)+) => {$(
        pub fn $name $(<$($generics)+>)? (&mut self $(, $arg: $ty)*) -> &mut Command {
            self.std.$name($($arg),*);
            self
        }
    )+};
}

impl Command {
    pub fn new<S: AsRef<OsStr>>(program: S) -> Command {
        std::process::Command::new(program).into()
    }

    pub fn as_std(&self) -> &std::process::Command {
        &self.std
    }

    pub fn as_std_mut(&mut self) -> &mut std::process::Command {
        &mut self.std
    }

    pub fn into_std(self) -> std::process::Command {
        self.std
    }

    settings! {
        arg[S: AsRef<OsStr>](arg: S);
        args[I: IntoIterator<Item = S>, S: AsRef<OsStr>](args: I);
        env[K: AsRef<OsStr>, V: AsRef<OsStr>](key: K, val: V);
        envs[I: IntoIterator<Item = (K, V)>, K: AsRef<OsStr>, V: AsRef<OsStr>](vars: I);
        env_remove[K: AsRef<OsStr>](key: K);
        env_clear();
        current_dir[P: AsRef<Path>](dir: P);
        stdin[T: Into<Stdio>](cfg: T);
        stdout[T: Into<Stdio>](cfg: T);
        stderr[T: Into<Stdio>](cfg: T);
        uid(id: u32);
        gid(id: u32);
        arg0[S: AsRef<OsStr>](arg: S);
        process_group(pgroup: i32);
    }

    /// # Safety
    ///
    /// As for the standard library's method: little is allowed between `fork` and `exec`.
    pub unsafe fn pre_exec<F>(&mut self, f: F) -> &mut Command
    where
        F: FnMut() -> io::Result<()> + Send + Sync + 'static,
    {
        // SAFETY: the caller keeps the promises of `pre_exec`.
        unsafe { self.std.pre_exec(f) };
        self
    }

    pub fn kill_on_drop(&mut self, kill_on_drop: bool) -> &mut Command {
        self.kill_on_drop = kill_on_drop;
        self
    }

    pub fn get_kill_on_drop(&self) -> bool {
        self.kill_on_drop
    }

    #[track_caller]
    pub fn spawn(&mut self) -> io::Result<Child> {
        Child::of(self.std.spawn()?, self.kill_on_drop)
    }

    /// Starts the process by a call of `with`.
    #[cfg(tokio_unstable)]
    #[track_caller]
    pub fn spawn_with(
        &mut self,
        with: impl FnOnce(&mut std::process::Command) -> io::Result<std::process::Child>,
    ) -> io::Result<Child> {
        Child::of(with(&mut self.std)?, self.kill_on_drop)
    }

    #[track_caller]
    pub fn status(&mut self) -> impl Future<Output = io::Result<ExitStatus>> + use<> {
        let child = self.spawn();
        async {
            let mut child = child?;
            // Output of the child would fill the pipe, and the child would wait for a reader.
            (child.stdin, child.stdout, child.stderr) = (None, None, None);
            child.wait().await
        }
    }

    #[track_caller]
    pub fn output(&mut self) -> impl Future<Output = io::Result<Output>> + use<> {
        self.std.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = self.spawn();
        async { child?.wait_with_output().await }
    }
}

impl From<std::process::Command> for Command {
    fn from(std: std::process::Command) -> Command {
        Command { std, kill_on_drop: false }
    }
}
