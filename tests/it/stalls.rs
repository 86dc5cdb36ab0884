//! Reports of tasks, and of futures of `block_on`, that keep their threads.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future;
use paceline::{Role, Runtime, StallKind, ThreadKind, Timer};

use crate::busy::{Stop, compute};
use crate::given_time::RecvSoon;
use crate::setups::eventually;

/// The arguments of the hook, and the counts.
#[test]
fn a_stall_says_whether_the_task_blocks_or_computes() {
    let (tell, told) = mpsc::channel();
    let hook = move |stall: &paceline::Stall| _ = tell.send(stall.clone());
    let runtime = Runtime::builder().threads(2).thread_name("busy").on_stall(hook).build().unwrap();
    let (end, ended) = mpsc::channel::<()>();
    runtime.spawn(async move { _ = ended.recv() }).detach();
    let stall = told.recv_soon().unwrap();
    let StallKind::Blocked(Some(call)) = stall.kind else { panic!("{stall}") };
    // Not every architecture has its names in the table.
    let is_known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    assert_eq!(call.name(), is_known.then_some("futex"));
    let text = stall.to_string();
    assert!(text.contains(" has blocked busy-") && text.contains(&format!("in {call}")), "{text}");
    drop(end);

    let stop = Stop(Arc::default());
    let computing = stop.0.clone();
    runtime.spawn(async move { compute(&computing) }).detach();
    let stall = loop {
        let stall = told.recv_soon().unwrap();
        if stall.kind == StallKind::Computing {
            break stall;
        }
    };
    assert!(stall.blocked_for >= Duration::from_millis(10), "{stall}");
    let text = stall.to_string();
    assert!(text.contains(" has computed on busy-") && text.ends_with(" without a pause"), "{text}");
    let metrics = runtime.metrics();
    assert!(metrics.stalls_blocked >= 1 && metrics.stalls_computing >= 1, "{metrics}");
    assert_eq!(metrics.stalls, metrics.stalls_blocked + metrics.stalls_computing, "{metrics}");
}

/// The future of a `block_on` is reported, too, by the line of the call.
#[test]
fn a_stall_of_a_block_on_names_its_call() {
    let (tell, told) = mpsc::channel();
    let hook = move |stall: &paceline::Stall| _ = tell.send(stall.clone());
    let runtime = Runtime::builder().threads(1).on_stall(hook).build().unwrap();
    let next = |kind: fn(StallKind) -> bool| loop {
        let stall = told.recv_soon().expect("it is told of");
        if kind(stall.kind) {
            break stall;
        }
    };
    let (end, ended) = mpsc::channel::<()>();
    let (line, stall) = thread::scope(|scope| {
        let runtime = &runtime;
        let line = line!() + 1;
        scope.spawn(move || runtime.block_on(async move { _ = ended.recv() }));
        let stall = next(|kind| matches!(kind, StallKind::Blocked(_)));
        drop(end);
        (line, stall)
    });
    assert!(stall.in_block_on && stall.spawned_at.line() == line, "{stall}");
    let text = stall.to_string();
    assert!(text.starts_with("the future of the block_on at tests/it/stalls.rs:"), "{text}");

    let stop = Stop(Arc::default());
    let computing = stop.0.clone();
    thread::scope(|scope| {
        let runtime = &runtime;
        scope.spawn(move || runtime.block_on(async move { compute(&computing) }));
        let stall = next(|kind| kind == StallKind::Computing);
        assert!(stall.in_block_on, "{stall}");
        drop(stop);
    });
}

/// The hook is set while the runtime runs, beside that of its builder. Fails if one takes the other's place.
#[test]
fn hooks_of_the_builder_and_of_a_handle_are_told() {
    let (tell, told) = mpsc::channel();
    let hook = |name: &'static str| {
        let tell = tell.clone();
        move |stall: &paceline::Stall| {
            // Only Linux tells.
            assert_eq!(stall.thread_os_id.is_some(), cfg!(target_os = "linux"));
            _ = tell.send(name);
        }
    };
    let runtime = Runtime::builder().threads(1).on_stall(hook("builder")).build().unwrap();
    runtime.handle().on_stall(hook("handle"));
    let (end, ended) = mpsc::channel::<()>();
    runtime.spawn(async move { _ = ended.recv() }).detach();
    assert_eq!([told.recv_soon().unwrap(), told.recv_soon().unwrap()], ["builder", "handle"]);
    drop(end);
}

