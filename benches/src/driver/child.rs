//! Processes that do not outlive the driver.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{self, ChildStdin, ChildStdout, Command};

use rustix::process::{PTracer, Signal, set_parent_process_death_signal, set_ptracer};

/// A child that is killed and waited for when it goes out of scope. The kernel ends it if the driver dies
/// without dropping it.
#[derive(Debug)]
pub(crate) struct Child(pub(crate) process::Child);

impl Child {
    /// Must be called on the main thread: the kernel takes the end of the spawning thread for the end of the
    /// parent.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<Child> {
        let prepare = || {
            set_parent_process_death_signal(Some(Signal::TERM))?;
            // On systems where only ancestors may trace a process, strace is no ancestor. Kernels without
            // that rule refuse the call.
            let _ = set_ptracer(PTracer::Any);
            Ok(())
        };
        // SAFETY: between fork and exec this makes two system calls; it allocates nothing and takes no lock.
        unsafe { command.pre_exec(prepare) };
        command.spawn().map(Child)
    }

    /// Returns the exit status if the child has ended.
    pub(crate) fn ended(&mut self) -> Option<process::ExitStatus> {
        self.0.try_wait().ok().flatten()
    }
}

/// Writes lines to a child, and reads its answers, over pipes.
#[derive(Debug)]
pub(crate) struct Talk {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Talk {
    /// Must be called once for each child at most.
    pub(crate) fn with(child: &mut Child) -> io::Result<Talk> {
        let (Some(input), Some(output)) = (child.0.stdin.take(), child.0.stdout.take()) else {
            return Err(io::Error::other("both streams have to be pipes"));
        };
        Ok(Talk { input, output: BufReader::new(output) })
    }

    pub(crate) fn say(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.input, "{line}")
    }

    pub(crate) fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err(io::Error::other("the process ended early")),
            _ => Ok(line),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both calls fail only if the child has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
