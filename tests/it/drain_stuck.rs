//! Drains with stuck threads: polls and destructors that block, threads without a core, and tasks that wait
//! for the report beside them. Each task appears in one number of the report.

use std::future::{Future, pending};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use futures_lite::future;
use paceline::{DrainReport, Handle, Runtime, block_on};

use crate::drain::{Count, HOUR, SHORT, blocks, counts, waits};
use crate::given_time::RecvSoon;
use crate::setups::{Latch, OpenOnDrop, eventually, for_each_builder, for_each_setup};

/// Does something when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Spawns a task that waits for ever, and calls a function when it is dropped.
fn drops(runtime: &Runtime, does: impl FnMut() + Send + 'static) {
    let on_drop = OnDrop(does);
    let (tell, told) = mpsc::channel();
    let task = runtime.spawn(async move {
        let _on_drop = on_drop;
        tell.send(()).unwrap();
        pending::<()>().await;
    });
    task.detach();
    told.recv_soon().unwrap();
}

/// Fails if a thread that drops one future after the other counts as stuck.
#[test]
fn a_thread_that_drops_many_futures_is_not_stuck() {
    for_each_setup(|runtime| {
        const ALL: usize = if cfg!(miri) { 10 } else { 60 };
        let count = Count::default();
        for _ in 0..ALL {
            let one = count.one();
            drops(runtime, move || {
                let _one = &one;
                thread::sleep(Duration::from_millis(3));
            });
        }
        let report = future::block_on(runtime.drain(Duration::ZERO));
        assert_eq!((counts(&report), count.get(), report.undropped), ((0, ALL, 0), ALL, 0), "{report}");
    });
}

/// Dropping the runtime does not wait for destructors that block. Fails if the dropping thread drops the
/// futures itself.
#[test]
fn dropping_a_runtime_does_not_wait_for_destructors_that_block() {
    for_each_builder(|setup| {
        let runtime = setup.builder().blocking_threads(1).build().unwrap();
        let (latch, count) = (Latch::new(), Count::default());
        let free = OpenOnDrop(latch.clone());
        // One for each worker, and one behind a closure that blocks the helper.
        for _ in 0..=setup.threads {
            let latch = latch.clone();
            drops(&runtime, move || latch.wait());
        }
        let (busy, behind, one) = (latch.clone(), latch.clone(), count.one());
        let handle = runtime.handle();
        let entered = handle.enter();
        paceline::unblock(move || busy.wait()).detach();
        let on_drop = OnDrop(move || {
            let _one = &one;
            behind.wait();
        });
        paceline::unblock(move || drop(on_drop)).detach();
        drop(entered);
        drop(runtime);
        drop(free);
        eventually("the closure is dropped", || count.get() == 1);
    });
}

/// A future blocks when it is cancelled: it is counted, and other threads drop the rest. Fails if no other
/// thread does.
#[test]
fn a_destructor_that_blocks_is_counted_and_keeps_no_other_from_running() {
    for_each_setup(|runtime| {
        let (latch, count) = (Latch::new(), Count::default());
        let free = OpenOnDrop(latch.clone());
        (0..10).for_each(|_| waits(runtime, &count));
        drops(runtime, move || latch.wait());
        (0..10).for_each(|_| waits(runtime, &count));
        let report = future::block_on(runtime.drain(SHORT));
        assert_eq!((counts(&report), count.get(), report.undropped), ((0, 21, 1), 20, 1), "{report}");
        assert_eq!(report.stuck[0].spawned_at, None, "{report}");
        drop(free);
        eventually("the threads end", || runtime.metrics().workers == 0);
        assert_eq!(runtime.metrics().tasks, Some(0));
    });
}

/// A thread that has a tenth of a core is in a poll for a while. Fails if wall time decides which thread is
/// stuck.
///
/// Measures six milliseconds of processor time that take long. Its exact twin is in `probe/witness.rs`.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "timed: a drain waits for a thread that has a ninth of a core"]
fn a_thread_without_a_core_is_not_stuck() {
    use std::sync::atomic::AtomicBool;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use rustix::time::{ClockId, clock_gettime};
    let all = sched_getaffinity(None).unwrap();
    let mut core = CpuSet::new();
    core.set((0..CpuSet::MAX_CPU).rev().find(|core| all.is_set(*core)).unwrap());
    let pins = move || sched_setaffinity(None, &core).unwrap();
    let runtime = Runtime::builder().threads(1).on_thread_start(pins).build().unwrap();
    let ended = Arc::new(AtomicBool::new(false));
    let rivals = [(); 8].map(|()| {
        let ended = ended.clone();
        thread::spawn(move || {
            pins();
            while !ended.load(SeqCst) {}
        })
    });
    let (tell, told) = mpsc::channel();
    let task = runtime.spawn(async move {
        tell.send(()).unwrap();
        let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        let begin = used();
        while used() - begin < Duration::from_millis(6) {}
        pending::<()>().await
    });
    task.detach();
    told.recv_soon().unwrap();
    let report = future::block_on(runtime.drain(Duration::ZERO));
    ended.store(true, SeqCst);
    rivals.into_iter().for_each(|rival| rival.join().unwrap());
    assert_eq!(counts(&report), (0, 1, 0), "{report}");
}