/// A future that only waits is no stall, and neither is a future that works in small pieces. On a busy
/// machine a poll may take long, so each report is compared with the longest poll. Fails if the time of a
/// poll includes the wait after it, or an earlier poll.
///
/// Measures polls on the thread, and compares them with what the deputy measures: a deputy that loses its
/// core within a look claims up to that much more. Its exact twins are `a_stay_is_marked_and_reported` in
/// `src/watch/decide/tests.rs`, and `each_change_but_a_suspension_is_progress` in `src/stage.rs`.
#[test]
#[ignore = "timed: for how long a stall is reported, beside the longest poll"]
fn a_block_on_that_waits_or_works_in_small_pieces_is_no_stall() {
    let (tell, told) = mpsc::channel();
    let hook = move |stall: &paceline::Stall| _ = tell.send((stall.in_block_on, stall.blocked_for));
    let runtime = Runtime::builder().threads(1).on_stall(hook).build().unwrap();
    let longest_beside_the_wait = thread::scope(|scope| {
        let runtime = &runtime;
        let (wake, woken) = async_channel::bounded::<()>(1);
        let begun = Instant::now();
        let waits = scope.spawn(move || {
            runtime.block_on(async move { woken.recv().await.unwrap() });
            Instant::now()
        });
        eventually("it waits", || {
            let callers = runtime.threads().into_iter().filter(|thread| thread.kind == ThreadKind::Caller);
            callers.map(|thread| thread.role).eq([Role::Follows])
        });
        let first_poll = begun.elapsed();
        thread::sleep(Duration::from_millis(100));
        let before = Instant::now();
        wake.send_blocking(()).unwrap();
        first_poll.max(waits.join().unwrap() - before)
    });

    // Poll number n begins after entry n, and ends before entry n + 2.
    let mut entries = vec![Instant::now()];
    runtime.block_on(async {
        for _ in 0..500 {
            entries.push(Instant::now());
            let until = Instant::now() + Duration::from_micros(200);
            while Instant::now() < until {}
            future::yield_now().await;
        }
    });
    entries.push(Instant::now());
    let longest_piece = entries.windows(3).map(|three| three[2] - three[0]).max().unwrap();

    drop(runtime);
    let longest = longest_beside_the_wait.max(longest_piece);
    for (_, claimed) in told.iter().filter(|(in_block_on, _)| *in_block_on) {
        assert!(claimed <= longest, "a stall of {claimed:?} is reported; the longest poll took {longest:?}");
    }
}

/// The same in a current-thread runtime, where the thread polls tasks beside that future.
#[test]
fn a_stall_of_a_block_on_beside_tasks_names_its_call() {
    let (tell, told) = mpsc::channel();
    let hook = move |stall: &paceline::Stall| _ = tell.send(stall.clone());
    let runtime = Runtime::builder().current_thread().on_stall(hook).build().unwrap();
    let ticks = async {
        loop {
            Timer::after(Duration::from_millis(1)).await;
        }
    };
    runtime.spawn(ticks).detach();
    let line = line!() + 1;
    let stall = runtime.block_on(async {
        Timer::after(Duration::from_millis(1)).await;
        // Blocks until its own stall is reported. On a busy machine another stall may be reported, too.
        loop {
            let stall = told.recv_soon().expect("no stall is reported");
            if stall.in_block_on {
                break stall;
            }
        }
    });
    assert_eq!(stall.spawned_at.line(), line, "{stall}");
    assert!(runtime.metrics().stalls >= 1);
}

/// Many short calls of `block_on`, one after the other, are not one long call. Fails if calls are identified
/// by the address of an object on the stack, which the next call may reuse. On a busy machine a call may take
/// long, so each report is compared with the longest call.
///
/// Measures calls on their threads, and compares them with what the deputy measures: a deputy that loses its
/// core within a look claims up to that much more. No exact test says that an address is not used again.
#[test]
#[ignore = "timed: for how long a stall is reported, beside the longest call"]
fn many_short_block_ons_are_no_stall() {
    let (tell, told) = mpsc::channel();
    let hook = move |stall: &paceline::Stall| _ = tell.send((stall.in_block_on, stall.blocked_for));
    let runtime = Runtime::builder().threads(1).on_stall(hook).build().unwrap();
    let longest = thread::scope(|scope| {
        let threads = [(); 4].map(|()| {
            scope.spawn(|| {
                let mut longest = Duration::ZERO;
                for _ in 0..10_000 {
                    let call = Instant::now();
                    runtime.block_on(runtime.spawn(async {}));
                    longest = longest.max(call.elapsed());
                }
                longest
            })
        });
        threads.map(|thread| thread.join().unwrap()).into_iter().max().unwrap()
    });
    drop(runtime);
    for (_, claimed) in told.iter().filter(|(in_block_on, _)| *in_block_on) {
        assert!(claimed <= longest, "a stall of {claimed:?} is reported; the longest call took {longest:?}");
    }
}
