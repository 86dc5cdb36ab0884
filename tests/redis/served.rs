//! The example as a process, and a socket to talk to it.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};
use std::{env, fs, io};

use rustix::process::{Pid, Signal, kill_process};

/// Nothing here takes this long, however loaded the machine is.
const LONG: Duration = Duration::from_secs(60);

pub struct Served {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    pub address: SocketAddr,
}

/// Starts the example, for so many connections.
pub fn serve(limit: usize) -> Served {
    let mut child = Command::new(example())
        .args(["127.0.0.1:0", &limit.to_string()])
        .env("PACELINE_THREADS", "2")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let address = line.strip_prefix("serving on ").and_then(|line| line.split(',').next()).expect(&line);
    Served { address: address.parse().expect(&line), child, output }
}

/// `cargo test` builds it, beside this test.
fn example() -> PathBuf {
    let here = env::current_exe().unwrap();
    let path = here.parent().and_then(|deps| deps.parent()).unwrap().join("examples/redis");
    let built = fs::metadata(&path).and_then(|file| file.modified());
    let sources = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/redis")).unwrap();
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

    /// It is there, and serves.
    pub fn is_well(&self) {
        assert_eq!(self.connect().ask("PING\r\n"), "+PONG");
    }

    pub fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// The rest of what it says, after it was told to end.
    pub fn end(mut self) -> String {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {rest}");
        rest
    }

    /// Its memory, in KiB: now, or the most it ever had.
    #[cfg(target_os = "linux")]
    pub fn memory(&self, what: &str) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(what)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // After `end` there is nothing left to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Peer(pub BufReader<TcpStream>);

impl Peer {
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.get_mut().write_all(bytes.as_ref()).unwrap();
    }

    /// Sends it, and gives the first line of the answer.
    pub fn ask(&mut self, bytes: impl AsRef<[u8]>) -> String {
        self.send(bytes);
        self.line()
    }

    /// The next line; an empty one at the end.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).or_else(unless_reset).unwrap();
        line.trim_end().to_string()
    }

    /// What comes until the server ends the connection, if need be by a reset.
    pub fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).or_else(unless_reset).unwrap();
        String::from_utf8(rest).unwrap()
    }
}

/// Who sends on when the server has ended the connection is reset: that is an end as well.
fn unless_reset(error: io::Error) -> io::Result<usize> {
    if error.kind() == ErrorKind::ConnectionReset { Ok(0) } else { Err(error) }
}
