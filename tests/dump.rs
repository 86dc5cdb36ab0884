//! `Runtime::dump`: each unfinished task, and the line at which it waits.
//!
//! The names of functions are in every build, the lines only in one with debug information. So a test looks
//! for the line if the binary has lines, and for the function otherwise.
#![allow(unreachable_pub)]

#[allow(dead_code)]
#[path = "it/given_time.rs"]
mod given_time;
#[cfg(target_os = "linux")]
#[allow(dead_code)]
#[path = "it/idle_threads.rs"]
mod idle_threads;
#[allow(dead_code)]
#[path = "it/setups.rs"]
mod setups;

use std::backtrace::Backtrace;
use std::ffi::c_void;
use std::future::{pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Poll, Waker};
use std::time::Duration;

use async_lock::{Barrier, Mutex as AsyncMutex};
use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::trace::{Dump, TaskDump, TaskState, waits};
use paceline::{LocalExecutor, Runtime, Strand, Timer};

use crate::setups::eventually;

/// Records waits until this is dropped. One test at a time, because the switch is that of the process.
struct Recording(#[expect(dead_code, reason = "for its drop")] MutexGuard<'static, ()>);

impl Recording {
    fn begin(is_on: bool) -> Self {
        static ONE_TEST: Mutex<()> = Mutex::new(());
        let guard = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
        waits(is_on);
        Self(guard)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        waits(false);
    }
}

fn runtime() -> Runtime {
    Runtime::builder().threads(2).build().unwrap()
}

/// Returns a dump for which `is_so` holds.
#[track_caller]
fn dump_when(runtime: &Runtime, is_so: impl Fn(&Dump) -> bool) -> Dump {
    let mut dump = runtime.dump();
    let waits = AssertUnwindSafe(|| {
        eventually("there is such a dump", || {
            let is_there = is_so(&dump);
            if !is_there {
                dump = runtime.dump();
            }
            is_there
        });
    });
    if let Err(panic) = catch_unwind(waits) {
        eprintln!("{dump}");
        resume_unwind(panic);
    }
    dump
}

fn all_wait(number: usize) -> impl Fn(&Dump) -> bool {
    let waits = |task: &TaskDump| task.state == TaskState::Waits && !task.waits.is_empty();
    move |dump| dump.tasks.len() == number && dump.tasks.iter().all(waits)
}

/// Returns whether this binary knows the lines of its functions.
fn has_lines() -> bool {
    Backtrace::force_capture().to_string().contains("tests/dump.rs:")
}

/// Checks that the task's only wait is at this line of this function, and for this.
#[track_caller]
fn waits_at(task: &TaskDump, line: u32, function: &str, what: &str) {
    assert_eq!(task.waits.len(), 1, "{task}");
    let text = task.to_string();
    let (_, wait) = text.split_once("\n  has waited ").expect("it is on a line of its own");
    // What is called has a name in each build.
    assert!(wait.contains(&format!(" for {what}")), "{text}");
    let place = task.waits[0].to_string();
    let is_there = if has_lines() {
        place.starts_with(&format!("at tests/dump.rs:{line}:"))
    } else {
        place.contains(function)
    };
    assert!(is_there && wait.ends_with(&format!(", {place}")), "{text}");
    // The whole stack, on request.
    let stack = format!("{:#}", task.waits[0]);
    assert!(stack.lines().count() > 5 && stack.contains("shim::clone"), "{stack}");
}

const LOCK: u32 = line!() + 2;
async fn takes_the_lock(mutex: Arc<AsyncMutex<()>>) {
    let _guard = mutex.lock().await;
}

const READ: u32 = line!() + 2;
async fn reads_the_socket(mut stream: TcpStream) {
    let _ = stream.read(&mut [0]).await;
}

const SLEEP: u32 = line!() + 2;
async fn sleeps() {
    Timer::after(Duration::from_secs(3600)).await;
}

#[test]
fn a_dump_names_the_lines_that_wait_for_a_lock_a_socket_and_a_timer() {
    let _recording = Recording::begin(true);
    let runtime = runtime();
    let mutex = Arc::new(AsyncMutex::new(()));
    let held = mutex.try_lock_arc();
    let (stream, _other) = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (stream, listener.accept().await.unwrap())
    });
    let line = line!() + 1;
    runtime.spawn(takes_the_lock(mutex)).detach();
    runtime.spawn(reads_the_socket(stream)).detach();
    runtime.spawn(sleeps()).detach();
    // A dump reads the timers before the tasks, so the first one in which all wait may lack the timer.
    let is_complete = |dump: &Dump| all_wait(3)(dump) && !dump.tasks[2].timers.is_empty();
    let dump = dump_when(&runtime, is_complete);
    for (at, task) in (line..).zip(&dump.tasks) {
        assert_eq!((task.spawned_at.line(), task.wakers), (at, Some(1)), "{task}");
        assert!(task.number.is_some() && task.age >= task.since_poll && task.since_poll.is_some());
    }
    waits_at(&dump.tasks[0], LOCK, "takes_the_lock", "async_lock::mutex::Lock");
    waits_at(&dump.tasks[1], READ, "reads_the_socket", "a socket");
    waits_at(&dump.tasks[2], SLEEP, "sleeps", "a timer that is due in 60.0min");
    let text = dump.to_string();
    assert_eq!((text.starts_with("3 tasks\ntask spawned at "), text.lines().count()), (true, 7), "{text}");
    assert!(format!("{dump:#}").contains(", 1 waker\n"), "{dump:#}");
    drop(held);
}

