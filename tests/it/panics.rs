//! Panics in user code lose neither a thread nor leadership.

use std::future::{Future, pending, poll_fn};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use futures_lite::{AsyncReadExt, future};
use paceline::{Async, Executor, LocalExecutor, Runtime, Timer, block_on, spawn};

use crate::given_time::RecvSoon;
use crate::setups::{
    Latch, OpenOnDrop, Ping, SOON, Setup, arm, child, eventually, for_each_builder, for_each_setup,
    for_setups, is_child, output, text_of, waker_that,
};

/// Panics when it is dropped.
struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        if !thread::panicking() {
            panic!("on purpose, in drop");
        }
    }
}

/// More tasks panic than there are threads: each awaiting task gets the panic, and no thread is lost.
#[test]
fn more_panics_than_threads_cost_no_thread() {
    let body = |setup: Setup, runtime: &Arc<Runtime>| {
        let mut ping = Ping::new(runtime);
        for _ in 0..12 {
            let task = runtime.spawn(async {
                future::yield_now().await;
                panic!("on purpose")
            });
            let awaited = catch_unwind(AssertUnwindSafe(|| runtime.block_on(task)));
            assert!(awaited.is_err(), "the panic reaches the awaiting task");
            runtime.spawn(async { panic!("on purpose, detached") }).detach();
            ping.ping();
        }
        // Threads that were added while a panic was printed may still be there.
        eventually("no thread is lost", || runtime.metrics().workers == setup.threads);
        // All workers are still there: each can be kept busy at the same time.
        let barrier = Arc::new(std::sync::Barrier::new(setup.threads));
        let meet = |_| {
            let barrier = barrier.clone();
            runtime.spawn(async move {
                barrier.wait();
            })
        };
        let tasks: Vec<_> = (0..setup.threads).map(meet).collect();
        tasks.into_iter().for_each(|task| runtime.block_on(task));
    };
    for_setups(|_| true, body);
}

/// A waker that the leader calls panics: leadership is passed on, and the thread continues.
#[test]
fn a_panic_in_a_waker_passes_leadership_on() {
    let body = |setup: Setup, runtime: &Arc<Runtime>| {
        let mut ping = Ping::new(runtime);
        for round in 0..8 {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let socket = runtime.block_on(async { Async::new(theirs) }).unwrap();
            let called = Latch::new();
            let called2 = called.clone();
            let waker = waker_that(move || {
                called2.open();
                panic!("on purpose, in a waker");
            });
            let mut timer = Timer::never();
            if round % 2 == 0 {
                assert!(socket.poll_readable(&mut Context::from_waker(&waker)).is_pending());
                ours.write_all(b"x").unwrap();
            } else {
                runtime.block_on(async { arm(&mut timer, Duration::from_millis(2), &waker) });
            }
            called.wait();
            ping.ping();
        }
        // A thread that prints its panic takes so long that another thread may be added for it.
        eventually("no thread is lost, and none is left over", || runtime.metrics().workers == setup.threads);
        ping.ping();
    };
    for_setups(|_| true, body);
}

/// One of several waiters of a source has a waker that panics: the others are woken all the same.
#[test]
fn a_panic_in_one_waker_loses_no_other() {
    for_each_setup(|runtime| {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let socket = runtime.block_on(async { Async::new(theirs) }).unwrap();
        let woken = Arc::new(AtomicUsize::new(0));
        let bad = waker_that(|| panic!("on purpose, in a waker"));
        // Each wait has its own place: futures of one task share one.
        let [one, two, three] = [0; 3].map(|_| {
            let woken = woken.clone();
            waker_that(move || {
                woken.fetch_add(1, SeqCst);
            })
        });
        // The first wait is in the cell, the others are on the list.
        let mut waits: Vec<_> = (0..4).map(|_| Box::pin(socket.readable())).collect();
        for (wait, waker) in waits.iter_mut().zip([&one, &bad, &two, &three]) {
            assert!(wait.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        }
        ours.write_all(b"x").unwrap();
        eventually("all other waiters are woken", || woken.load(SeqCst) == 3);
    });
}

/// The same for the two directions of one event: the peer's close makes both ready at once.
#[test]
fn a_panic_in_the_readers_waker_does_not_lose_the_writer() {
    for_each_setup(|runtime| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        while (&theirs).write(&[0; 4096]).is_ok() {}
        let socket = runtime.block_on(async { Async::new(theirs) }).unwrap();
        let woken = Latch::new();
        let woken2 = woken.clone();
        let (bad, good) =
            (waker_that(|| panic!("on purpose, in a waker")), waker_that(move || woken2.open()));
        assert!(socket.poll_readable(&mut Context::from_waker(&bad)).is_pending());
        assert!(socket.poll_writable(&mut Context::from_waker(&good)).is_pending());
        drop(ours);
        woken.wait();
    });
}

