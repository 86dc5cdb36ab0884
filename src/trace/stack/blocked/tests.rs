use std::ffi::{OsStr, c_int};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::{Barrier, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::probe::ThreadState;
use crate::stack::Stack;

#[inline(never)]
fn outer(blocks: &dyn Fn()) {
    blocks();
    // No tail call.
    std::hint::black_box(());
}

/// Returns the names of the functions on the stack of a thread that `blocks` until `unblock` is called.
fn names(blocks: impl Fn() + Sync, unblock: impl FnOnce()) -> Vec<String> {
    let (tell, told) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            tell.send(ThreadState::here()).unwrap();
            outer(&blocks);
        });
        let (state, begun) = (told.recv().unwrap(), Instant::now());
        // It may sleep for a moment before it blocks, in the allocator for example.
        let names = loop {
            let stack = Stack::of_blocked(state.number(), || true);
            let names: Vec<_> = stack.iter().flat_map(Stack::frames).map(|frame| frame.name).collect();
            if names.iter().any(|name| name.contains("outer")) {
                break names;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{names:#?}");
            thread::yield_now();
        };
        assert_eq!(Stack::of_blocked(state.number(), || false), None, "it has gone on");
        unblock();
        names
    })
}

/// The closure of the test calls, and `outer` calls the closure. In a build with lines only, names are
/// short.
#[track_caller]
fn check_order(names: &[String], test: &str) {
    let closure = |name: &String| name.contains(&format!("{test}::{{{{closure}}}}")) || name == "{closure#0}";
    let (closure, outer) =
        (names.iter().position(closure), names.iter().position(|name| name.contains("outer")));
    assert!(closure.is_some() && closure < outer, "{names:#?}");
}

#[test]
fn a_thread_that_waits_for_a_lock() {
    let lock = Mutex::new(());
    let held = lock.lock().unwrap();
    let names = names(|| drop(lock.lock()), move || drop(held));
    check_order(&names, "a_thread_that_waits_for_a_lock");
}

#[test]
fn a_thread_that_sleeps() {
    let sleeps = || {
        thread::sleep(Duration::from_millis(200));
        // No tail call.
        std::hint::black_box(());
    };
    let names = names(sleeps, || ());
    check_order(&names, "a_thread_that_sleeps");
}

// Jumps to a function that has a frame pointer and reads, as `Condvar::wait_timeout` of a release build
// does to one that waits: on the stack there is a call of the first one, and the frame of the second one.
std::arch::global_asm!(
    ".globl paceline_test_jump_to_read",
    "paceline_test_jump_to_read:",
    "jmp 2f",
    ".zero 64, 0xcc",
    "2:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "push r14",
    "push rbx",
    "sub rsp, 4096",
    "mov qword ptr [rsp], 0",
    "sub rsp, 48",
    ".cfi_offset rbx, -32",
    ".cfi_offset r14, -24",
    "xor eax, eax",
    "syscall",
    "add rsp, 4144",
    "pop rbx",
    "pop r14",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
);

unsafe extern "C" {
    fn paceline_test_jump_to_read(file: c_int, to: *mut u8, most: usize) -> isize;
}

#[test]
fn a_thread_in_a_function_to_which_another_one_has_jumped() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let reads = || {
        let mut to = [0; 8];
        // SAFETY: it reads at most as many bytes as there is room for.
        let read = unsafe { paceline_test_jump_to_read(theirs.as_raw_fd(), to.as_mut_ptr(), to.len()) };
        assert_eq!(read, 0);
    };
    let names = names(reads, || drop(ours));
    check_order(&names, "a_thread_in_a_function_to_which_another_one_has_jumped");
}

#[test]
fn a_thread_that_waits_with_a_timeout() {
    let (is_over, condition) = (Mutex::new(false), Condvar::new());
    let waits = || {
        let guard = is_over.lock().unwrap();
        let minute = Duration::from_secs(60);
        drop(condition.wait_timeout_while(guard, minute, |is_over| !*is_over));
    };
    let unblock = || {
        *is_over.lock().unwrap() = true;
        condition.notify_all();
    };
    check_order(&names(waits, unblock), "a_thread_that_waits_with_a_timeout");
}

#[test]
fn a_thread_that_reads() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let names = names(|| assert_eq!((&theirs).read(&mut [0; 9_000]).unwrap(), 0), || drop(ours));
    check_order(&names, "a_thread_that_reads");
}

/// Large frames, a computed size, and a call through a pointer on the way.
#[test]
fn a_thread_below_many_frames() {
    fn deep(left: usize, barrier: &Barrier) -> usize {
        let room = std::hint::black_box([left as u8; 3_000]);
        match left {
            0 => usize::from(barrier.wait().is_leader()),
            _ => {
                std::hint::black_box(deep as fn(usize, &Barrier) -> usize)(left - 1, barrier)
                    + room[7] as usize
            }
        }
    }
    let barrier = Barrier::new(2);
    // No tail call.
    let waits = || _ = std::hint::black_box(deep(40, &barrier));
    let names = names(waits, || _ = barrier.wait());
    assert_eq!(names.iter().filter(|name| name.contains("deep")).count(), 41, "{names:#?}");
    check_order(&names, "a_thread_below_many_frames");
}

/// Fails if `/proc/self/maps`, which has the names of mapped files as they are, is read as UTF-8.
#[test]
fn a_thread_of_a_program_that_maps_a_file_whose_name_is_no_utf8() {
    unsafe extern "C" {
        fn mmap(at: *mut u8, length: usize, access: c_int, kind: c_int, file: c_int, from: i64) -> *mut u8;
        fn munmap(at: *mut u8, length: usize) -> c_int;
    }
    const READ: c_int = 1;
    const PRIVATE: c_int = 2;
    const LENGTH: usize = 4096;
    let name = [format!("paceline-{}-", std::process::id()).as_bytes(), b"\xff \xfe"].concat();
    let path = std::env::temp_dir().join(OsStr::from_bytes(&name));
    fs::write(&path, [0; LENGTH]).unwrap();
    let file = File::open(&path).unwrap();
    // SAFETY: the mapping is a new one, which nothing reads, and is removed below.
    let mapped = unsafe { mmap(ptr::null_mut(), LENGTH, READ, PRIVATE, file.as_raw_fd(), 0) };
    assert_ne!(mapped.addr(), usize::MAX, "{}", std::io::Error::last_os_error());
    // The list keeps the name, and says that the file is deleted.
    fs::remove_file(&path).unwrap();
    assert!(String::from_utf8(fs::read("/proc/self/maps").unwrap()).is_err(), "the name is listed");
    let lock = Mutex::new(());
    let held = lock.lock().unwrap();
    let names = names(|| drop(lock.lock()), move || drop(held));
    // SAFETY: as above.
    assert_eq!(unsafe { munmap(mapped, LENGTH) }, 0);
    check_order(&names, "a_thread_of_a_program_that_maps_a_file_whose_name_is_no_utf8");
}

#[test]
fn a_thread_that_runs_has_no_stack() {
    let (tell, told) = mpsc::channel();
    let (end, ended) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        tell.send(ThreadState::here()).unwrap();
        while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {}
    });
    let state = told.recv().unwrap();
    // It may wait for a core, but never sleeps.
    assert_eq!(Stack::of_blocked(state.number(), || true), None);
    drop(end);
    thread.join().unwrap();
    assert_eq!(Stack::of_blocked(state.number(), || true), None, "it is gone");
}
