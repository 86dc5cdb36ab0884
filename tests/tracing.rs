//! The feature `tracing`: what a subscriber sees of tasks, their wakers, and stalls.
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

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use paceline::blocking::Job;
use paceline::{Executor, LocalExecutor, Runtime, Strand, Timer, block_on, unblock};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, Subscriber};
use tracing::{Event, Metadata};

use crate::given_time::RecvSoon;

/// What the subscriber has seen of a span.
#[derive(Clone, Debug, Default)]
struct Seen {
    fields: HashMap<String, String>,
    parent_is_none: bool,
    enters: usize,
    exits: usize,
    closed: usize,
    clones: usize,
    drops: usize,
    wakes: usize,
    wakes_by_ref: usize,
    self_wakes: usize,
}

impl Seen {
    fn is(&self, field: &str, value: impl ToString) -> bool {
        self.fields.get(field).is_some_and(|found| *found == value.to_string())
    }

    /// The number of wakers that exist.
    fn alive(&self) -> usize {
        self.clones - self.drops - self.wakes
    }
}

type Hook = Box<dyn Fn(&str) + Send + Sync>;

/// The global subscriber: it records the spans of tasks, and calls a hook in each of its methods.
struct Recorder;

static SPANS: LazyLock<Mutex<HashMap<u64, Seen>>> = LazyLock::new(Mutex::default);
static STALLS: LazyLock<Mutex<Vec<HashMap<String, String>>>> = LazyLock::new(Mutex::default);
/// Until when the subscriber keeps the thread that emits the stall of a line.
static HELD: LazyLock<Mutex<HashMap<String, Receiver<()>>>> = LazyLock::new(Mutex::default);
static HOOK: OnceLock<Hook> = OnceLock::new();
static LAST_ID: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The spans that this thread has entered.
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    /// Whether the subscriber wants nothing from this thread.
    static IS_DEAF: Cell<bool> = const { Cell::new(false) };
}

/// The fields of a span or an event.
#[derive(Default)]
struct Fields(HashMap<String, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        write!(text, "{value:?}").unwrap();
        self.0.insert(field.name().into(), text);
    }
}

fn spans() -> MutexGuard<'static, HashMap<u64, Seen>> {
    SPANS.lock().unwrap()
}

fn call_hook(what: &str) {
    if let Some(hook) = HOOK.get() {
        hook(what);
    }
}

impl Subscriber for Recorder {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_ours = metadata.name() == "runtime.spawn" || metadata.target().starts_with("runtime::");
        is_ours && !IS_DEAF.get()
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = LAST_ID.fetch_add(1, SeqCst) + 1;
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let seen = Seen { fields: fields.0, parent_is_none: attributes.is_root(), ..Seen::default() };
        spans().insert(id, seen);
        call_hook("new");
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        match event.metadata().target() {
            "runtime::waker" => {
                let id = fields.0["task.id"].parse().unwrap();
                let is_inside = ENTERED.with_borrow(|entered| entered.contains(&id));
                if let Some(seen) = spans().get_mut(&id) {
                    let is_wake = match &*fields.0["op"] {
                        "waker.clone" => (seen.clones += 1, false).1,
                        "waker.drop" => (seen.drops += 1, false).1,
                        "waker.wake" => (seen.wakes += 1, true).1,
                        "waker.wake_by_ref" => (seen.wakes_by_ref += 1, true).1,
                        other => panic!("{other}"),
                    };
                    seen.self_wakes += usize::from(is_wake && is_inside);
                }
            }
            "runtime::stall" => {
                let held = HELD.lock().unwrap().remove(&fields.0["loc.line"]);
                STALLS.lock().unwrap().push(fields.0);
                if let Some(held) = held {
                    _ = held.recv();
                }
            }
            _ => return,
        }
        call_hook("event");
    }

    fn enter(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(id.into_u64()));
        spans().get_mut(&id.into_u64()).unwrap().enters += 1;
        call_hook("enter");
    }

    fn exit(&self, id: &Id) {
        let last = ENTERED.with_borrow_mut(Vec::pop);
        assert_eq!(last, Some(id.into_u64()), "spans are left in the opposite order");
        spans().get_mut(&id.into_u64()).unwrap().exits += 1;
        call_hook("exit");
    }

    fn try_close(&self, id: Id) -> bool {
        spans().get_mut(&id.into_u64()).unwrap().closed += 1;
        call_hook("close");
        true
    }
}