const FIRST: u32 = line!() + 4;
async fn first_then_second(first: Arc<AsyncMutex<()>>, second: Arc<AsyncMutex<()>>, both: Arc<Barrier>) {
    let _one = first.lock().await;
    both.wait().await;
    let _two = second.lock().await;
}

const SECOND: u32 = line!() + 4;
async fn second_then_first(first: Arc<AsyncMutex<()>>, second: Arc<AsyncMutex<()>>, both: Arc<Barrier>) {
    let _two = second.lock().await;
    both.wait().await;
    let _one = first.lock().await;
}

#[test]
fn a_dump_of_a_deadlock_names_both_lines() {
    let _recording = Recording::begin(true);
    let runtime = runtime();
    let [first, second] = [(); 2].map(|()| Arc::new(AsyncMutex::new(())));
    let both = Arc::new(Barrier::new(2));
    runtime.spawn(first_then_second(first.clone(), second.clone(), both.clone())).detach();
    runtime.spawn(second_then_first(first, second, both)).detach();
    let dump = dump_when(&runtime, all_wait(2));
    waits_at(&dump.tasks[0], FIRST, "first_then_second", "async_lock::mutex::Lock");
    waits_at(&dump.tasks[1], SECOND, "second_then_first", "async_lock::mutex::Lock");
}

const SECOND_READ: u32 = line!() + 3;
async fn reads_twice(mut stream: TcpStream) {
    stream.read_exact(&mut [0]).await.unwrap();
    stream.read_exact(&mut [0]).await.unwrap();
}

/// The second wait may use the waker that the event has called, without a clone. The waker of an observed
/// task is cloned nevertheless.
#[test]
fn a_dump_names_the_line_of_the_last_wait() {
    let _recording = Recording::begin(true);
    let runtime = runtime();
    let (stream, mut other) = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (stream, listener.accept().await.unwrap().0)
    });
    runtime.spawn(reads_twice(stream)).detach();
    let first = dump_when(&runtime, all_wait(1)).tasks[0].waits[0].to_string();
    runtime.block_on(other.write_all(b"x")).unwrap();
    let has_moved = |dump: &Dump| all_wait(1)(dump) && dump.tasks[0].waits[0].to_string() != first;
    if has_lines() {
        waits_at(&dump_when(&runtime, has_moved).tasks[0], SECOND_READ, "reads_twice", "a socket");
    }
}