/// A destructor at the end of a task's poll panics.
#[test]
fn a_panic_in_a_drop_within_a_task_costs_no_thread() {
    for_each_setup(|runtime| {
        let mut ping = Ping::new(runtime);
        for _ in 0..6 {
            let bomb = PanicsInDrop;
            let task = runtime.spawn(async move { drop(bomb) });
            ping.ping();
            eventually("the task has run", || task.is_finished());
        }
        eventually("all but the echo are done", || runtime.metrics().tasks == Some(1));
        let task = runtime.spawn(async { 1 });
        assert_eq!(runtime.block_on(task), 1);
    });
}

/// Panics when it is dropped, and has one poll, which does what the function does.
struct Bombed(fn() -> Poll<()>, PanicsInDrop);

impl Future for Bombed {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        self.0()
    }
}

/// The destructors of futures panic: of one that waits and is cancelled, of one that is ready, of one whose
/// poll has panicked, and of those that the end of the runtime cancels. The awaiting code gets the panic if
/// the task was not cancelled. Fails if the panic leaves the drop of a task: the process aborts.
#[test]
fn a_panic_in_a_destructor_costs_its_own_task_only() {
    for_each_setup(|runtime| {
        let bombed = |poll| runtime.spawn(Bombed(poll, PanicsInDrop));
        let panic_of = |task| {
            let awaited = catch_unwind(AssertUnwindSafe(|| runtime.block_on(task)));
            text_of(&*awaited.expect_err("the awaiting code gets the panic")).to_string()
        };
        let mut ping = Ping::new(runtime);
        for round in 1..=3 {
            let waits = bombed(|| Poll::Pending);
            eventually("it waits", || runtime.tasks().unpolled == 0);
            assert_eq!(runtime.block_on(waits.cancel()), None);
            assert_eq!(panic_of(bombed(|| Poll::Ready(()))), "on purpose, in drop");
            assert_eq!(panic_of(bombed(|| panic!("on purpose"))), "on purpose");
            assert_eq!(runtime.metrics().tasks_panicked, 3 * round);
            ping.ping();
        }
        eventually("no thread is lost", || runtime.metrics().tasks == Some(1));
        (0..3).for_each(|_| bombed(|| Poll::Pending).detach());
        runtime.shutdown(SOON).expect("none is stuck");
        // A thread that ends may still print a backtrace.
        let counts = || (runtime.metrics().tasks_panicked, runtime.metrics().tasks);
        eventually("each is counted", || counts() == (12, Some(0)));
    });
}

/// The same where the caller's thread drops the future, which was never polled.
#[test]
fn a_panic_in_a_destructor_does_not_reach_the_drop_of_an_executor() {
    let bombed = || Bombed(|| unreachable!("it is not polled"), PanicsInDrop);
    let executor = Executor::new();
    (0..2).for_each(|_| executor.spawn(bombed()).detach());
    drop(executor);
    let local = LocalExecutor::new();
    (0..2).for_each(|_| local.spawn(bombed()).detach());
    drop(local);
    let runtime = Runtime::builder().current_thread().build().unwrap();
    (0..2).for_each(|_| runtime.spawn(bombed()).detach());
    let handle = runtime.handle();
    runtime.shutdown(SOON).expect("none is stuck");
    let counts = || (runtime.metrics().tasks_panicked, runtime.metrics().tasks);
    eventually("both are counted", || counts() == (2, Some(0)));
    // A runtime that has ended drops the future at once.
    handle.spawn(bombed()).detach();
    assert_eq!(runtime.metrics().tasks_panicked, 3);
}

/// The same for a closure that blocks and never begins.
#[test]
fn a_panic_in_the_drop_of_a_closure_costs_no_thread() {
    let runtime = Runtime::builder().threads(1).blocking_threads(1).build().unwrap();
    let (began, gate) = (Latch::new(), Latch::new());
    let _open = OpenOnDrop(gate.clone());
    let _inside = runtime.handle().enter();
    let (told, gated) = (began.clone(), gate.clone());
    let blocks = paceline::unblock(move || {
        told.open();
        gated.wait();
    });
    began.wait();
    let bomb = PanicsInDrop;
    let cancelled = paceline::unblock(move || drop(bomb)).fallible();
    drop(cancelled);
    gate.open();
    runtime.block_on(blocks);
    assert_eq!(runtime.block_on(paceline::unblock(|| 1)), 1);
}

