//! Sets a cfg for each feature of the standard library or the target for which one name reads better than a
//! list of versions or systems.

use std::env;
use std::process::Command;

/// The minor version of Rust that brought `std::io::PipeReader` and `std::io::PipeWriter`.
const PIPES: u32 = 87;

/// The systems on which `polling` waits with epoll.
const EPOLL: [&str; 2] = ["android", "linux"];

/// The systems on which `polling` waits with event ports.
const PORTS: [&str; 2] = ["illumos", "solaris"];

/// The systems besides Apple's on which `polling` waits with kqueue.
const KQUEUE: [&str; 4] = ["freebsd", "netbsd", "openbsd", "dragonfly"];

/// The systems with flags for `socket` and `accept4`.
const SOCKET_FLAGS: [&str; 8] =
    ["android", "dragonfly", "freebsd", "fuchsia", "illumos", "linux", "netbsd", "openbsd"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(paceline_epoll, paceline_kqueue, paceline_ports)");
    println!("cargo::rustc-check-cfg=cfg(paceline_no_pipe, paceline_socket_flags)");
    // A compiler without a version is taken for a recent one.
    if minor_version().is_some_and(|minor| minor < PIPES) {
        println!("cargo::rustc-cfg=paceline_no_pipe");
    }
    let os = target("OS");
    let has_kqueue = KQUEUE.contains(&os.as_str()) || target("VENDOR") == "apple";
    let ways = [
        ("epoll", EPOLL.contains(&os.as_str())),
        ("ports", PORTS.contains(&os.as_str())),
        ("kqueue", has_kqueue),
    ];
    let polls = env::var_os("CARGO_CFG_POLLING_TEST_POLL_BACKEND").is_some();
    for (way, _) in ways.iter().filter(|(_, is_there)| *is_there && !polls) {
        println!("cargo::rustc-cfg=paceline_{way}");
    }
    if SOCKET_FLAGS.contains(&os.as_str()) {
        println!("cargo::rustc-cfg=paceline_socket_flags");
    }
}

/// Returns the `85` of `rustc 1.85.0 (4d91de4e4 2025-02-17)`.
fn minor_version() -> Option<u32> {
    let output = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().nth(1)?.split('.').nth(1)?.parse().ok()
}

/// Returns the target's value for the last part of a variable's name.
fn target(what: &str) -> String {
    env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default()
}