/// Makes the recorder the global subscriber, once.
fn record() {
    static SET: Once = Once::new();
    SET.call_once(|| tracing::subscriber::set_global_default(Recorder).unwrap());
}

fn runtime() -> Runtime {
    record();
    Runtime::builder().threads(2).build().unwrap()
}

/// Returns the one span of the line.
#[track_caller]
fn at(line: u32) -> Seen {
    let all = spans();
    let mut of_line = all.values().filter(|seen| seen.is("loc.line", line) && seen.is("loc.file", file!()));
    let seen = of_line.next().expect("no span names the line");
    assert!(of_line.next().is_none(), "several spans name line {line}");
    seen.clone()
}

/// Returns the one span of the line, once `is_so` holds for it.
#[track_caller]
fn eventually(line: u32, is_so: impl Fn(&Seen) -> bool) -> Seen {
    let mut seen = at(line);
    setups::eventually("the span is as it is to be", || {
        if !is_so(&seen) {
            seen = at(line);
        }
        is_so(&seen)
    });
    seen
}

/// Returns the one span of the line, once it is closed, and checks that it was left as often as entered.
#[track_caller]
fn closed(line: u32) -> Seen {
    let seen = eventually(line, |seen| seen.closed > 0);
    assert_eq!((seen.closed, seen.exits), (1, seen.enters), "{seen:?}");
    seen
}

/// Wakes the own task, and waits once.
fn yield_once() -> impl Future<Output = ()> {
    let mut is_over = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

#[test]
fn each_kind_has_a_span_with_its_line() {
    let runtime = runtime();
    let local = LocalExecutor::new();
    let executor = Executor::new();
    let strand = Strand::new(());
    let _entered = runtime.handle().enter();
    let line = line!();
    let task = runtime.spawn(async {});
    let by_handle = runtime.handle().spawn(async {});
    let free = paceline::spawn(async {});
    let stays = local.spawn(async {});
    let other = executor.spawn(async {});
    let turn = strand.spawn(async {});
    let closure = unblock(|| {});
    let job = Job::new(|| {}).name("tidy").submit();
    block_on(task);
    block_on(by_handle);
    block_on(free);
    block_on(local.run(stays));
    block_on(executor.run(other));
    block_on(turn);
    block_on(closure);
    block_on(job).unwrap();
    let kinds = ["task", "task", "task", "local", "task", "strand", "blocking"];
    for (line, kind) in (line + 1..).zip(kinds) {
        let seen = closed(line);
        assert!(seen.is("kind", kind) && seen.is("task.name", ""), "{seen:?}");
        assert!(seen.parent_is_none && seen.fields.contains_key("size.bytes"), "{seen:?}");
        assert!(!seen.fields.contains_key("original_size.bytes"), "{seen:?}");
        // Its poll, and its drop.
        assert_eq!(seen.enters, 2, "{seen:?}");
    }
    let seen = closed(line + 8);
    assert!(seen.is("kind", "blocking") && seen.is("task.name", "tidy"), "{seen:?}");
    for line in line + 9..=line + 16 {
        let seen = closed(line);
        assert!(seen.is("kind", "block_on"), "{seen:?}");
    }
}

#[test]
fn a_span_has_the_sizes_of_a_boxed_future() {
    let runtime = runtime();
    let large = [7_u8; 5_000];
    let future = async move {
        yield_once().await;
        large.len()
    };
    let size = size_of_val(&future);
    let line = line!() + 1;
    assert_eq!(runtime.block_on(runtime.spawn(future)), 5_000);
    let all = spans();
    let is_task = |seen: &&Seen| seen.is("loc.line", line) && seen.is("kind", "task");
    let seen = all.values().find(is_task).unwrap();
    let boxed = size_of::<Pin<Box<dyn Future<Output = usize>>>>();
    assert!(seen.is("original_size.bytes", size) && seen.is("size.bytes", boxed), "{seen:?}");
}

#[test]
fn a_span_is_entered_for_each_poll_and_for_the_drop() {
    let runtime = runtime();
    let line = line!() + 1;
    let task = runtime.spawn(async {
        for _ in 0..10 {
            yield_once().await;
        }
    });
    runtime.block_on(task);
    let seen = closed(line);
    assert_eq!((seen.enters, seen.wakes_by_ref, seen.self_wakes), (12, 10, 10), "{seen:?}");
    assert_eq!((seen.clones, seen.alive()), (0, 0), "{seen:?}");
}

#[test]
fn a_panic_leaves_the_span() {
    let runtime = runtime();
    let line = line!() + 1;
    let task = runtime.spawn(async {
        yield_once().await;
        std::panic::resume_unwind(Box::new(()));
    });
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(task)));
    assert!(caught.is_err());
    assert_eq!(closed(line).enters, 3);
}

