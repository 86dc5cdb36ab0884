//! The example in a process, and a socket to talk to it.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, SystemTime};
use std::{env, fs, io, thread};

use rustix::process::{Pid, Signal, kill_process};

use crate::programs::command;

/// Longer than any step takes, even on a loaded machine.
pub const LONG: Duration = Duration::from_secs(60);

pub struct Served {
    child: Child,
    output: BufReader<ChildStdout>,
    errors: Option<BufReader<ChildStderr>>,
    pub address: SocketAddr,
    /// Ends the thread that kills a server that hangs.
    _ended: Sender<()>,
}

/// Starts the example with this limit of connections.
pub fn serve(limit: usize) -> Served {
    start(limit, Stdio::inherit())
}

/// The same; [`Served::complains`] returns the lines on stderr.
pub fn serve_and_listen(limit: usize) -> Served {
    start(limit, Stdio::piped())
}

fn start(limit: usize, errors: Stdio) -> Served {
    let mut child = command(example())
        .args(["127.0.0.1:0", &limit.to_string()])
        .env("PACELINE_THREADS", "2")
        // The memory of a large value goes back to the system at once.
        .env("MALLOC_MMAP_THRESHOLD_", "65536")
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .expect("it can be started");
    let (pid, (ended, end)) = (Pid::from_child(&child), mpsc::channel::<()>());
    thread::spawn(move || {
        if end.recv_timeout(3 * LONG) == Err(RecvTimeoutError::Timeout) {
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let address = line.strip_prefix("serving on ").and_then(|line| line.split(',').next()).expect(&line);
    let errors = child.stderr.take().map(BufReader::new);
    Served { address: address.parse().expect(&line), child, output, errors, _ended: ended }
}

/// Returns the path of the example, which `cargo test` builds beside this test.
fn example() -> PathBuf {
    let here = env::current_exe().unwrap();
    let path = here.parent().and_then(|deps| deps.parent()).unwrap().join("examples/redis");
    let built = fs::metadata(&path).and_then(|file| file.modified());
    let folder = |name| fs::read_dir(format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let sources = folder("redis").chain(folder("common"));
    let changed = sources.map(|file| file.unwrap().metadata().unwrap().modified().unwrap()).max().unwrap();
    let is_new = built.unwrap_or(SystemTime::UNIX_EPOCH) > changed;
    assert!(is_new, "{} is not there, or old: cargo build --example redis", path.display());
    path
}

impl Served {
    pub fn port(&self) -> String {
        self.address.port().to_string()
    }

    pub fn connect(&self) -> Peer {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        Peer(BufReader::new(stream))
    }

    /// Checks that the server answers.
    pub fn is_well(&self) {
        assert_eq!(self.connect().ask("PING\r\n"), "+PONG");
    }

    pub fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Returns the next line on stderr.
    pub fn complains(&mut self) -> String {
        let mut line = String::new();
        self.errors.as_mut().expect("it is listened to").read_line(&mut line).unwrap();
        line.trim_end().to_string()
    }

    /// Returns the exit code.
    pub fn code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    pub fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Returns the rest of the output, after the server was told to end.
    pub fn end(mut self) -> String {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {rest}");
        rest
    }

    /// Returns the server's memory, in KiB: the current value, or the maximum.
    #[cfg(target_os = "linux")]
    pub fn memory(&self, what: &str) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(what)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The process has already ended after `end`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Peer(pub BufReader<TcpStream>);

impl Peer {
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends bytes, and returns the first line of the answer.
    pub fn ask(&mut self, bytes: impl AsRef<[u8]>) -> String {
        self.send(bytes);
        self.line()
    }

    /// Returns the next line; an empty one at the end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).or_else(unless_reset).unwrap();
        line.trim_end().to_string()
    }

    /// Returns all bytes until the server ends the connection, perhaps by a reset.
    pub fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).or_else(unless_reset).unwrap();
        String::from_utf8(rest).unwrap()
    }
}

/// A client that still sends after the server has closed the connection gets a reset, which is an end, too.
fn unless_reset(error: io::Error) -> io::Result<usize> {
    if error.kind() == ErrorKind::ConnectionReset { Ok(0) } else { Err(error) }
}