/// Hooks panic: of a starting thread, and of the deputy.
#[test]
fn a_panic_in_a_hook_costs_no_thread() {
    for_each_builder(|setup| {
        let stalls = Arc::new(AtomicUsize::new(0));
        let stalls2 = stalls.clone();
        let builder = setup.builder().on_thread_start(|| panic!("on purpose, in a hook"));
        let builder = builder.on_stall(move |_| {
            stalls2.fetch_add(1, SeqCst);
            panic!("on purpose, in a hook");
        });
        let runtime = Arc::new(builder.build().unwrap());
        let mut ping = Ping::new(&runtime);
        for round in 1..=2 {
            let latch = Latch::new();
            let free = OpenOnDrop(latch.clone());
            let (blocks, is_blocking) = mpsc::channel();
            let blocked = runtime.spawn(async move {
                blocks.send(()).unwrap();
                latch.wait();
            });
            is_blocking.recv_soon().unwrap();
            eventually("the stall is reported", || stalls.load(SeqCst) >= round);
            ping.ping();
            drop(free);
            runtime.block_on(blocked);
        }
    });
}

/// Panics with a payload that panics when it is dropped.
fn panic_with_a_bomb() {
    std::panic::panic_any(PanicsInDrop);
}

/// Payloads that panic when they are dropped, from each hook of a thread: no thread is lost, and no ended
/// thread stays counted. Fails if a payload is dropped outside of a guard: no task runs then, or the shutdown
/// waits for threads that have ended.
#[test]
fn a_payload_that_panics_costs_no_thread() {
    for_each_builder(|setup| {
        let builder = setup.builder().on_thread_start(panic_with_a_bomb).on_thread_stop(panic_with_a_bomb);
        let builder = builder.on_thread_park(panic_with_a_bomb).on_thread_unpark(panic_with_a_bomb);
        let runtime = Arc::new(builder.build().unwrap());
        let mut ping = Ping::new(&runtime);
        (0..3).for_each(|_| _ = ping.ping());
        eventually("all workers are there", || runtime.metrics().workers == setup.threads);
        drop(ping);
        runtime.shutdown(Duration::MAX).unwrap();
        assert_eq!(runtime.metrics().workers, 0);
    });
}

/// The same in `on_stall`: the next stall is reported. Fails if the mark of the report in progress stays.
#[test]
fn a_payload_that_panics_keeps_no_later_report_back() {
    for_each_builder(|setup| {
        let stalls = Arc::new(AtomicUsize::new(0));
        let counted = stalls.clone();
        let hook = move |_: &paceline::Stall| {
            counted.fetch_add(1, SeqCst);
            panic_with_a_bomb();
        };
        let runtime = Arc::new(setup.builder().on_stall(hook).build().unwrap());
        for round in 1..=2 {
            let latch = Latch::new();
            let free = OpenOnDrop(latch.clone());
            let blocked = runtime.spawn(async move { latch.wait() });
            eventually("the stall is reported", || stalls.load(SeqCst) >= round);
            drop(free);
            runtime.block_on(blocked);
        }
    });
}

/// The same in a waker, and in a job that runs although its handle is detached or dropped.
#[test]
fn a_payload_that_panics_ends_at_a_waker_and_at_a_job() {
    for_each_setup(|runtime| {
        let mut ping = Ping::new(runtime);
        let called = Arc::new(AtomicUsize::new(0));
        let counted = called.clone();
        let waker = waker_that(move || {
            counted.fetch_add(1, SeqCst);
            panic_with_a_bomb();
        });
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let socket = runtime.block_on(async { Async::new(theirs) }).unwrap();
        assert!(socket.poll_readable(&mut Context::from_waker(&waker)).is_pending());
        ours.write_all(b"x").unwrap();
        eventually("the waker is called", || called.load(SeqCst) == 1);
        ping.ping();
        let job = || paceline::blocking::Job::new(panic_with_a_bomb);
        let submit = |job: paceline::blocking::Job<()>| {
            let _inside = runtime.handle().enter();
            job.submit()
        };
        submit(job()).detach();
        let finished = submit(job());
        eventually("the job is over", || finished.is_finished());
        drop(finished);
        assert_eq!(runtime.block_on(async { paceline::unblock(|| 1).await }), 1);
        eventually("no thread is lost", || {
            runtime.metrics().blocking_idle == runtime.metrics().blocking_threads
        });
    });
}