#[test]
fn each_waker_that_is_cloned_is_dropped_or_woken() {
    let runtime = runtime();
    let kept = Arc::new(Mutex::new(Vec::<Waker>::new()));
    let wakes = kept.clone();
    let line = line!() + 1;
    let task = runtime.spawn(async move {
        for round in 1..=5 {
            let mut is_over = false;
            poll_fn(|cx| {
                if std::mem::replace(&mut is_over, true) {
                    return Poll::Ready(());
                }
                kept.lock().unwrap().extend((0..round).map(|_| cx.waker().clone()));
                Poll::Pending
            })
            .await;
        }
    });
    for round in 1..=5 {
        let seen = eventually(line, |seen| seen.alive() == round);
        assert_eq!((seen.wakes, seen.wakes_by_ref), (round - 1, 0), "{seen:?}");
        let mut wakers = std::mem::take(&mut *wakes.lock().unwrap());
        let last = wakers.pop().unwrap();
        drop(wakers);
        last.wake();
    }
    runtime.block_on(task);
    let seen = closed(line);
    assert_eq!((seen.clones, seen.drops, seen.wakes, seen.self_wakes), (15, 10, 5, 0), "{seen:?}");
}

#[test]
fn a_leaked_waker_shows() {
    let runtime = runtime();
    let line = line!() + 1;
    let task = runtime.spawn(poll_fn(|cx| {
        std::mem::forget(cx.waker().clone());
        Poll::Ready(())
    }));
    runtime.block_on(task);
    assert_eq!(closed(line).alive(), 1);
}

#[test]
fn timers_and_sockets_leave_no_waker_behind() {
    let runtime = runtime();
    let line = line!() + 1;
    let task = runtime.spawn(async {
        use futures_lite::{AsyncReadExt, AsyncWriteExt};
        let listener = paceline::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = paceline::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        for _ in 0..20 {
            Timer::after(Duration::from_micros(300)).await;
            let write = async {
                Timer::after(Duration::from_micros(100)).await;
                client.write_all(b"x").await.unwrap();
            };
            let mut byte = [0];
            let (read, ()) = futures_lite::future::zip(server.read_exact(&mut byte), write).await;
            read.unwrap();
        }
    });
    runtime.block_on(task);
    closed(line);
    let seen = eventually(line, |seen| seen.alive() == 0);
    assert!(seen.clones >= 40 && seen.wakes + seen.wakes_by_ref >= 40, "{seen:?}");
}

/// Drops `self` inside of the span in which it was polled.
struct Checks(Option<u64>, Arc<AtomicUsize>);

impl Future for Checks {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        self.0 = ENTERED.with_borrow(|entered| entered.last().copied());
        Poll::Pending
    }
}

impl Drop for Checks {
    fn drop(&mut self) {
        let now = ENTERED.with_borrow(|entered| entered.last().copied());
        if self.0.is_some() && self.0 == now {
            self.1.fetch_add(1, SeqCst);
        }
    }
}

