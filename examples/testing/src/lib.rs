//! The shared parts of the tests of the example packages: a server that is started and ended, and clients.
#![cfg(unix)]

mod programs;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

pub use programs::{command, ends, explains_itself, names_an_address_in_use, output, refuses, stacks};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

/// Longer than any step should take, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// For a program with much to do: Autobahn's client, or an installation.
pub const LONG: Duration = Duration::from_secs(180);

/// An example with a server. The process is killed when this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    addr: SocketAddr,
    said: Arc<Said>,
}

/// The lines that a server has printed, on both streams, and whether more may come.
#[derive(Debug, Default)]
struct Said {
    lines: Mutex<(Vec<String>, u8)>,
    more: Condvar,
}

impl Server {
    /// Starts a server, and waits until it prints its address: the first printed word with a port.
    pub fn start(program: &str, args: &[&str]) -> Self {
        Self::start_within(PATIENCE, program, args)
    }

    /// The same, with a limit for the start.
    pub fn start_within(limit: Duration, program: &str, args: &[&str]) -> Self {
        Self::spawn(limit, command(program).args(args))
    }

    /// The same for a [`command`], which may have more settings.
    pub fn spawn(limit: Duration, command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let said = Arc::new(Said { lines: Mutex::new((Vec::new(), 2)), more: Condvar::new() });
        said.listen(child.stdout.take().expect("it is piped"));
        said.listen(child.stderr.take().expect("it is piped"));

        let mut server = Self { child, addr: ([0, 0, 0, 0], 0).into(), said };
        let is_addr = |word: &str| word.trim_matches(',').parse::<SocketAddr>().ok();
        let line = server.wait_for(limit, |line| line.split_whitespace().any(|word| is_addr(word).is_some()));
        server.addr = line.split_whitespace().find_map(is_addr).expect("that was the condition");
        server
    }

    /// Returns the server's address.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Connects to the server, with a limit for reads and writes.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addr).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes it");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket takes it");
        stream
    }

    /// Waits for a line with these words, and returns it.
    pub fn says(&self, words: &str) -> String {
        self.wait_for(PATIENCE, |line| line.contains(words))
    }

    fn wait_for(&self, limit: Duration, wanted: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        let mut said = self.said.lines.lock().expect("the lock is not poisoned");
        loop {
            if let Some(line) = said.0.iter().find(|line| wanted(line)) {
                return line.clone();
            }
            let left = limit.saturating_sub(start.elapsed());
            assert!(left > Duration::ZERO && said.1 > 0, "it did not say so, but: {:#?}", said.0);
            said = self.said.more.wait_timeout(said, left).expect("the lock is not poisoned").0;
        }
    }

    /// Returns its memory in use, in bytes.
    pub fn resident(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux says so");
        1024 * line.trim_end_matches("kB").trim().parse::<usize>().expect("a number")
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id() as i32).expect("a child is not 0");
        kill_process(pid, signal).expect("it lives, or has not been waited for");
    }

    /// Asks it to end, as `kill` does.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits for its end.
    pub fn ended(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is ours") {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "it has not ended, and said: {:#?}", self.said.lines.lock());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Said {
    fn listen(self: &Arc<Self>, stream: impl Read + Send + 'static) {
        let this = self.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                this.lines.lock().expect("the lock is not poisoned").0.push(line);
                this.more.notify_all();
            }
            this.lines.lock().expect("the lock is not poisoned").1 -= 1;
            this.more.notify_all();
        });
    }
}

/// Runs an installed program with these arguments to its end; prints that the test is skipped if it is not
/// installed. After [`LONG`] the program is killed.
#[track_caller]
pub fn run(program: &str, args: &[&str]) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    match command.spawn() {
        Ok(child) => Some(output(child, LONG)),
        Err(error) => {
            skip(&format!("{program} is not to be had ({error})"));
            None
        }
    }
}

/// Returns the output of a program that has to succeed.
#[track_caller]
pub fn printed(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}\n{stdout}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    stdout
}

/// Prints that a test is skipped, and why.
pub fn skip(why: &str) {
    say(&format!("{} is skipped: {why}", thread::current().name().unwrap_or("a test")));
}

/// Prints a message, even if the output of tests is captured.
pub fn say(words: &str) {
    // A closed stderr does not matter.
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// Raises the limit of open files for this process and its children, if the system allows it.
pub fn allow_files(wanted: u64) -> bool {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if allowed < wanted {
        skip(&format!("it needs {wanted} open files, {allowed} are allowed (ulimit -Hn)"));
    }
    allowed >= wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let child = Command::new("sleep").arg("600").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.expect("every Unix has it");
        let pid = Pid::from_child(&child);
        let outcome = thread::spawn(move || output(child, Duration::from_millis(20))).join();
        assert!(outcome.is_err());
        let start = Instant::now();
        while rustix::process::test_kill_process(pid).is_ok() {
            assert!(start.elapsed() < PATIENCE, "it lives");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