/// The hook for panics of tasks is told of each one, on the thread of the panic, when the future of the task
/// is dropped and before code that awaits the task has the panic. Fails if the hook is not called, if it is
/// called in the middle of the unwinding, or if the free functions in it act on another runtime.
#[test]
fn each_panic_of_a_task_is_told_to_the_hook() {
    for_each_builder(|setup| {
        let (tell, told) = mpsc::channel();
        let alive = Arc::new(());
        let seen = Arc::downgrade(&alive);
        let hook = move |panic: &paceline::TaskPanic| {
            let is_clear = seen.strong_count() == 0 && !thread::panicking();
            // Of the runtime with the hook: the default instance is not used here.
            let inside = paceline::metrics().tasks_panicked;
            spawn(async {}).detach();
            tell.send((panic.clone(), thread::current().id(), is_clear, inside)).unwrap();
        };
        let runtime = Arc::new(setup.builder().on_task_panic(hook).build().unwrap());
        let mut ping = Ping::new(&runtime);
        let (line, polled_on) = (line!() + 2, Arc::new(std::sync::Mutex::new(None)));
        let noted = polled_on.clone();
        let awaited = runtime.spawn(async move {
            let _alive = alive;
            future::yield_now().await;
            *noted.lock().unwrap() = Some(thread::current().id());
            panic!("on purpose")
        });
        let awaited = catch_unwind(AssertUnwindSafe(|| runtime.block_on(awaited)));
        assert!(awaited.is_err(), "the panic reaches the awaiting task all the same");
        let (panic, called_on, is_clear, inside) = told.try_recv().expect("the hook comes first");
        assert_eq!((panic.spawned_at.file(), panic.spawned_at.line()), (file!(), line));
        assert_eq!(Some(called_on), *polled_on.lock().unwrap());
        assert_eq!(panic.thread_id, called_on);
        assert!(panic.to_string().contains(" panicked on worker-"), "{panic}");
        assert!(is_clear, "the future is dropped, and the panic is caught");
        assert_eq!(inside, 1);

        for _ in 0..5 {
            runtime.spawn(async { panic!("on purpose, detached") }).detach();
            told.recv_soon().unwrap();
        }
        ping.ping();
        assert_eq!(runtime.metrics().tasks_panicked, 6);
        // The package that replaces tokio catches the panics of its tasks and reports them by this call.
        runtime.handle().note_panic(std::panic::Location::caller());
        // This thread is in no runtime, but the hook is.
        let (panic, _, _, inside) = told.try_recv().expect("the call has told the hook");
        assert_eq!((panic.thread_id, inside), (thread::current().id(), 7));
        // A panic of a root future is that of its caller, and a task without a panic has none.
        let root = || runtime.block_on(async { panic!("on purpose") });
        assert!(catch_unwind(AssertUnwindSafe(root)).is_err());
        runtime.block_on(runtime.spawn(async {}));
        assert!(told.try_recv().is_err());
    });
}

/// A hook for panics that panics itself, with a payload that panics when it is dropped, costs neither a
/// thread nor a task. Fails if the hook is called without a guard: the process aborts.
#[test]
fn a_panic_in_the_hook_for_panics_costs_no_thread_and_no_task() {
    for_each_builder(|setup| {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = calls.clone();
        let hook = move |_: &paceline::TaskPanic| {
            counted.fetch_add(1, SeqCst);
            panic_with_a_bomb();
        };
        let runtime = Arc::new(setup.builder().on_task_panic(hook).build().unwrap());
        let mut ping = Ping::new(&runtime);
        for round in 1..=4 {
            runtime.spawn(async { panic!("on purpose") }).detach();
            eventually("the hook is called", || calls.load(SeqCst) == round);
            ping.ping();
        }
        eventually("all but the echo are done", || runtime.metrics().tasks == Some(1));
        eventually("no thread is lost", || runtime.metrics().workers == setup.threads);
    });
}

/// A hook that ends the runtime from inside: the drain cancels the other tasks.
#[test]
fn the_hook_for_panics_may_end_the_runtime() {
    for_each_builder(|setup| {
        let hook = |_: &paceline::TaskPanic| {
            let handle = paceline::Handle::current();
            spawn(async move { handle.drain(Duration::ZERO).await }).detach();
        };
        let runtime = setup.builder().on_task_panic(hook).build().unwrap();
        let (gone, is_gone) = mpsc::channel::<()>();
        runtime
            .spawn(async move {
                pending::<()>().await;
                drop(gone);
            })
            .detach();
        runtime.spawn(async { panic!("on purpose") }).detach();
        assert_eq!(is_gone.recv_soon(), Err(mpsc::RecvError));
        eventually("the runtime has ended", || runtime.metrics().workers == 0);
    });
}

