//! What the tests of the example packages share: a server that is started and ended, and programs that talk to it.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

/// For whatever should take no time: long enough for a machine that is busy with others.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// For a program that has much to do: Autobahn's client, or an installation.
pub const LONG: Duration = Duration::from_secs(180);

/// An example that serves. It is killed when this is dropped.
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
    /// Starts it, and waits until it says on which address it serves: the first word with a port that it prints.
    pub fn start(program: &str, args: &[&str]) -> Self {
        Self::start_within(PATIENCE, program, args)
    }

    /// The same, for one that may take so long until it serves.
    pub fn start_within(limit: Duration, program: &str, args: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
        let said = Arc::new(Said { lines: Mutex::new((Vec::new(), 2)), more: Condvar::new() });
        said.listen(child.stdout.take().expect("it is piped"));
        said.listen(child.stderr.take().expect("it is piped"));

        let mut server = Self { child, addr: ([0, 0, 0, 0], 0).into(), said };
        let is_addr = |word: &str| word.trim_matches(',').parse::<SocketAddr>().ok();
        let line = server.wait_for(limit, |line| line.split_whitespace().any(|word| is_addr(word).is_some()));
        server.addr = line.split_whitespace().find_map(is_addr).expect("that was the condition");
        server
    }

    /// Where it serves.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// A connection to it, whose reads and writes do not take for ever.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addr).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket takes it");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket takes it");
        stream
    }

    /// Waits for a line with these words, and gives it.
    pub fn says(&self, words: &str) -> String {
        self.wait_for(PATIENCE, |line| line.contains(words))
    }

    fn wait_for(&self, limit: Duration, wanted: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        let mut said = self.said.lines.lock().expect("nobody panics with it");
        loop {
            if let Some(line) = said.0.iter().find(|line| wanted(line)) {
                return line.clone();
            }
            let left = limit.saturating_sub(start.elapsed());
            assert!(left > Duration::ZERO && said.1 > 0, "it did not say so, but: {:#?}", said.0);
            said = self.said.more.wait_timeout(said, left).expect("nobody panics with it").0;
        }
    }

    /// Its memory in use, in bytes.
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
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Said {
    fn listen(self: &Arc<Self>, stream: impl Read + Send + 'static) {
        let this = self.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                this.lines.lock().expect("nobody panics with it").0.push(line);
                this.more.notify_all();
            }
            this.lines.lock().expect("nobody panics with it").1 -= 1;
            this.more.notify_all();
        });
    }
}

/// Runs a program with these arguments to its end, given that it is installed; else says that the test is skipped. One that takes
/// longer than [`LONG`] is killed.
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

/// What a program prints to its end, which has to come within this time: then it is killed.
#[track_caller]
pub fn output(child: Child, limit: Duration) -> Output {
    let pid = Pid::from_child(&child);
    let (ended, end) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait_with_output()));
    match end.recv_timeout(limit) {
        Ok(output) => output.expect("it is ours"),
        Err(_) => {
            // Nobody has waited for it, or the thread is just about to say so.
            let _ = kill_process(pid, Signal::KILL);
            panic!("it has not ended within {limit:?}");
        }
    }
}

/// What a program that has to succeed printed.
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

/// Says that a test is skipped, and why.
pub fn skip(why: &str) {
    say(&format!("{} is skipped: {why}", thread::current().name().unwrap_or("a test")));
}

/// Says something, also where what tests print is not shown.
pub fn say(words: &str) {
    // Whoever does not listen misses nothing.
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// Allows so many open files, to this process and those that it starts, if the system does.
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
    fn who_does_not_end_is_killed() {
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
