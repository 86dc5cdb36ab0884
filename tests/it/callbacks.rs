//! User code that calls back into paceline from places where no lock may be held, and on which
//! runtime it acts; signals.

use std::future::{Future, pending};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use futures_lite::future;
use paceline::{Async, Executor, LocalExecutor, Runtime, Timer, block_on, spawn};

use crate::given_time::RecvSoon;
use crate::setups::{
    Latch, OpenOnDrop, Ping, SOON, child, ends, eventually, for_each_builder, for_each_setup, is_child,
    waker_that, without_deputy,
};

/// Wakers do everything that a program may do: no internal lock is held, and no internal cell is borrowed
/// (LF3).
#[test]
fn wakers_may_call_anything() {
    for_each_setup(|runtime| {
        let cell = Arc::new(OnceLock::new());
        let (cell2, runtime2) = (cell.clone(), Arc::downgrade(runtime));
        let called = Latch::new();
        let called2 = called.clone();
        let everything = waker_that(move || {
            let Some(runtime) = runtime2.upgrade() else { return };
            let socket: &Async<UnixStream> = cell2.get().expect("set before the first event");
            drop((runtime.metrics(), format!("{runtime:?} {socket:?}")));
            drop(Async::<UnixStream>::pair().unwrap());
            runtime.spawn(async {}).detach();
            block_on(future::yield_now());
            let noop = Waker::noop();
            let _ = socket.poll_readable(&mut Context::from_waker(noop));
            let mut timer = Timer::after(Duration::from_secs(1));
            let _ = std::pin::Pin::new(&mut timer).poll(&mut Context::from_waker(noop));
            called2.open();
        });
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        cell.set(runtime.block_on(async { Async::new(theirs) }).unwrap()).unwrap();
        let socket = cell.get().unwrap();
        assert!(socket.poll_readable(&mut Context::from_waker(&everything)).is_pending());
        ours.write_all(b"x").unwrap();
        called.wait();
    });
}

/// The waker of a future in which an executor runs is called when one of its tasks is woken. That waker nests
/// a `block_on`.
#[test]
fn the_waker_of_a_run_may_nest_a_block_on() {
    // In a child, because a panic inside a waker may abort.
    if !is_child("callbacks::the_waker_of_a_run_may_nest_a_block_on", "ulimit -c 0") {
        return;
    }
    let executor = Executor::new();
    let (tell, told) = async_channel::unbounded::<()>();
    let task = executor.spawn(async move { told.recv().await });
    let nested = Arc::new(AtomicUsize::new(0));
    let nested2 = nested.clone();
    let waker = waker_that(move || {
        nested2.fetch_add(block_on(async { 1 }), SeqCst);
    });
    block_on(async {
        let mut run = Box::pin(executor.run(task));
        let mut poll = || run.as_mut().poll(&mut Context::from_waker(&waker));
        assert!((0..4).all(|_| poll().is_pending()));
        let before = nested.load(SeqCst);
        tell.send(()).await.unwrap();
        assert!(nested.load(SeqCst) > before, "the task's wake reaches the thread that polls the executor");
        assert!((0..4).any(|_| poll().is_ready()));
    });
}

/// Futures whose drop calls back into the runtime.
#[test]
fn drops_of_futures_may_call_anything() {
    struct CallsBack(mpsc::Sender<()>);
    impl Drop for CallsBack {
        fn drop(&mut self) {
            drop(Async::<UnixStream>::pair().unwrap());
            drop(spawn(async {}));
            block_on(async {});
            drop(Timer::after(Duration::from_secs(1)));
            let _ = self.0.send(());
        }
    }
    for_each_setup(|runtime| {
        let (tell, told) = mpsc::channel();
        let calls_back = || CallsBack(tell.clone());
        let (one, other) = (calls_back(), calls_back());
        let done = runtime.spawn(async move { drop(one) });
        let cancelled = runtime.spawn(async move {
            pending::<()>().await;
            drop(other);
        });
        runtime.block_on(done);
        drop(cancelled);
        let third = calls_back();
        let left = async move {
            pending::<()>().await;
            drop(third);
        };
        runtime.spawn(left).detach();
        runtime.block_on(async { future::yield_now().await });
        (0..2).for_each(|_| told.recv_soon().unwrap());
        runtime.shutdown(SOON).unwrap();
        told.recv_soon().expect("the shutdown drops it");
    });
}

/// Spawns a task and registers a source. Sends the name of the task's thread, and the source, to `tell`.
fn use_free_functions(tell: &mpsc::Sender<(Option<String>, Async<UnixStream>)>) {
    let (one, _) = Async::<UnixStream>::pair().unwrap();
    let tell = tell.clone();
    let task = async move { tell.send((thread::current().name().map(str::to_owned), one)) };
    spawn(task).detach();
}

