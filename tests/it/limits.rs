//! Bad input and exhausted limits: the error says what is wrong and why, and the process goes on.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use futures_lite::AsyncReadExt;
use paceline::{Async, Handle, IoSafe, Runtime, Timer, block_on, spawn};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::given_time::RecvSoon;
use crate::setups::{ENDLESS_STACK, Ping, eventually, for_each_builder, for_each_setup, is_child};

/// Claims a descriptor number that it does not own.
#[derive(Debug)]
struct Claims(RawFd);

impl AsFd for Claims {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: not kept on purpose, which is what the test is about: the number belongs to no open file.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

// SAFETY: the type does no I/O.
unsafe impl IoSafe for Claims {}

/// A number without an open file.
#[test]
fn a_closed_descriptor() {
    for_each_setup(|runtime| {
        for number in [i32::MAX, 1_000_000] {
            let error = runtime.block_on(async { Async::new(Claims(number)) }).unwrap_err();
            assert!(error.to_string().contains("closed, or was never open"), "{error}");
            match runtime.block_on(async { Async::new_nonblocking(Claims(number)) }) {
                Err(error) => assert!(error.to_string().contains("closed, or was never open"), "{error}"),
                // poll(2) does not see a descriptor before a task waits for it.
                Ok(_) if cfg!(polling_test_poll_backend) => {}
                Ok(_) => panic!("{number} is registered"),
            }
        }
        assert_eq!(runtime.metrics().sources, 0);
        Ping::new(runtime).ping();
    });
}

/// Not -1, which a `BorrowedFd` may not be.
#[test]
fn a_negative_descriptor() {
    for_each_setup(|runtime| {
        let error = runtime.block_on(async { Async::new(Claims(-2)) }).unwrap_err();
        assert!(error.to_string().contains("closed, or was never open"), "{error}");
        assert_eq!(runtime.metrics().sources, 0);
    });
}

#[test]
fn a_regular_file_and_a_directory() {
    for_each_setup(|runtime| {
        for path in [std::env::current_exe().unwrap(), std::env::temp_dir()] {
            let file = File::open(path).unwrap();
            match runtime.block_on(async { Async::new(file) }) {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
                    assert!(error.to_string().contains("regular file or a directory"), "{error}");
                    assert!(error.to_string().contains("thread that may block"), "{error}");
                }
                // poll(2) accepts regular files: they are always ready.
                Ok(_) if cfg!(not(polling_test_poll_backend)) => panic!("epoll takes no files"),
                Ok(mut file) => {
                    let _ = runtime.block_on(file.read(&mut [0]));
                }
            }
        }
        assert_eq!(runtime.metrics().sources, 0);
        Ping::new(runtime).ping();
    });
}

#[test]
fn builders_that_make_no_sense() {
    for_each_builder(|setup| {
        let cases = [
            (setup.builder().threads(0), "`threads` is 0"),
            (setup.builder().threads(3).max_threads(2), "`max_threads` is 2, fewer than the 3"),
            (setup.builder().tuning(setup.tuning().max_blind(Duration::ZERO)), "`max_blind` is zero"),
        ];
        for (builder, words) in cases {
            let error = builder.build().expect_err("it makes no sense");
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(words), "{error}");
        }
        setup.builder().threads(setup.threads).max_threads(setup.threads).build().unwrap();
    });
}

/// The largest duration means no limit: nothing overflows in a sum. Fails if `spin` is used as it is: workers
/// panic in a loop.
#[test]
fn times_without_end() {
    for_each_builder(|setup| {
        let endless = [setup.tuning().spin(Duration::MAX), setup.tuning().max_blind(Duration::MAX)];
        for tuning in endless {
            let runtime = setup.builder().tuning(tuning).on_stall(|_| {}).build().unwrap();
            let mut ping = Ping::new(&runtime);
            for _ in 0..10 {
                runtime.spawn(async { thread::sleep(Duration::from_millis(2)) }).detach();
                ping.ping();
                runtime.block_on(Timer::after(Duration::from_micros(100)));
                let task = runtime.spawn(async { Timer::after(Duration::from_micros(100)).await });
                runtime.block_on(task);
            }
            runtime.shutdown(Duration::MAX).unwrap();
        }
    });
}