#[test]
fn a_dump_has_the_state_of_each_task() {
    let _recording = Recording::begin(true);
    // Without a deputy, which would find a replacement for the worker.
    let runtime = Runtime::builder().threads(1).tuning(setups::without_looks()).build().unwrap();
    let (tell, told) = mpsc::channel::<Waker>();
    let (release, released) = mpsc::channel::<()>();
    // A task that a waker of its own keeps, and one that none can wake.
    let mut is_over = false;
    runtime
        .spawn(poll_fn(move |cx| {
            if std::mem::replace(&mut is_over, true) {
                return Poll::Ready(());
            }
            (0..2).for_each(|_| tell.send(cx.waker().clone()).unwrap());
            Poll::Pending
        }))
        .detach();
    let lost = runtime.spawn(pending::<()>());
    let wakers = [told.recv().unwrap(), told.recv().unwrap()];
    let states = |dump: &Dump| dump.tasks.iter().map(|task| task.state).collect::<Vec<_>>();
    let dump = dump_when(&runtime, |dump| states(dump) == [TaskState::Waits; 2]);
    assert_eq!(dump.tasks.iter().map(|task| task.wakers).collect::<Vec<_>>(), [Some(2), Some(0)]);
    // The only worker is busy, so these two have to wait for it.
    runtime.spawn(async move { released.recv() }).detach();
    dump_when(&runtime, |dump| states(dump).last() == Some(&TaskState::Runs));
    wakers[0].wake_by_ref();
    runtime.spawn(async {}).detach();
    let dump = runtime.dump();
    let mut found = states(&dump);
    found.sort_by_key(|state| format!("{state}"));
    let expected = [TaskState::New, TaskState::Ready, TaskState::Runs, TaskState::Waits];
    assert_eq!(found, expected, "{dump}");
    release.send(()).unwrap();
    drop(wakers);
    drop(lost);
    dump_when(&runtime, |dump| dump.tasks.is_empty());
}

#[test]
fn tasks_of_strands_and_local_executors_are_in_the_dump_once() {
    let _recording = Recording::begin(true);
    let runtime = runtime();
    let strand = Strand::new(());
    let _entered = runtime.handle().enter();
    let turn = strand.spawn(sleeps());
    let local = LocalExecutor::new();
    let stays = local.spawn(sleeps());
    let handle = runtime.handle();
    let dump = runtime.block_on(local.run(async {
        loop {
            let dump = handle.dump();
            if all_wait(2)(&dump) {
                return dump;
            }
            Timer::after(Duration::from_millis(1)).await;
        }
    }));
    for task in &dump.tasks {
        waits_at(task, SLEEP, "sleeps", "a timer that is due in 60.0min");
    }
    assert_eq!(dump.unpolled, 0);
    drop((turn, stays));
}

#[test]
fn tasks_that_are_spawned_while_waits_are_off_are_listed_without_them() {
    let _recording = Recording::begin(false);
    let runtime = runtime();
    let line = line!() + 1;
    runtime.spawn(sleeps()).detach();
    let dump = dump_when(&runtime, |dump| dump.tasks.len() == 1 && dump.tasks[0].state == TaskState::Waits);
    let task = &dump.tasks[0];
    assert_eq!((task.number, task.wakers, task.waits.len()), (None, None, 0));
    assert_eq!((task.spawned_at.line(), dump.unpolled, dump.is_partial), (line, 0, false));
    assert!(task.age.is_some() && task.since_poll.is_none());
    // The timer knows for which task it is.
    assert_eq!(task.timers.len(), 1);
    assert!(task.to_string().ends_with(" old, waits for a timer that is due in 60.0min"), "{task}");
    // How to learn more.
    assert!(dump.to_string().contains("if `paceline::trace::waits(true)` is called"), "{dump}");
    drop(runtime);
}

#[test]
fn a_dump_of_ten_thousand_tasks_shows_the_first_places() {
    let _recording = Recording::begin(true);
    let runtime = runtime();
    (0..10_000).for_each(|_| runtime.spawn(sleeps()).detach());
    dump_when(&runtime, all_wait(10_000));
    let text = runtime.dump().to_string();
    assert!(text.contains("where 9950 tasks more wait is not shown"), "{}", &text[text.len() - 300..]);
}

const MESSAGE: u32 = line!() + 2;
async fn waits_for_a_message(receiver: async_channel::Receiver<()>) {
    _ = receiver.recv().await;
}

const TICK: u32 = line!() + 3;
async fn ticks_for_ever() {
    loop {
        Timer::after(Duration::from_millis(2)).await;
    }
}