#[test]
fn a_future_is_dropped_inside_of_its_span() {
    let runtime = runtime();
    let strand = Strand::new(());
    let inside = Arc::new(AtomicUsize::new(0));
    let _entered = runtime.handle().enter();
    let line = line!() + 1;
    let task = runtime.spawn(Checks(None, inside.clone()));
    let turn = strand.spawn(Checks(None, inside.clone()));
    for line in [line, line + 1] {
        eventually(line, |seen| seen.exits == 1);
    }
    runtime.block_on(task.cancel());
    drop(turn);
    for line in [line, line + 1] {
        assert_eq!(closed(line).enters, 2);
    }
    assert_eq!(inside.load(SeqCst), 2);
}

#[test]
fn the_waker_is_the_same_in_each_poll_while_a_clone_exists() {
    let runtime = runtime();
    let (tell, told) = std::sync::mpsc::channel();
    let task = runtime.spawn(async move {
        let mut first = None::<Waker>;
        let mut polls = 0;
        poll_fn(|cx| {
            polls += 1;
            tell.send(first.as_ref().is_none_or(|first| first.will_wake(cx.waker()))).unwrap();
            first.get_or_insert_with(|| cx.waker().clone());
            cx.waker().wake_by_ref();
            if polls == 5 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    });
    runtime.block_on(task);
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [true; 5]);
}

/// One of two futures waits for long. Each time the other one is polled, the first sees a waker that it has.
#[test]
fn a_join_does_not_clone_the_waker_in_each_poll() {
    let runtime = runtime();
    let line = line!() + 1;
    let task = runtime.spawn(async {
        let listener = paceline::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ticks = async {
            for _ in 0..10 {
                yield_once().await;
            }
        };
        futures_lite::future::or(async { drop(listener.accept().await) }, ticks).await;
    });
    runtime.block_on(task);
    assert_eq!(closed(line).clones, 1);
}

#[test]
fn a_task_is_not_observed_if_no_subscriber_wants_its_span() {
    let runtime = runtime();
    IS_DEAF.set(true);
    let line = line!() + 1;
    let task = runtime.spawn(poll_fn(|cx| {
        assert!(ENTERED.with_borrow(Vec::is_empty));
        drop(cx.waker().clone());
        Poll::Ready(())
    }));
    IS_DEAF.set(false);
    runtime.block_on(task);
    assert!(!spans().values().any(|seen| seen.is("loc.line", line) && seen.is("kind", "task")));
}

/// The hook spawns a task for each call, wakes one, and blocks. What it does there is not reported, so this
/// comes to an end.
#[test]
fn a_subscriber_may_spawn_and_wake_and_block() {
    static IS_ON: AtomicBool = AtomicBool::new(false);
    static SPAWNED: AtomicUsize = AtomicUsize::new(0);
    static WAKER: Mutex<Option<Waker>> = Mutex::new(None);
    thread_local! {
        static IS_MINE: Cell<bool> = const { Cell::new(false) };
    }
    let runtime = runtime();
    let handle = runtime.handle();
    let is_set = HOOK.set(Box::new(move |_| {
        if IS_ON.load(SeqCst) && IS_MINE.get() {
            let waker = WAKER.lock().unwrap().clone();
            if let Some(waker) = waker {
                waker.wake();
            }
            SPAWNED.fetch_add(1, SeqCst);
            assert_eq!(handle.block_on(handle.spawn(async { 7 })), 7);
        }
    }));
    assert!(is_set.is_ok());
    let begin = line!();
    let task = runtime.spawn(poll_fn(|cx| {
        IS_MINE.set(true);
        IS_ON.store(true, SeqCst);
        let waker = cx.waker().clone();
        let old = WAKER.lock().unwrap().replace(waker);
        // Outside of the lock: the hook takes it.
        drop(old);
        cx.waker().wake_by_ref();
        let before = SPAWNED.load(SeqCst);
        let result = if before < 20 { Poll::Pending } else { Poll::Ready(()) };
        if result.is_ready() {
            IS_ON.store(false, SeqCst);
        }
        result
    }));
    runtime.block_on(task);
    IS_ON.store(false, SeqCst);
    let end = line!();
    let last = WAKER.lock().unwrap().take();
    drop(last);
    assert!(SPAWNED.load(SeqCst) >= 20);
    closed(begin + 1);
    let line_of = |seen: &Seen| seen.fields["loc.line"].parse::<u32>().unwrap();
    assert!(!spans().values().any(|seen| (begin - 10..begin - 1).contains(&line_of(seen))), "{begin} {end}");
}

#[test]
fn a_task_inside_of_a_block_on_of_another_has_its_own_polls() {
    record();
    let runtime = Runtime::builder().current_thread().build().unwrap();
    let handle = runtime.handle();
    let line = line!() + 1;
    let outer = runtime.spawn(async move {
        let inner = handle.spawn(async { yield_once().await });
        handle.block_on(inner);
    });
    runtime.block_on(outer);
    assert_eq!(closed(line).enters, 2);
    let inner = closed(line + 1);
    assert_eq!((inner.enters, inner.self_wakes), (3, 1));
}

/// The runtime knows its tasks by their own wakers. With an observed one, it has to find that in the wrapper.
#[test]
fn a_task_that_runs_another_executor_keeps_the_direct_slot() {
    record();
    let runtime = Runtime::builder().threads(1).build().unwrap();
    let (tell, told) = std::sync::mpsc::channel::<Waker>();
    let mut is_over = false;
    let woken = runtime.spawn(poll_fn(move |cx| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        tell.send(cx.waker().clone()).unwrap();
        Poll::Pending
    }));
    let waker = told.recv().unwrap();
    let before = runtime.metrics().polls_direct;
    let wakes = runtime.spawn(async move {
        let executor = Executor::new();
        executor.run(yield_once()).await;
        waker.wake();
    });
    std::thread::scope(|scope| scope.spawn(|| pollster::block_on(wakes)).join().unwrap());
    pollster::block_on(woken);
    assert!(runtime.metrics().polls_direct > before);
}