/// No system has room for such a stack: the threads cannot be started, and the error says so.
#[test]
fn threads_that_cannot_be_started() {
    for_each_builder(|setup| {
        let error = setup.builder().stack_size(ENDLESS_STACK).build().expect_err("no room for the stack");
        assert!(error.to_string().contains("cannot start a thread"), "{error}");
    });
}

/// The default instance has no room for its threads' stacks: each `spawn` reports that, instead of giving its
/// task to workers that do not exist; with more room, spawning works. Fails if `Crew::start` is done after
/// the first try.
#[test]
fn no_threads_for_the_default_instance() {
    // A backtrace would need more memory than there is.
    let shell = "export PACELINE_THREADS=4 RUST_BACKTRACE=0";
    if !is_child("limits::no_threads_for_the_default_instance", shell) {
        return;
    }
    let limit = getrlimit(Resource::As);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find(|line| line.starts_with("VmSize")).unwrap();
    let used = size.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10;
    // Room for no stack, for one, for two, for three. One stack is the deputy's.
    for mebibytes in [1, 3, 5, 7] {
        let little = Rlimit { current: Some(used + (mebibytes << 20)), ..limit };
        setrlimit(Resource::As, little).unwrap();
        for _ in 0..2 {
            let panic =
                std::panic::catch_unwind(|| drop(spawn(async {}))).expect_err("4 threads cannot be started");
            let text = crate::setups::text_of(&*panic);
            assert!(text.contains("cannot start a thread") && text.contains("of 4 workers run"), "{text}");
            assert!(text.contains("ulimit -v") && text.contains("PACELINE_THREADS"), "{text}");
        }
    }
    setrlimit(Resource::As, limit).unwrap();
    assert_eq!(block_on(spawn(async { 7 })), 7);
    assert!(paceline::metrics().workers >= 4);
}

#[test]
fn install_after_the_default_instance_runs() {
    if !is_child("limits::install_after_the_default_instance_runs", ":") {
        return;
    }
    block_on(spawn(async {}));
    let error = Runtime::builder().threads(1).install().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert!(error.to_string().contains("runs already") && error.to_string().contains("before"), "{error}");
    block_on(spawn(async {}));
}

