//! Other code closes descriptors of a runtime: the process aborts with one message, instead of a hang.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::Duration;

use paceline::{Runtime, Timer};

use crate::setups::{child, output};

/// Closes all descriptors of this process that are called so.
fn close_all(name: &str) {
    let mut closed = 0;
    for entry in fs::read_dir("/proc/self/fd").unwrap() {
        let path = entry.unwrap().path();
        if fs::read_link(&path).is_ok_and(|target| target.to_string_lossy().contains(name)) {
            let number = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
            // SAFETY: not kept on purpose, which is what the test is about.
            unsafe { rustix::io::close(number) };
            closed += 1;
        }
    }
    assert_ne!(closed, 0, "there is no {name}");
}

/// In a child, closes the descriptors called `closed` while all threads of a runtime sleep, and then has them
/// called. Checks what the child says.
#[track_caller]
fn aborts(test: &str, closed: &str) {
    if std::env::var("PACELINE_TEST_CHILD").is_ok_and(|name| name == test) {
        let runtime = Runtime::builder().threads(4).build().unwrap();
        let tick = || runtime.spawn(Timer::after(Duration::from_millis(1)));
        runtime.block_on(tick());
        close_all(closed);
        loop {
            tick().detach();
            thread::sleep(Duration::from_millis(1));
        }
    }
    let output = output(child(test, "ulimit -c 0"));
    let text = String::from_utf8_lossy(&output.stderr);
    const ABORTED: i32 = 6;
    assert_eq!(output.status.signal(), Some(ABORTED), "{text}");
    let line = "paceline: aborted, because the runtime cannot wait for events any more";
    assert_eq!(text.matches(line).count(), 1, "{text}");
}

/// Fails if a worker that cannot wait panics and tries again, for ever.
#[cfg_attr(polling_test_poll_backend, ignore = "a build for poll(2) has none")]
#[test]
fn a_closed_epoll_instance_aborts_the_process() {
    aborts("closed_descriptors::a_closed_epoll_instance_aborts_the_process", "[eventpoll]");
}

/// Fails if an interrupt that does not reach the leader is ignored: the leader sleeps on.
#[cfg_attr(polling_test_poll_backend, ignore = "a build for poll(2) has none")]
#[test]
fn a_closed_bell_aborts_the_process() {
    aborts("closed_descriptors::a_closed_bell_aborts_the_process", "[eventfd]");
}

/// The clock of the reactor, and the switch of the deputy. Fails if the deputy ignores that it cannot sleep.
#[test]
fn a_closed_timer_aborts_the_process() {
    aborts("closed_descriptors::a_closed_timer_aborts_the_process", "[timerfd]");
}