/// Drains the runtime when it may start, and signals when it waits for the report.
fn asks(
    handle: Handle,
    may_go: async_channel::Receiver<()>,
    asked: &Arc<AtomicUsize>,
) -> impl Future<Output = DrainReport> + Send + 'static {
    let asked = asked.clone();
    async move {
        let _ = may_go.recv().await;
        let mut drain = Box::pin(handle.drain(HOUR));
        assert!(future::poll_once(&mut drain).await.is_none());
        asked.fetch_add(1, SeqCst);
        drain.await
    }
}

/// A task that waits for the report, and blocks in a later poll, is stuck all the same.
#[test]
fn a_task_that_waits_for_the_report_and_blocks_is_named() {
    for_each_setup(|runtime| {
        let (latch, count) = (Latch::new(), Count::default());
        let free = OpenOnDrop(latch.clone());
        waits(runtime, &count);
        let (tell, told) = mpsc::channel();
        let task = runtime.spawn(async move {
            let mut drain = Box::pin(Handle::current().drain(HOUR));
            assert!(future::poll_once(&mut drain).await.is_none());
            future::yield_now().await;
            tell.send(()).unwrap();
            latch.wait();
            drain.await;
        });
        task.detach();
        told.recv_soon().unwrap();
        let report = future::block_on(runtime.drain(Duration::ZERO));
        assert_eq!((counts(&report), count.get(), report.undropped), ((0, 1, 1), 1, 0), "{report}");
        drop(free);
    });
}

/// All tasks drain their own runtime. Fails, by the watchdog, if each call looks at all earlier calls.
#[test]
fn thousands_of_tasks_drain_it() {
    for_each_setup(|runtime| {
        const ALL: usize = if cfg!(miri) { 20 } else { 3_000 };
        let (asked, have) = (Arc::new(AtomicUsize::new(0)), Count::default());
        waits(runtime, &Count::default());
        let (go, may_go) = async_channel::bounded(1);
        for _ in 0..ALL {
            let (drain, one) = (asks(runtime.handle(), may_go.clone(), &asked), have.one());
            let task = async move {
                let _one = one;
                drain.await;
                unreachable!("it is cancelled");
            };
            runtime.spawn(task).detach();
        }
        go.close();
        eventually("they wait", || asked.load(SeqCst) == ALL);
        assert_eq!(counts(&future::block_on(runtime.drain(Duration::ZERO))), (0, 1 + ALL, 0));
        assert_eq!(have.get(), ALL);
    });
}

/// Some tasks are stuck, some finish, and some do not: the numbers add up.
#[test]
fn each_task_is_in_one_number() {
    for_each_builder(|setup| {
        let runtime = setup.builder().max_threads(setup.threads).build().unwrap();
        let (latch, count) = (Latch::new(), Count::default());
        let free = OpenOnDrop(latch.clone());
        (0..7).for_each(|_| waits(&runtime, &count));
        let (go, may_go) = async_channel::bounded::<()>(1);
        for _ in 0..5 {
            let may_go = may_go.clone();
            runtime.spawn(async move { _ = may_go.recv().await }).detach();
        }
        (0..2).for_each(|_| {
            let latch = latch.clone();
            drops(&runtime, move || latch.wait());
        });
        (1..setup.threads).for_each(|_| _ = blocks(&runtime, &latch));
        let mut drain = Box::pin(runtime.drain(HOUR));
        assert!(block_on(future::poll_once(&mut drain)).is_none());
        go.close();
        eventually("some finish", || runtime.metrics().tasks == Some(7 + 2 + setup.threads - 1));
        let report = block_on(runtime.drain(Duration::ZERO));
        // The last worker, and the helper, are in a destructor each; what is behind these is not dropped.
        assert_eq!(counts(&report), (5, 7 + 2, setup.threads - 1 + 2), "{report}");
        assert!((2..=7 + 2).contains(&report.undropped), "{report}");
        drop(free);
    });
}

/// The process has no room for the stack of one more thread: a drain says so, and a shutdown ends the
/// runtime.
#[cfg(target_os = "linux")]
#[test]
fn no_threads_for_the_drain() {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use crate::setups::{is_child, text_of};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if !is_child("drain_stuck::no_threads_for_the_drain", "export RUST_BACKTRACE=0") {
        return;
    }
    let (runtime, count) = (Runtime::builder().threads(1).build().unwrap(), Count::default());
    waits(&runtime, &count);
    let limit = getrlimit(Resource::As);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find(|line| line.starts_with("VmSize")).unwrap();
    let used = size.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10;
    setrlimit(Resource::As, Rlimit { current: Some(used + (1 << 20)), ..limit }).unwrap();
    // The stacks of ended threads are still mapped.
    let ended = Latch::new();
    let ends = OpenOnDrop(ended.clone());
    let others = || {
        let ended = ended.clone();
        thread::Builder::new().spawn(move || ended.wait()).ok()
    };
    let others: Vec<_> = std::iter::from_fn(others).collect();
    let refused = catch_unwind(AssertUnwindSafe(|| future::block_on(runtime.drain(HOUR)))).unwrap_err();
    assert!(text_of(&*refused).contains("a drain needs a thread, and none can be started: "));
    runtime.shutdown(HOUR).unwrap();
    assert_eq!((count.get(), runtime.metrics().workers), (1, 0));
    setrlimit(Resource::As, limit).unwrap();
    drop(ends);
    others.into_iter().for_each(|other| other.join().unwrap());
}
