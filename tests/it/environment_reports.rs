//! The reports that `PACELINE_REPORT` makes every runtime print, without a line of code in the program.

use std::io::{BufRead, BufReader, Read, Write};
use std::panic;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use paceline::{Executor, Runtime, Timer, block_on};

use crate::setups::{Latch, child};

const NAME: &str = "environment_reports::stalls_of_every_runtime_are_printed_if_the_environment_asks";

/// Runs tasks that block: of a runtime with a hook of its own, of the default instance, and of an executor in
/// a free `block_on`. The tasks block until standard input ends, when the parent has read all awaited lines.
fn program() {
    let latch = Latch::new();
    let waits = latch.clone();
    thread::spawn(move || {
        if panic::catch_unwind(|| waits.wait()).is_err() {
            // The awaited lines do not come, and the parent waits for the end.
            std::process::exit(1);
        }
    });
    let blocks = |name: &'static str| {
        let latch = latch.clone();
        async move {
            eprintln!("{name} blocks");
            latch.wait();
        }
    };
    let hook = |stall: &paceline::Stall| eprintln!("the hook: {stall}");
    let runtime = Runtime::builder().threads(1).thread_name("own").on_stall(hook).build().unwrap();
    let own = runtime.spawn(blocks("own"));
    let default = paceline::spawn(blocks("default"));
    let guest = blocks("executor");
    let thread = thread::spawn(move || {
        let executor = Executor::new();
        block_on(executor.run(async {
            Timer::after(Duration::from_millis(1)).await;
            executor.spawn(guest).await;
        }));
    });
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    latch.open();
    runtime.block_on(own);
    block_on(default);
    thread.join().unwrap();
    assert!(runtime.metrics().stalls >= 1);
}

/// Runs the program with this in its environment until it has printed all of `awaited`; returns its lines.
fn run(report: Option<&str>, awaited: &[&str]) -> Vec<String> {
    let mut command = child(NAME, ":");
    command
        .env("RUST_BACKTRACE", "0")
        .env_remove("PACELINE_REPORT")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    report.map(|report| command.env("PACELINE_REPORT", report));
    let mut child = command.spawn().unwrap();
    let (mut stdin, mut lines) = (child.stdin.take(), Vec::<String>::new());
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        lines.push(line.unwrap());
        if awaited.iter().all(|text| lines.iter().any(|line| line.contains(text))) {
            drop(stdin.take());
        }
    }
    let status = child.wait().unwrap();
    assert!(status.success() && stdin.is_none(), "{status}, waited for {awaited:#?} in {lines:#?}");
    lines
}

#[test]
fn stalls_of_every_runtime_are_printed_if_the_environment_asks() {
    if std::env::var("PACELINE_TEST_CHILD").is_ok_and(|name| name == NAME) {
        return program();
    }
    let spawned = |what: &str| {
        let source = include_str!("environment_reports.rs");
        let line = source.lines().position(|line| line.trim_start().starts_with(what)).unwrap() + 1;
        format!("paceline: the task spawned at tests/it/environment_reports.rs:{line}:")
    };
    let places = [spawned("let own"), spawned("let default"), spawned("executor.spawn")];
    let mut awaited: Vec<_> = places.iter().map(String::as_str).collect();
    awaited.extend(["the hook: ", "paceline: the task spawned at", "still blocks own-1, for "]);
    let lines = run(Some("panics,stalls"), &awaited);
    let having = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!(having("PACELINE_REPORT names \"panics\", which is no report"), 1, "{lines:#?}");
    for place in &places {
        let first: Vec<_> = lines.iter().filter(|line| line.starts_with(place)).collect();
        assert!(first[0].contains(" has blocked "), "{lines:#?}");
        assert!(
            first[1..].iter().all(|line| line.contains(" still blocks ") || line.ends_with(" in all")),
            "{lines:#?}"
        );
    }

    let quiet = run(None, &["the hook: ", "default blocks", "executor blocks"]);
    assert!(!quiet.iter().any(|line| line.contains("paceline: ")), "{quiet:#?}");
}

/// Blocks a task for as long as the parent's first line does not come, and ends with standard input.
fn program_with_one_stall() {
    let latch = Latch::new();
    let waits = latch.clone();
    let runtime = Runtime::builder().threads(1).thread_name("own").build().unwrap();
    let task = runtime.spawn(async move { waits.wait() });
    std::io::stdin().read_line(&mut String::new()).unwrap();
    latch.open();
    runtime.block_on(task);
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Fails if the last line has the time of the first report.
#[test]
fn the_start_of_a_runtime_and_the_length_of_a_stall_are_printed() {
    const NAME: &str = "environment_reports::the_start_of_a_runtime_and_the_length_of_a_stall_are_printed";
    if std::env::var("PACELINE_TEST_CHILD").is_ok_and(|name| name == NAME) {
        return program_with_one_stall();
    }
    let mut command = child(NAME, ":");
    command.env("PACELINE_REPORT", "start,stalls").stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let (mut stdin, mut lines) = (child.stdin.take(), Vec::<String>::new());
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        lines.push(line.unwrap());
        let last = lines.last().unwrap();
        if last.contains(" still blocks own-1, for ") {
            stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        } else if last.contains(" blocked own-1 for ") && last.ends_with(" in all") {
            stdin = None;
        }
    }
    assert!(child.wait().unwrap().success() && stdin.is_none(), "{lines:#?}");
    let start = format!("paceline: version {} runs, with 1 worker; features: ", env!("CARGO_PKG_VERSION"));
    assert_eq!(lines.iter().filter(|line| line.starts_with(&start)).count(), 1, "{lines:#?}");
    let last = lines.iter().filter(|line| line.ends_with(" in all")).collect::<Vec<_>>();
    assert_eq!(last.len(), 1, "{lines:#?}");
    let length = last[0].split(" for ").nth(1).and_then(|rest| rest.strip_suffix(" in all")).unwrap();
    let is_seconds = length.ends_with('s') && !length.ends_with("ms");
    let value: f64 = length.trim_end_matches(['m', 's', 'i', 'n']).parse().unwrap();
    // The task was let go after the second report.
    assert!(is_seconds || length.ends_with("min") || value >= 100.0, "{length}");
}