#[test]
fn a_block_on_inside_of_a_strand_that_waits_for_itself_panics() {
    record();
    let strand = Strand::new(());
    let strand2 = strand.clone();
    let waits_for_itself = move |_: &mut ()| {
        let waits = || block_on(strand2.with(|()| ()));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(waits)).is_err()
    };
    let operation = async move { strand.with(waits_for_itself).await };
    // On a thread of its own, because it would wait for ever.
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || tell.send(block_on(operation)));
    assert_eq!(told.recv_soon(), Ok(true));
}

#[test]
fn a_stall_is_an_event_with_its_place() {
    let runtime = runtime();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let line = line!() + 1;
    let task = runtime.spawn(async move { ended.recv() });
    let mut mine = None;
    setups::eventually("the stall is reported", || {
        let stalls = STALLS.lock().unwrap();
        mine = stalls.iter().find(|stall| stall["loc.line"] == line.to_string()).cloned();
        mine.is_some()
    });
    drop(end);
    assert!(runtime.block_on(task).is_err());
    let stall = mine.unwrap();
    assert!(stall["loc.file"] == file!() && stall["message"].starts_with("the task spawned at"));
    assert_eq!(stall["is_first"], "true");
    if cfg!(target_os = "linux") {
        assert_eq!((&*stall["kind"], &*stall["syscall"]), ("blocked", "futex"));
    }
}

/// Fails if a report of a stall is in progress until its event is emitted: the subscriber loads the symbols
/// of the program, and may block.
#[test]
fn a_subscriber_that_blocks_delays_no_hook() {
    record();
    let (tell, told) = std::sync::mpsc::channel();
    let hook = move |stall: &paceline::Stall| _ = tell.send(stall.spawned_at.line());
    let runtime = Runtime::builder().threads(2).on_stall(hook).build().unwrap();
    let (release, held) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let (end_other, other_ended) = std::sync::mpsc::channel::<()>();
    let line = line!() + 2;
    HELD.lock().unwrap().insert(line.to_string(), held);
    let task = runtime.spawn(async move { ended.recv() });
    setups::eventually("the subscriber blocks", || !HELD.lock().unwrap().contains_key(&line.to_string()));
    let line = line!() + 1;
    let other = runtime.spawn(async move { other_ended.recv() });
    while told.recv_soon() != Ok(line) {}
    drop((release, end, end_other));
    assert!(runtime.block_on(task).is_err() && runtime.block_on(other).is_err());
}