/// In a hook, free functions act on the runtime of that hook. Fails if hooks are called without
/// `Pool::visit`.
#[test]
fn hooks_are_inside_of_their_runtime() {
    for_each_builder(|setup| {
        let (tell, told) = mpsc::channel();
        let tell2 = tell.clone();
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let builder = setup.builder().on_thread_start(move || use_free_functions(&tell));
        let runtime = builder.on_stall(move |_| use_free_functions(&tell2)).build().unwrap();
        let mut kept = Vec::new();
        let mut hear_from = |hook: &str| {
            let (name, source) = told.recv_soon().expect("the task runs");
            assert!(name.as_ref().is_some_and(|name| name.starts_with("worker-")), "{hook}: {name:?}");
            kept.push(source);
            assert!(runtime.metrics().sources >= kept.len(), "{hook}: the source is another reactor's");
        };
        (0..setup.threads).for_each(|_| hear_from("on_thread_start"));
        runtime.spawn(async move { latch.wait() }).detach();
        hear_from("on_stall");
        drop(free);
    });
}

/// A relief leads while all workers block. Fails if a relief calls the hooks of workers: if such a hook
/// blocks, each relief would need the next one.
#[test]
fn a_relief_calls_no_hooks() {
    for_each_builder(|setup| {
        let names = Arc::new(Mutex::new(Vec::new()));
        let note = {
            let names = names.clone();
            move || names.lock().unwrap().push(thread::current().name().map(String::from))
        };
        let builder = setup.builder().max_threads(setup.threads);
        let runtime = builder.on_thread_park(note.clone()).on_thread_unpark(note).build().unwrap();
        let (latch, begun) = (Latch::new(), Arc::new(AtomicUsize::new(0)));
        let free = OpenOnDrop(latch.clone());
        for _ in 0..setup.threads {
            let (latch, begun) = (latch.clone(), begun.clone());
            let blocks = async move {
                begun.fetch_add(1, SeqCst);
                latch.wait();
            };
            runtime.spawn(blocks).detach();
        }
        eventually("all workers block", || begun.load(SeqCst) == setup.threads);
        let is_relief = |info: &paceline::ThreadInfo| info.kind == paceline::ThreadKind::Relief;
        {
            // Timers of the runtime are awaited elsewhere. The relief stays while one is armed.
            let _inside = runtime.handle().enter();
            let mut armed = Timer::after(Duration::from_secs(3600));
            assert!(future::block_on(future::poll_once(&mut armed)).is_none());
            (0..10).for_each(|_| _ = future::block_on(Timer::after(Duration::from_millis(2))));
            eventually("a relief leads", || runtime.threads().iter().any(is_relief));
        }
        drop(free);
        let names = names.lock().unwrap();
        assert!(!names.iter().flatten().any(|name| name.contains("relief")), "{names:?}");
    });
}

/// A future that a runtime drops when it is shut down is still inside of that runtime: its sources are
/// registered there, and a task that it spawns runs nowhere.
#[test]
fn futures_that_are_cancelled_are_inside_of_their_runtime() {
    struct CallsBack(mpsc::Sender<(Option<String>, Async<UnixStream>)>, Arc<Mutex<Vec<Async<UnixStream>>>>);
    impl Drop for CallsBack {
        fn drop(&mut self) {
            self.1.lock().unwrap().push(Async::<UnixStream>::pair().unwrap().0);
            use_free_functions(&self.0);
        }
    }
    for_each_setup(|runtime| {
        let (tell, told) = mpsc::channel();
        let kept = Arc::default();
        let calls_back = CallsBack(tell, Arc::clone(&kept));
        let (waits, is_waiting) = mpsc::channel();
        let left = async move {
            waits.send(()).unwrap();
            pending::<()>().await;
            drop(calls_back);
        };
        runtime.spawn(left).detach();
        is_waiting.recv_soon().unwrap();
        runtime.shutdown(SOON).unwrap();
        assert_eq!(kept.lock().unwrap().len(), 1);
        assert_eq!(runtime.metrics().sources, 1, "the source is another reactor's");
        assert!(told.try_recv().is_err(), "the task ran on another runtime");
    });
}