#[test]
fn install_twice_and_its_settings_hold() {
    if !is_child("limits::install_twice_and_its_settings_hold", ":") {
        return;
    }
    Runtime::builder().threads(3).thread_name("mine").install().unwrap();
    let name = block_on(spawn(async { thread::current().name().map(str::to_owned) }));
    assert!(name.is_some_and(|name| name.starts_with("mine-")));
    eventually("three workers are left", || paceline::metrics().workers == 3);
    assert_eq!(Runtime::builder().install().unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn threads_from_the_environment() {
    if !is_child("limits::threads_from_the_environment", "export PACELINE_THREADS=3") {
        return;
    }
    block_on(spawn(async {}));
    eventually("three workers are left", || paceline::metrics().workers == 3);
}

#[test]
fn nonsense_in_the_environment() {
    if !is_child("limits::nonsense_in_the_environment", "export PACELINE_THREADS=many") {
        return;
    }
    let place = Arc::new(Mutex::new(String::new()));
    let named = place.clone();
    std::panic::set_hook(Box::new(move |info| *named.lock().unwrap() = info.location().unwrap().to_string()));
    let panic = thread::spawn(|| drop(spawn(async {}))).join().unwrap_err();
    let text = crate::setups::text_of(&*panic);
    assert!(place.lock().unwrap().starts_with(file!()), "the panic names {place:?}, not the call of `spawn`");
    let handle = Handle::current();
    thread::spawn(move || drop(handle.spawn(async {}))).join().unwrap_err();
    assert!(
        place.lock().unwrap().starts_with(file!()),
        "the panic names {place:?}, not `Handle::spawn`'s call"
    );
    assert!(
        text.contains("PACELINE_THREADS") && text.contains("many") && text.contains("positive"),
        "{text}"
    );
}

/// Opens descriptors until only `left` more can be opened.
fn exhaust(left: usize) -> Vec<File> {
    let mut files: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    files.truncate(files.len() - left);
    files
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn out_of_descriptors(error: &io::Error) -> bool {
    let text = error.to_string();
    text.contains("os error 24") || text.contains("open files")
}

#[test]
fn no_descriptors_for_a_runtime() {
    if !is_child("limits::no_descriptors_for_a_runtime", "ulimit -n 64") {
        return;
    }
    let open = open_descriptors();
    for_each_builder(move |setup| {
        for left in 0..3 {
            // A pool's last thread closes its descriptors a little after its handle was dropped.
            eventually("the runtimes before are gone", || open_descriptors() == open);
            let files = exhaust(left);
            match setup.builder().build() {
                Err(error) => {
                    assert!(error.to_string().contains("cannot make a reactor"), "{error}");
                    assert!(out_of_descriptors(&error), "{error}");
                }
                Ok(_) => assert!(left > 0 && (setup.portable || cfg!(polling_test_poll_backend))),
            }
            drop(files);
        }
        // Nothing leaked, and with descriptors a runtime works.
        Ping::new(&setup.build()).ping();
    });
}

/// The default instance cannot be made: futures without a reactor run all the same, the others say why not.
#[test]
fn no_descriptors_for_the_default_instance() {
    if !is_child("limits::no_descriptors_for_the_default_instance", "ulimit -n 64") {
        return;
    }
    let files = exhaust(0);
    assert_eq!(block_on(async { 5 }), 5, "it does not wait");
    let null = File::open("/dev/null");
    assert!(null.is_err());
    for waits in [|| drop(spawn(async {})), || block_on(std::future::pending())] {
        let panic = thread::spawn(waits).join().unwrap_err();
        let text = crate::setups::text_of(&*panic);
        assert!(text.contains("default instance cannot be started") && text.contains("open files"), "{text}");
    }
    let panic = thread::spawn(|| block_on(Timer::after(Duration::from_secs(1)))).join().unwrap_err();
    let text = crate::setups::text_of(&*panic);
    assert!(text.contains("no reactor can be made for a timer") && text.contains("open files"), "{text}");
    drop(files);
    // With free descriptors, the default instance works.
    block_on(async { Timer::after(Duration::from_millis(1)).await });
    assert_eq!(block_on(spawn(async { 7 })), 7);
}

/// A server runs out of descriptors: `accept` returns the error, no thread spins or hangs, and the server
/// goes on afterwards.
#[test]
fn no_descriptors_for_accept() {
    if !is_child("limits::no_descriptors_for_accept", "ulimit -n 128") {
        return;
    }
    let open = open_descriptors();
    for_each_builder(move |setup| {
        // Otherwise the descriptors of the previous runtime are closed at the moment when none must be free.
        eventually("the runtimes before are gone", || open_descriptors() == open);
        let runtime = &setup.build();
        let mut ping = Ping::new(runtime);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, told) = mpsc::channel();
        let (retry, may_retry) = async_channel::unbounded::<()>();
        let server = runtime.spawn(async move {
            let listener = Async::new(listener).unwrap();
            tell.send(Ok(())).unwrap();
            loop {
                if may_retry.recv().await.is_err() {
                    return;
                }
                tell.send(listener.accept().await.map(drop)).unwrap();
            }
        });
        told.recv_soon().unwrap().unwrap();
        let files = exhaust(1);
        let client = TcpStream::connect(address).unwrap();
        retry.try_send(()).unwrap();
        let error = told.recv_soon().unwrap().expect_err("there is no descriptor left");
        assert!(out_of_descriptors(&error), "{error}");
        ping.ping();
        drop(files);
        // The connection waits in the listener's queue, and no new event comes for it.
        retry.try_send(()).unwrap();
        told.recv_soon().expect("accept looks again").unwrap();
        drop((client, retry));
        runtime.block_on(server);
    });
}

/// Runtimes one after the other, some used, some not: their descriptors and threads are released.
#[test]
fn runtimes_leave_nothing_behind() {
    if !is_child("limits::runtimes_leave_nothing_behind", ":") {
        return;
    }
    let count = |of: &str| std::fs::read_dir(format!("/proc/self/{of}")).unwrap().count();
    let before = (count("fd"), count("task"));
    for round in 0..4 {
        for_each_builder(move |setup| {
            let runtime = setup.build();
            if round % 2 == 0 {
                runtime.block_on(async {
                    let pair = Async::<UnixStream>::pair().unwrap();
                    pair.0.writable().await.unwrap();
                });
                Ping::new(&runtime).ping();
            }
        });
    }
    eventually("all descriptors are closed and all threads gone", || (count("fd"), count("task")) == before);
}
