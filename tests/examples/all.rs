//! The help and the errors of each example, and the output of the small ones.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::process::{path, start};
use crate::programs::{explains_itself, names_an_address_in_use, refuses};

/// Each example, arguments that it refuses, and the arguments before an address on which it serves.
type Row = (&'static str, &'static [&'static [&'static str]], Option<&'static [&'static str]>);

const ALL: [Row; 10] = [
    ("blocking", &[&["1"]], None),
    ("dispatcher", &[&["1"]], None),
    ("drain", &[&["long"], &["-1"], &["1", "2"]], None),
    (
        "echo",
        &[
            &["--serve"],
            &["--serve", "here"],
            &["--connections", "many"],
            &["7000"],
            &["--serve", "127.0.0.1:0", "x"],
        ],
        Some(&["--serve"]),
    ),
    ("local", &[&["1"]], None),
    (
        "redis",
        &[&["nonsense"], &["127.0.0.1:0", "many"], &["127.0.0.1:0", "0"], &["127.0.0.1:0", "1", "2"]],
        Some(&[]),
    ),
    ("roles", &[&["--svg"], &["--live"], &["--svg", "a", "b"]], None),
    (
        "shards",
        &[&["here"], &["127.0.0.1:0", "0"], &["127.0.0.1:0", "many"]],
        if cfg!(target_os = "linux") { Some(&[]) } else { None },
    ),
    ("stall", &[&["1"]], None),
    ("timers", &[&["1"]], None),
];

#[test]
fn each_explains_itself_and_refuses_what_it_cannot_use() {
    for (name, wrong, _) in ALL {
        explains_itself(path(name).to_str().expect("text"), wrong);
    }
}

#[test]
fn an_address_in_use_is_an_error_that_names_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    for (name, _, before) in ALL {
        if let Some(before) = before {
            names_an_address_in_use(path(name).to_str().expect("text"), before, &addr);
        }
    }
}

#[test]
fn an_argument_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;

    let mut command = crate::programs::command(path("local"));
    let output = command.arg(std::ffi::OsStr::from_bytes(b"\xff")).output().expect("it can be started");
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_table_has_all() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_example = |path: &std::path::PathBuf| {
        path.extension().is_some_and(|extension| extension == "rs") || path.join("main.rs").exists()
    };
    let mut found: BTreeSet<_> = entries
        .filter(is_example)
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    // These need a feature, so this build has no program of them: `.ci/run examples` runs them.
    assert!(found.remove("gossip") && found.remove("simulation"));
    assert_eq!(found, ALL.map(|(name, ..)| name.to_owned()).into());
}

/// The drain would take half a minute: one client stays silent.
#[test]
fn a_second_signal_ends_a_drain_at_once() {
    let mut drain = start("drain", ":", &["30"]);
    drain.says("SIGTERM: ");
    drain.signal(Signal::INT);
    let (code, said) = drain.code();
    assert_eq!(code, Some(130), "{said}");
}

#[test]
fn a_drain_cuts_off_the_silent_client_only() {
    let said = start("drain", ":", &["5"]).end();
    assert!(
        said.contains("20 of 20 clients had all their answers") && said.contains("1 was cancelled"),
        "{said}"
    );
}

/// Each of the three functions has its task run where it says.
#[test]
fn the_dispatcher_runs_each_task_in_its_place() {
    let said = start("dispatcher", ":", &[]).end();
    assert!(said.contains("in the background: paceline-"), "{said}");
    assert!(said.contains("20 ms later: ") && said.contains("on the main one:   main"), "{said}");
}

/// On any machine: the pause is no shorter than requested, and no more messages are counted than were sent.
#[test]
fn timers_measures_what_it_says() {
    let said = start("timers", ":", &[]).end();
    let value = |words: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(words)).expect(&said);
        line.to_string()
    };
    let messages: u32 = value("messages before it was quiet: ").parse().expect(&said);
    assert!(messages <= 5, "{said}");
    let quiet = value("quiet for ");
    let number = quiet.trim_end_matches(char::is_alphabetic);
    let unit = match &quiet[number.len()..] {
        "s" => 1.0,
        "ms" => 1e-3,
        other => panic!("less than a millisecond: {number}{other}"),
    };
    let quiet = Duration::from_secs_f64(number.parse::<f64>().expect(&said) * unit);
    assert!(quiet >= Duration::from_millis(100), "{said}");
}

#[test]
fn stall_names_the_guilty_task_and_compares_with_a_plain_thread() {
    let said = start("stall", ":", &[]).end();
    assert!(said.contains("stall: ") && said.contains("examples/stall.rs:"), "{said}");
    assert!(said.contains("meanwhile no tick of 10ms took longer than "), "{said}");
    assert!(
        said.contains("of a thread that sleeps, and is not the runtime's, none took longer than "),
        "{said}"
    );
    assert!(refuses(path("stall").to_str().expect("text"), &["x"], 2).contains("takes no arguments"));
}