/// Returns how often the dump names this line, or this function if the binary has no lines.
fn count(dump: &Dump, line: u32, function: &str) -> usize {
    let place = format!("tests/dump.rs:{line}:");
    dump.to_string().matches(if has_lines() { &place } else { function }).count()
}

/// A wait that lasts is among those of a task whose other wait is renewed all the time.
#[test]
fn a_dump_names_a_wait_that_lasts_beside_one_that_is_renewed() {
    let _recording = Recording::begin(true);
    let runtime = runtime();
    let (_sender, receiver) = async_channel::bounded(1);
    // In an `async` block, so that the task is of this crate also if no lines are known.
    let waits = async { futures_lite::future::or(waits_for_a_message(receiver), ticks_for_ever()).await };
    let task = runtime.spawn(waits);
    std::thread::sleep(Duration::from_millis(100));
    let dump = dump_when(&runtime, all_wait(1));
    assert_eq!(count(&dump, MESSAGE, "waits_for_a_message"), 1, "{dump}");
    assert_eq!(count(&dump, TICK, "ticks_for_ever"), 1, "{dump}");
    assert!(dump.tasks[0].waits.len() <= 8);
    drop(task);
}

/// A dump does not name a place that the task has left since the recording ended.
#[test]
fn a_wait_that_was_not_recorded_hides_earlier_ones() {
    let recording = Recording::begin(true);
    let runtime = runtime();
    let (sender, receiver) = async_channel::bounded(1);
    runtime
        .spawn(async move {
            waits_for_a_message(receiver).await;
            ticks_for_ever().await;
        })
        .detach();
    let dump = dump_when(&runtime, all_wait(1));
    assert_eq!(count(&dump, MESSAGE, "waits_for_a_message"), 1, "{dump}");
    waits(false);
    sender.try_send(()).unwrap();
    dump_when(&runtime, |dump| dump.tasks.iter().all(|task| task.waits.is_empty()));
    drop(recording);
}

const BLOCK: u32 = line!() + 2;
fn blocks_its_thread(ended: &mpsc::Receiver<()>) {
    assert!(ended.recv().is_err());
}

/// The task is spawned at one line, and blocks at another one.
#[test]
fn a_stall_names_the_line_that_blocks() {
    let (tell, told) = mpsc::channel();
    let hook = move |stall: &paceline::Stall| _ = tell.send((stall.blocked_at(), stall.to_string()));
    let runtime = Runtime::builder().threads(1).on_stall(hook).build().unwrap();
    let (end, ended) = mpsc::channel();
    let task = runtime.spawn(async move { blocks_its_thread(&ended) });
    let (line, text) = told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(line.is_some(), cfg!(all(target_os = "linux", target_arch = "x86_64")), "{text}");
    if let Some(line) = line {
        let is_there = if has_lines() {
            line.starts_with(&format!("at tests/dump.rs:{BLOCK}:"))
        } else {
            line.contains("blocks_its_thread")
        };
        assert!(is_there && text.ends_with(&format!(", in futex called {line}")), "{text}");
    }
    drop(end);
    runtime.block_on(task);
}

/// Fails if a clone takes the lock under which symbols are looked up: then tasks wait while a dump is
/// displayed.
#[test]
fn tasks_go_on_while_symbols_are_looked_up() {
    let _recording = Recording::begin(true);
    let runtime = runtime();
    let clones = Arc::new(AtomicUsize::new(0));
    let counted = clones.clone();
    let task = runtime.spawn(poll_fn(move |cx| -> Poll<()> {
        drop(cx.waker().clone());
        counted.fetch_add(1, Relaxed);
        cx.waker().wake_by_ref();
        Poll::Pending
    }));
    let mut has_symbol = false;
    let here = (tasks_go_on_while_symbols_are_looked_up as fn() as *mut c_void).wrapping_byte_add(1);
    // The lock is held while the closure is called.
    backtrace::resolve(here, |_| {
        has_symbol = true;
        let before = clones.load(Relaxed);
        eventually("wakers are cloned", || clones.load(Relaxed) > before + 1);
    });
    assert!(has_symbol);
    drop(task);
}