/// In a runtime of the current thread, the thread in `block_on` calls the hook.
#[test]
fn the_hook_for_panics_is_called_without_workers() {
    let (tell, told) = mpsc::channel();
    let hook = move |panic: &paceline::TaskPanic| tell.send(panic.thread_id).unwrap();
    let runtime = Runtime::builder().current_thread().on_task_panic(hook).build().unwrap();
    runtime.spawn(async { panic!("on purpose") }).detach();
    runtime.block_on(async {
        future::yield_now().await;
        future::yield_now().await;
    });
    assert_eq!(told.try_recv(), Ok(thread::current().id()));
}

/// Without a hook, the first panic of a spawn line is printed; with a hook, no line is. Fails if the hook
/// does not replace the line.
#[test]
fn the_hook_for_panics_replaces_the_line() {
    const NAME: &str = "panics::the_hook_for_panics_replaces_the_line";
    if std::env::var("PACELINE_TEST_CHILD").is_ok_and(|name| name == NAME) {
        let plain = Runtime::builder().threads(1).build().unwrap();
        let hooked = Runtime::builder().threads(1).on_task_panic(|panic| eprintln!("told: {panic}")).build();
        for runtime in [hooked.unwrap(), plain] {
            let task = runtime.spawn(async { panic!("on purpose") });
            assert!(catch_unwind(AssertUnwindSafe(|| runtime.block_on(task))).is_err());
            eprintln!("next");
        }
        return;
    }
    let output = output(child(NAME, ":"));
    let text = String::from_utf8_lossy(&output.stderr);
    let (hooked, plain) = text.split_once("next").expect("it runs");
    assert!(hooked.contains("told: the task spawned at") && !hooked.contains("paceline: "), "{text}");
    assert!(plain.contains("paceline: the task spawned at") && !plain.contains("told: "), "{text}");
}

/// Fails if the line is written to standard error past the harness, which keeps what a test that passes
/// prints.
#[test]
fn the_line_about_a_panic_is_captured_with_the_output_of_the_test() {
    const NAME: &str = "panics::the_line_about_a_panic_is_captured_with_the_output_of_the_test";
    if std::env::var("PACELINE_TEST_CHILD").is_ok_and(|name| name == NAME) {
        let runtime = Runtime::builder().threads(1).build().unwrap();
        let task = runtime.spawn(async { panic!("on purpose") });
        assert!(catch_unwind(AssertUnwindSafe(|| runtime.block_on(task))).is_err());
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", NAME, "--show-output"]).env("PACELINE_TEST_CHILD", NAME).output();
    let output = output.unwrap();
    let [out, error] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{out}{error}");
    assert!(out.contains("paceline: the task spawned at") && !error.contains("paceline: "), "{out}{error}");
}

/// A waker of another library's executor panics on the deputy's thread, which leads while no thread is in
/// `block_on`.
#[test]
fn a_panic_in_a_waker_that_the_deputy_calls_costs_no_thread() {
    if !is_child("panics::a_panic_in_a_waker_that_the_deputy_calls_costs_no_thread", ":") {
        return;
    }
    for _ in 0..2 {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let socket = Async::new(theirs).unwrap();
        let called = Latch::new();
        let called2 = called.clone();
        let waker = waker_that(move || {
            called2.open();
            panic!("on purpose, in a waker");
        });
        assert!(socket.poll_readable(&mut Context::from_waker(&waker)).is_pending());
        ours.write_all(b"x").unwrap();
        called.wait();
    }
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        future::block_on(Timer::after(Duration::from_millis(1)));
        done.send(()).unwrap();
    });
    is_done.recv_soon().expect("no thread leads any more");
}

/// A root future panics in a nested `block_on` in a task: the outer `block_on` goes on.
#[test]
fn a_panic_in_a_nested_block_on_does_not_end_the_outer_one() {
    for_each_setup(|runtime| {
        let mut ping = Ping::new(runtime);
        for _ in 0..5 {
            let task = runtime.spawn(async {
                catch_unwind(|| {
                    block_on(async {
                        Timer::after(Duration::from_millis(1)).await;
                        poll_fn(|_| -> Poll<()> { panic!("on purpose") }).await;
                    })
                })
                .is_err()
            });
            assert!(runtime.block_on(task));
            ping.ping();
        }
        block_on(async {
            let (mut one, mut other) = Async::<UnixStream>::pair().unwrap();
            let write = async { futures_lite::AsyncWriteExt::write_all(&mut other, b"x").await };
            future::try_zip(one.read_exact(&mut [0]), write).await.unwrap();
        });
    });
}