/// A waker that the leader calls, or a task that the leader polls, blocks its thread. Leadership is vacant by
/// then, so an awake thread takes it at once. Without the deputy, which would open leadership. Fails if an
/// event is fired before leadership is given up (LF2).
#[test]
fn a_thread_that_blocks_does_not_lead() {
    without_deputy(|setup, runtime| {
        let end = Latch::new();
        let _end = OpenOnDrop(end.clone());
        // One thread after the other blocks, until the last one is left.
        for _ in 0..setup.threads {
            let (blocks, end) = (Latch::new(), end.clone());
            let is_blocking = blocks.clone();
            let waker = waker_that(move || {
                blocks.open();
                end.wait();
            });
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            let socket = in_time(runtime, async { Async::new(theirs).unwrap() });
            assert!(socket.poll_readable(&mut Context::from_waker(&waker)).is_pending());
            ours.write_all(b"x").unwrap();
            is_blocking.wait();
            in_time(runtime, Timer::after(Duration::from_millis(1)));
        }
    });
}

/// Runs a future on an additional thread. The thread hosts an executor, so that it may lead beside the
/// workers.
fn in_time<T: Send + 'static>(runtime: &Arc<Runtime>, future: impl Future<Output = T> + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    let runtime = runtime.clone();
    thread::spawn(move || {
        let executor = Executor::new();
        let _ = tell.send(runtime.block_on(executor.run(future)));
    });
    told.recv_soon().expect("leadership is to be had")
}

/// `Debug` of everything, from inside a hook, a task and a waker: formatting takes no lock that a waiting
/// thread holds.
#[test]
fn everything_can_be_formatted_from_anywhere() {
    for_each_builder(|setup| {
        let cell: Arc<OnceLock<std::sync::Weak<paceline::Runtime>>> = Arc::default();
        let (tell, told) = mpsc::channel();
        let hook = {
            let cell = cell.clone();
            move |stall: &paceline::Stall| {
                let runtime = cell.get().and_then(std::sync::Weak::upgrade);
                let _ = tell.send(format!(
                    "{stall:?} {stall} {runtime:?} {:?}",
                    runtime.as_ref().map(|r| r.metrics())
                ));
            }
        };
        let builder = setup.builder().on_stall(hook);
        assert!(format!("{builder:?}").contains("threads"));
        let runtime = Arc::new(builder.build().unwrap());
        cell.set(Arc::downgrade(&runtime)).unwrap();
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let in_task = runtime.clone();
        let blocked = runtime.spawn(async move {
            let executor = Executor::new();
            let local = LocalExecutor::new();
            let pair = Async::<UnixStream>::pair().unwrap();
            let (readable, timer) = (pair.0.readable(), Timer::after(Duration::from_secs(9)));
            drop(format!(
                "{in_task:?} {executor:?} {local:?} {pair:?} {readable:?} {timer:?} {}",
                in_task.metrics()
            ));
            latch.wait();
        });
        let text = told.recv_soon().expect("the hook returns");
        assert!(text.contains("callbacks.rs") && text.contains("Crew"), "{text}");
        drop(free);
        runtime.block_on(blocked);
    });
}

/// A child echoes while it is stopped and continued all the time, which ends its waits with EINTR: until it
/// has got some hundred signals in each set-up.
#[test]
fn an_echo_survives_a_storm_of_signals() {
    const NAME: &str = "callbacks::an_echo_survives_a_storm_of_signals";
    const BEGINS: &str = "the storm may begin";
    if std::env::var("PACELINE_TEST_CHILD").is_ok_and(|name| name == NAME) {
        for_each_setup(|runtime| {
            let mut ping = Ping::new(runtime);
            println!("{BEGINS}");
            let storm = thread::spawn(|| std::io::stdin().read_exact(&mut [0]).unwrap());
            while !storm.is_finished() {
                ping.ping();
                // Let the leader fall asleep, too.
                runtime.block_on(async { Timer::after(Duration::from_millis(1)).await });
            }
            storm.join().unwrap();
        });
        return;
    }
    let mut command = child(NAME, ":");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut said, mut storms) = (String::new(), 0);
    for line in BufReader::new(stdout).lines().map(Result::unwrap) {
        if line.ends_with(BEGINS) {
            storms += 1;
            for _ in 0..100 {
                for signal in [rustix::process::Signal::STOP, rustix::process::Signal::CONT] {
                    rustix::process::kill_process(pid, signal).unwrap();
                    thread::sleep(Duration::from_micros(300));
                }
            }
            stdin.write_all(b"x").unwrap();
        }
        said.push_str(&line);
        said.push('\n');
    }
    let output = ends(child);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && storms > 0, "after {storms} storms: {text}\n{said}");
    // The worker that meets an error survives it, so only its message shows it.
    assert!(!text.contains("the poller failed"), "a signal was taken for an error: {text}");
}
