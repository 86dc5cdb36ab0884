//! An example as a process.

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs, thread};

use rustix::process::{Pid, Signal, kill_process};

/// Nothing here takes this long, however loaded the machine is.
pub const LONG: Duration = Duration::from_secs(60);

pub struct Example {
    child: Child,
    lines: Receiver<String>,
    /// What it has printed so far.
    pub said: Vec<String>,
}

/// `cargo test` builds it, beside this test.
pub fn path(name: &str) -> PathBuf {
    let here = env::current_exe().unwrap();
    let path = here.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
    let built = fs::metadata(&path).and_then(|file| file.modified());
    let sources = fs::read_dir(format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let changed = sources.map(|file| file.unwrap().metadata().unwrap().modified().unwrap()).max().unwrap();
    let is_new = built.unwrap_or(SystemTime::UNIX_EPOCH) > changed;
    assert!(is_new, "{} is not there, or old: cargo build --example {name}", path.display());
    path
}

/// Starts an example, in a shell that runs this before.
pub fn start(name: &str, shell: &str, args: &[&str]) -> Example {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{shell}; exec \"$0\" \"$@\"")).arg(path(name)).args(args);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it can be started");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let (tell, lines) = mpsc::channel();
    thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
    Example { child, lines, said: Vec::new() }
}

impl Example {
    /// Waits for a line with these words, and gives it.
    #[track_caller]
    pub fn says(&mut self, words: &str) -> String {
        let start = Instant::now();
        loop {
            let left = LONG.saturating_sub(start.elapsed());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("it did not say {words:?}, but: {:#?}", self.said)
            };
            self.said.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it was not waited for");
    }

    /// Waits for its end, and gives all that it said.
    #[track_caller]
    pub fn end(mut self) -> String {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < LONG, "it has not ended, and said: {:#?}", self.said);
            thread::sleep(Duration::from_millis(2));
        };
        self.said.extend(self.lines.iter());
        let said = self.said.join("\n");
        assert!(status.success(), "{status}: {said}");
        said
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // After `end` there is nothing left to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What an example says of arguments that it cannot use.
pub fn refuses(name: &str, args: &[&str]) -> (ExitStatus, String) {
    let Output { status, stderr, .. } =
        Command::new(path(name)).args(args).output().expect("it can be started");
    (status, String::from_utf8_lossy(&stderr).into_owned())
}

/// Runs a program that is not ours with this input; nothing where it is not installed, which is said aloud.
pub fn other(program: &str, args: &[&str], input: &[u8]) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            // Past the harness, which keeps what a test prints to itself.
            let _ = writeln!(io::stderr(), "SKIPPED: {program} cannot be run ({error})");
            return None;
        }
    };
    let (mut stdin, input) = (child.stdin.take().expect("it is piped"), input.to_vec());
    // It may end before it has read all that.
    let writes = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writes.join().unwrap();
    Some(output)
}
