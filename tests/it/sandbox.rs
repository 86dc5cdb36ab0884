//! Sandboxes: if a seccomp filter refuses system calls that a runtime needs, there is no runtime, and an
//! error says so.

use std::ffi::{c_int, c_long};
use std::io::{self, ErrorKind};
use std::panic::catch_unwind;
use std::thread;
use std::time::Duration;

use paceline::{Runtime, Timer, block_on};

use crate::setups::is_child;

/// A call that a sandbox may refuse, with its number.
type Call = (&'static str, u32);

#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const TIMERFD_CREATE: super::Call = ("timerfd_create", 283);
    pub(super) const TIMERFD_SETTIME: super::Call = ("timerfd_settime", 286);
    pub(super) const EVENTFD2: super::Call = ("eventfd2", 290);
    pub(super) const EPOLL_CREATE1: super::Call = ("epoll_create1", 291);
    pub(super) const EPOLL_CTL: super::Call = ("epoll_ctl", 233);
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub(super) const TIMERFD_CREATE: super::Call = ("timerfd_create", 85);
    pub(super) const TIMERFD_SETTIME: super::Call = ("timerfd_settime", 86);
    pub(super) const EVENTFD2: super::Call = ("eventfd2", 19);
    pub(super) const EPOLL_CREATE1: super::Call = ("epoll_create1", 20);
    pub(super) const EPOLL_CTL: super::Call = ("epoll_ctl", 21);
}

use number::{EPOLL_CREATE1, EPOLL_CTL, EVENTFD2, TIMERFD_CREATE, TIMERFD_SETTIME};

const EPERM: u32 = 1;
const ENOMEM: u32 = 12;
const EMFILE: u32 = 24;
const ENOSYS: u32 = 38;

/// C's `sock_filter`.
#[repr(C)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    k: u32,
}

/// C's `sock_fprog`.
#[repr(C)]
struct Program {
    len: u16,
    instructions: *const Instruction,
}

/// Makes the system refuse these calls with this error, on this thread and on threads that it starts from now
/// on.
fn refuse(calls: &[Call], errno: u32) {
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const FAIL: u32 = 0x0005_0000;
    const ALLOW: u32 = 0x7fff_0000;
    const SET_SECCOMP: c_int = 22;
    const SET_NO_NEW_PRIVS: c_int = 38;
    const FILTER: c_long = 2;
    unsafe extern "C" {
        fn prctl(option: c_int, ...) -> c_int;
    }
    let instruction = |code, if_false, k| Instruction { code, if_true: 0, if_false, k };
    // The number of the call comes first.
    let mut instructions = vec![instruction(LOAD, 0, 0)];
    for (_, number) in calls {
        instructions.extend([instruction(JUMP_IF_EQUAL, 1, *number), instruction(RETURN, 0, FAIL | errno)]);
    }
    instructions.push(instruction(RETURN, 0, ALLOW));
    let program = Program { len: instructions.len() as u16, instructions: instructions.as_ptr() };
    // SAFETY: the program is valid for as many instructions as it states, and the kernel copies it.
    let results = unsafe {
        [
            prctl(SET_NO_NEW_PRIVS, 1 as c_long, 0 as c_long, 0 as c_long, 0 as c_long),
            prctl(SET_SECCOMP, FILTER, &raw const program),
        ]
    };
    assert_eq!(results, [0; 2], "a filter cannot be installed: {}", std::io::Error::last_os_error());
}

/// Returns the calls that a runtime needs. A build for poll(2) makes no epoll and no eventfd.
fn needed() -> &'static [Call] {
    const EACH: [Call; 5] = [TIMERFD_CREATE, TIMERFD_SETTIME, EVENTFD2, EPOLL_CREATE1, EPOLL_CTL];
    if cfg!(polling_test_poll_backend) { &EACH[..2] } else { &EACH }
}

/// Refuses a call in a thread, and returns the error of a runtime there.
fn error_without(call: Call, errno: u32) -> io::Error {
    let sandboxed = thread::spawn(move || {
        refuse(&[call], errno);
        Runtime::builder().threads(1).build().map(drop)
    });
    sandboxed.join().unwrap().expect_err("the system refuses a call")
}

/// Fails if the error does not say what is needed.
#[test]
fn a_refused_call_is_an_error() {
    if !is_child("sandbox::a_refused_call_is_an_error", ":") {
        return;
    }
    for call in needed() {
        for (errno, kind) in [(EPERM, ErrorKind::PermissionDenied), (ENOSYS, ErrorKind::Unsupported)] {
            let error = error_without(*call, errno);
            assert_eq!(error.kind(), kind, "{call:?}");
            assert!(error.to_string().starts_with("cannot make a reactor: "), "{call:?}: {error}");
        }
    }
    let text = error_without(TIMERFD_CREATE, EPERM).to_string();
    assert!(text.ends_with("Operation not permitted (os error 1)"), "{text}");
}

/// The default instance cannot return an error.
#[test]
fn the_default_instance_in_a_sandbox_panics() {
    if !is_child("sandbox::the_default_instance_in_a_sandbox_panics", ":") {
        return;
    }
    refuse(&needed()[..1], EPERM);
    assert_eq!(block_on(async { 7 }), 7, "it needs no instance");
    let waits: [(fn(), &str); 2] = [
        (|| block_on(std::future::pending()), "the default instance cannot be started: "),
        (|| _ = block_on(Timer::after(Duration::from_millis(1))), "no reactor can be made for a timer: "),
    ];
    for (waits, says) in waits {
        let panic = catch_unwind(waits).unwrap_err();
        let text = panic.downcast_ref::<String>().expect("a text");
        assert!(text.starts_with(says), "{text}");
    }
}

/// Fails if the error does not say what the process is short of.
#[test]
fn exhaustion_is_an_error() {
    if !is_child("sandbox::exhaustion_is_an_error", ":") {
        return;
    }
    for errno in [EMFILE, ENOMEM] {
        for call in needed() {
            let error = error_without(*call, errno);
            assert_ne!(error.kind(), ErrorKind::PermissionDenied);
            assert!(error.to_string().contains("os error"), "{error}");
        }
    }
}
