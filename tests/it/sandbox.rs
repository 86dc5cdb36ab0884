//! Sandboxes: if a seccomp filter refuses system calls that a runtime usually makes, the runtime works in
//! another way.

use std::ffi::{c_int, c_long};
use std::io::ErrorKind;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future;
use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::{Runtime, Timer, block_on, unblock};

use crate::setups::{Latch, OpenOnDrop, Ping, SOON, is_child};

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

/// Uses timers, sockets, tasks, a task that blocks its thread, and a closure that blocks.
fn works(runtime: &Runtime) {
    let start = Instant::now();
    runtime.block_on(async {
        Timer::after(Duration::from_millis(5)).await;
        assert!(start.elapsed() >= Duration::from_millis(5));
        let listener = TcpListener::bind("localhost:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let server = runtime.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 1 << 20];
            stream.read_exact(&mut bytes).await.unwrap();
            stream.write_all(&bytes).await.unwrap();
        });
        let mut client = TcpStream::connect(addr).await.unwrap();
        let (mut reader, mut writer) = client.clone().split();
        let sent = vec![7; 1 << 20];
        let mut received = Vec::new();
        let (written, read) = future::zip(writer.write_all(&sent), reader.read_to_end(&mut received)).await;
        written.unwrap();
        read.unwrap();
        assert!(received == sent);
        server.await;
        client.close().await.unwrap();
        assert_eq!(unblock(|| 7).await, 7);
    });
    // The deputy looks: a thread leads while the workers block.
    let mut ping = Ping::new(runtime);
    let latch = Latch::new();
    let end = OpenOnDrop(latch.clone());
    let blocked: Vec<_> = (0..2)
        .map(|_| {
            let latch = latch.clone();
            runtime.spawn(async move { latch.wait() })
        })
        .collect();
    (0..20).for_each(|_| _ = ping.ping());
    drop(end);
    blocked.into_iter().for_each(|task| runtime.block_on(task));
    runtime.shutdown(SOON).unwrap();
}

fn refused_is_worked_around(calls: &[Call], errno: u32) {
    let calls = calls.to_vec();
    let sandboxed = thread::spawn(move || {
        refuse(&calls, errno);
        for portable in [false, true] {
            let runtime = Runtime::builder().threads(2).portable(portable).build();
            works(&runtime.unwrap_or_else(|error| panic!("{calls:?}, portable {portable}: {error}")));
        }
    });
    sandboxed.join().unwrap();
}

const EACH: [&[Call]; 6] = [
    &[TIMERFD_CREATE],
    &[TIMERFD_SETTIME],
    &[EVENTFD2],
    &[EPOLL_CREATE1],
    &[EPOLL_CTL],
    &[TIMERFD_CREATE, EVENTFD2, EPOLL_CREATE1],
];

/// Fails if an error of the self-check is returned, if the deputy has no other way to sleep, or if there is
/// no way to wait without epoll.
#[test]
fn a_refused_call_has_another_way() {
    if !is_child("sandbox::a_refused_call_has_another_way", ":") {
        return;
    }
    for calls in EACH {
        for errno in [EPERM, ENOSYS] {
            refused_is_worked_around(calls, errno);
        }
    }
}

/// The default instance and timers, which cannot return an error.
#[test]
fn the_default_instance_in_a_sandbox() {
    if !is_child("sandbox::the_default_instance_in_a_sandbox", ":") {
        return;
    }
    refuse(EACH[5], EPERM);
    block_on(async {
        Timer::after(Duration::from_millis(1)).await;
        assert_eq!(paceline::spawn(async { 7 }).await, 7);
        let (ours, theirs) = paceline::net::unix::UnixStream::pair().unwrap();
        let (mut ours, mut theirs) = (ours, theirs);
        let echo = paceline::spawn(async move {
            let mut byte = [0];
            theirs.read_exact(&mut byte).await.unwrap();
            theirs.write_all(&byte).await.unwrap();
        });
        ours.write_all(b"x").await.unwrap();
        ours.read_exact(&mut [0]).await.unwrap();
        echo.await;
    });
}

/// Exhausted resources are an error: another way would need as many.
#[test]
fn exhaustion_is_an_error() {
    if !is_child("sandbox::exhaustion_is_an_error", ":") {
        return;
    }
    // A build for poll(2) makes no epoll and no eventfd.
    let made = if cfg!(polling_test_poll_backend) { &EACH[..2] } else { &EACH[..5] };
    for errno in [EMFILE, ENOMEM] {
        for calls in made {
            let calls = calls.to_vec();
            let error = thread::spawn(move || {
                refuse(&calls, errno);
                Runtime::builder().threads(1).build().map(drop)
            });
            let error = error.join().unwrap().expect_err("there is no room");
            assert_ne!(error.kind(), ErrorKind::PermissionDenied);
            assert!(error.to_string().contains("os error"), "{error}");
        }
    }
}
