//! An example in a process.

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs, thread};

use rustix::process::{Pid, Signal, kill_process};

use crate::programs::{command, output};

/// Longer than any step takes, even on a loaded machine.
pub const LONG: Duration = Duration::from_secs(60);

pub struct Example {
    child: Child,
    lines: Receiver<String>,
    /// The output so far.
    pub said: Vec<String>,
}

/// Returns the path of the example, which `cargo test` builds beside this test.
pub fn path(name: &str) -> PathBuf {
    let here = env::current_exe().unwrap();
    let path = here.parent().and_then(|deps| deps.parent()).unwrap().join("examples").join(name);
    let built = fs::metadata(&path).and_then(|file| file.modified());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/");
    let files = |name: &str| fs::read_dir(format!("{folder}{name}")).into_iter().flatten();
    let sources = files(name).chain(files("common")).map(|file| file.unwrap().metadata());
    let sources = sources.chain([fs::metadata(format!("{folder}{name}.rs"))]).flatten();
    let changed = sources.map(|file| file.modified().unwrap()).max().unwrap();
    let is_new = built.unwrap_or(SystemTime::UNIX_EPOCH) > changed;
    assert!(is_new, "{} is not there, or old: cargo build --example {name}", path.display());
    path
}

/// Starts an example in a shell that runs `shell` first.
pub fn start(name: &str, shell: &str, args: &[&str]) -> Example {
    let mut command = command("sh");
    command.arg("-c").arg(format!("{shell}; exec \"$0\" \"$@\"")).arg(path(name)).args(args);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("it can be started");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let (tell, lines) = mpsc::channel();
    thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
    Example { child, lines, said: Vec::new() }
}

impl Example {
    /// Waits for a line with these words, and returns it.
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

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it was not waited for");
    }

    /// Waits for the end of the process, and returns all of its output.
    #[track_caller]
    pub fn end(self) -> String {
        let (code, said) = self.code();
        assert_eq!(code, Some(0), "{said}");
        said
    }

    /// The same, with the exit code.
    #[track_caller]
    pub fn code(mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < LONG, "it has not ended, and said: {:#?}", self.said);
            thread::sleep(Duration::from_millis(2));
        };
        self.said.extend(self.lines.iter());
        (status.code(), self.said.join("\n"))
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        // The process has already ended after `end`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a third-party program with this input; returns `None` with a message if it is not installed.
pub fn other(program: &str, args: &[&str], input: &[u8]) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            // Written directly, because the test harness captures the output of a test.
            let _ = writeln!(io::stderr(), "SKIPPED: {program} cannot be run ({error})");
            return None;
        }
    };
    let (mut stdin, input) = (child.stdin.take().expect("it is piped"), input.to_vec());
    // The program may end before it has read all of its input.
    let writes = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = output(child, 4 * LONG);
    writes.join().unwrap();
    Some(output)
}
