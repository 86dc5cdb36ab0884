//! Reports about tasks: unfinished ones with line and age, cancelled ones, and panics.

use std::collections::BTreeSet;
use std::future::{pending, poll_fn};
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::{self, yield_now};
use paceline::blocking::Job;
use paceline::{Executor, Handle, LocalExecutor, Runtime, StaticExecutor, TaskGroup, Timer, block_on, spawn};

use crate::setups::{Latch, OpenOnDrop, child, eventually, for_each_setup, is_child, output};

/// How much too small an age may be: a coarse clock is some milliseconds late.
const COARSE: Duration = Duration::from_millis(10);

/// Returns line and number of each group of this file.
fn lines(groups: &[TaskGroup]) -> Vec<(u32, usize)> {
    groups.iter().map(|group| (group.spawned_at.line(), group.number)).collect()
}

/// Some tasks leak, two wait for each other, and one is still in its first poll; finished tasks are not
/// listed.
#[test]
fn unfinished_tasks_are_grouped_by_their_lines_with_number_and_age() {
    for_each_setup(|runtime| {
        assert_eq!(runtime.tasks().to_string(), "no tasks");
        let start = Instant::now();
        let leaks = line!() + 2;
        for _ in 0..7 {
            runtime.spawn(pending::<()>()).detach();
        }
        eventually("all have waited", || runtime.tasks().unpolled == 0);
        let age = start.elapsed();
        runtime.block_on(async { Timer::after(Duration::from_millis(40)).await });
        let (first, second) = (async_channel::bounded::<()>(1), async_channel::bounded::<()>(1));
        let deadlock = line!() + 2;
        for (own, other) in [(first.1, second.0), (second.1, first.0)] {
            runtime.spawn(async move { (own.recv().await, other.send(()).await) }).detach();
        }
        (0..20).for_each(|_| runtime.block_on(runtime.spawn(async { yield_now().await })));
        eventually("both have waited", || lines(&runtime.tasks().groups).contains(&(deadlock, 2)));

        let tasks = runtime.tasks();
        assert_eq!(lines(&tasks.groups), [(leaks, 7), (deadlock, 2)], "{tasks}");
        assert_eq!((tasks.len(), tasks.is_partial), (9, false));
        let [oldest, younger] = [0, 1].map(|at| tasks.groups[at].oldest.expect("they have waited"));
        assert!(
            oldest + COARSE >= Duration::from_millis(40) && oldest <= start.elapsed() + COARSE,
            "{tasks}"
        );
        assert!(younger + Duration::from_millis(40) <= start.elapsed() - age + COARSE, "{tasks}");
        assert_eq!(runtime.handle().tasks().groups.len(), 2);
        assert!(
            tasks.to_string().starts_with("9 tasks\n  number   oldest  spawned at\n       7 "),
            "{tasks}"
        );

        // A task that blocks in its first poll has a line, and no age; tasks that wait behind it may have
        // neither.
        let latch = Latch::new();
        let _free = OpenOnDrop(latch.clone());
        let (blocks, is_blocking) = mpsc::channel();
        let line = line!() + 1;
        let blocked = runtime.spawn(async move {
            blocks.send(()).unwrap();
            latch.wait();
        });
        is_blocking.recv().unwrap();
        // At first, a task that has just finished on another thread may be listed in its place.
        let groups = || runtime.tasks().groups.into_iter();
        eventually("it is listed", || groups().any(|group| group.spawned_at.line() == line));
        let found = groups().find(|group| group.spawned_at.line() == line).expect("it stays");
        assert_eq!((found.number, found.oldest), (1, None), "{found}");
        drop(_free);
        runtime.block_on(blocked);
        eventually("it is gone", || lines(&runtime.tasks().groups) == [(leaks, 7), (deadlock, 2)]);
    });
}

/// Tasks that were never polled are counted. In a current-thread runtime that is certain.
#[test]
fn tasks_of_the_current_thread_are_there_and_its_root_future_is_not() {
    let runtime = Runtime::builder().current_thread().build().unwrap();
    let line = line!() + 1;
    let tasks: Vec<_> = (0..3).map(|_| runtime.spawn(pending::<()>())).collect();
    assert_eq!((runtime.tasks().unpolled, runtime.tasks().len()), (3, 3));
    assert!(runtime.tasks().to_string().ends_with("\n       3        -  (not polled yet)"));
    let local = LocalExecutor::new();
    let local_line = line!() + 1;
    let kept: Vec<_> = (0..2).map(|_| local.spawn(pending::<()>())).collect();
    runtime.block_on(local.run(async {
        while runtime.tasks().unpolled > 0 {
            yield_now().await;
        }
        assert_eq!(lines(&runtime.tasks().groups), [(line, 3), (local_line, 2)], "{}", runtime.tasks());
    }));
    drop(kept);
    assert_eq!(lines(&runtime.tasks().groups), [(line, 3)]);
    drop(tasks);
    runtime.block_on(async {
        while !runtime.tasks().is_empty() {
            yield_now().await;
        }
    });
}

/// Closures that block are listed with the names that a drain uses.
#[test]
fn closures_that_block_are_listed_by_their_names() {
    let runtime = Runtime::builder().threads(1).blocking_threads(1).build().unwrap();
    let latch = Latch::new();
    let free = OpenOnDrop(latch.clone());
    let (begins, has_begun) = mpsc::channel();
    let waits = latch.clone();
    let (job, rest) = runtime.block_on(async {
        let job = Job::new(move || {
            begins.send(()).unwrap();
            waits.wait();
        });
        (job.name("upload").submit(), [(); 2].map(|()| paceline::unblock(|| ())))
    });
    has_begun.recv().unwrap();
    let closures = runtime.tasks().closures;
    let found: Vec<_> = closures.iter().map(|group| (&*group.name, group.running, group.waiting)).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].0.starts_with("from tests/it/tasks.rs:") && (found[0].1, found[0].2) == (0, 2),
        "{found:?}"
    );
    assert_eq!(found[1], ("upload", 1, 0));
    drop(free);
    runtime.block_on(async { (job.await.unwrap(), future::zip(async { 1 }, async { 2 }).await) });
    rest.into_iter().for_each(|task| runtime.block_on(task));
    eventually("they are gone", || runtime.tasks().closures.is_empty());
}

/// Tasks of the default instance are listed, and so are those of an executor that runs in it. A
/// `StaticExecutor` does not track its tasks, and the list says so.
#[test]
fn tasks_of_the_default_instance_are_listed() {
    if !is_child("tasks::tasks_of_the_default_instance_are_listed", ":") {
        return;
    }
    block_on(spawn(async {}));
    let line = line!() + 1;
    spawn(pending::<()>()).detach();
    let executor = Executor::new();
    executor.spawn(pending::<()>()).detach();
    let both = async {
        // The `block_on` is in its runtime from its second poll on.
        let found = || BTreeSet::from_iter(lines(&Handle::current().tasks().groups));
        while found() != BTreeSet::from([(line, 1), (line + 2, 1)]) {
            Timer::after(Duration::from_millis(1)).await;
        }
        assert!(!Handle::current().tasks().is_partial);
    };
    block_on(executor.run(both));

    static UNTRACKED: StaticExecutor = StaticExecutor::new();
    UNTRACKED.spawn(pending::<()>()).detach();
    let says_so = async {
        while !Handle::current().tasks().is_partial {
            Timer::after(Duration::from_millis(1)).await;
        }
        Handle::current().tasks().to_string()
    };
    let text = block_on(UNTRACKED.run(says_so));
    assert!(text.contains("(those of a `StaticExecutor` are not)"), "{text}");
}

/// A drain lists the tasks that it cancelled, with their age. Those that were never polled are only counted.
#[test]
fn a_drain_names_what_it_cancelled() {
    for_each_setup(|runtime| {
        let leaks = line!() + 2;
        for _ in 0..5 {
            runtime.spawn(pending::<()>()).detach();
        }
        let other = line!() + 1;
        runtime.spawn(async { Timer::never().await }).detach();
        eventually("all have waited", || runtime.tasks().unpolled == 0);
        let report = block_on(runtime.drain(Duration::from_millis(30)));
        assert_eq!((report.finished, report.cancelled), (0, 6), "{report}");
        assert_eq!(lines(&report.cancelled_tasks), [(leaks, 5), (other, 1)], "{report}");
        let oldest = report.cancelled_tasks[0].oldest.expect("they have waited");
        assert!(oldest + COARSE >= Duration::from_millis(30), "{report}");
        let text = report.to_string();
        assert!(text.contains("6 were cancelled (5 spawned at tests/it/tasks.rs:"), "{text}");
    });
    // No thread polls these tasks.
    let runtime = Runtime::builder().current_thread().build().unwrap();
    (0..3).for_each(|_| runtime.spawn(async {}).detach());
    let report = block_on(runtime.drain(Duration::ZERO));
    assert_eq!((report.cancelled, report.cancelled_tasks.len()), (3, 0), "{report}");
}

/// A stuck task does not count as cancelled, and is not listed with those that are; a task that blocks in its
/// destructor is, and does.
#[test]
fn a_drain_does_not_list_a_stuck_task_as_cancelled() {
    struct Blocks(Latch);
    impl Drop for Blocks {
        fn drop(&mut self) {
            self.0.wait();
        }
    }
    let runtime = Runtime::builder().threads(2).build().unwrap();
    let latch = Latch::new();
    let free = OpenOnDrop(latch.clone());
    let (blocks, is_blocking) = mpsc::channel();
    let (waits, in_poll) = (latch.clone(), latch.clone());
    runtime
        .spawn(async move {
            yield_now().await;
            blocks.send(()).unwrap();
            in_poll.wait();
        })
        .detach();
    let destructor = line!() + 1;
    let task = runtime.spawn(async move {
        let _blocks = Blocks(waits);
        pending::<()>().await;
    });
    task.detach();
    is_blocking.recv().unwrap();
    let cancelled = line!() + 1;
    (0..4).for_each(|_| runtime.spawn(pending::<()>()).detach());
    eventually("all have waited", || runtime.tasks().unpolled == 0);
    let report = block_on(runtime.drain(Duration::from_millis(10)));
    assert_eq!((report.cancelled, report.undropped, report.stuck.len()), (5, 1, 2), "{report}");
    assert_eq!(lines(&report.cancelled_tasks), [(cancelled, 4), (destructor, 1)], "{report}");
    drop(free);
}

/// Tasks that panic are counted, whether they are detached or awaited, in any poll; a task that returns an
/// error is not counted.
#[test]
fn tasks_that_panic_are_counted() {
    for_each_setup(|runtime| {
        for round in 1..=4 {
            runtime.spawn(async { panic!("on purpose, detached") }).detach();
            let awaited = runtime.spawn(async {
                yield_now().await;
                panic!("on purpose, awaited")
            });
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.block_on(awaited)));
            assert!(caught.is_err());
            runtime.block_on(runtime.spawn(async { std::fs::read("/nowhere").unwrap_err() }));
            eventually("each is counted", || runtime.metrics().tasks_panicked == 2 * round);
        }
        eventually("all are gone", || runtime.metrics().tasks == Some(0));
    });
}

/// The spawn line of a task that panics is printed once, regardless of the number; another line is printed
/// once, too.
#[test]
fn the_spawn_line_of_a_task_that_panics_is_told_once() {
    const NAME: &str = "tasks::the_spawn_line_of_a_task_that_panics_is_told_once";
    let (first, second) = (line!() + 6, line!() + 10);
    if std::env::var("PACELINE_TEST_CHILD").is_ok_and(|name| name == NAME) {
        for _ in 0..2 {
            // One thread, so that messages do not interleave.
            let runtime = Runtime::builder().threads(1).build().unwrap();
            for _ in 0..10 {
                runtime.spawn(async { panic!("on purpose") }).detach();
            }
            for _ in 0..3 {
                // As with tokio's and smol's tasks, no thread polls it again.
                runtime.spawn(poll_fn(|_| -> Poll<()> { panic!("on purpose") })).detach();
            }
            eventually("all have panicked", || runtime.metrics().tasks_panicked == 13);
        }
        return;
    }
    let output = output(child(NAME, ":"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let told: Vec<_> = said.lines().filter(|line| line.starts_with("paceline: ")).collect();
    assert_eq!(told.len(), 2, "{told:#?}");
    for line in [first, second] {
        let place = format!("paceline: the task spawned at tests/it/tasks.rs:{line}:");
        assert_eq!(told.iter().filter(|text| text.starts_with(&place)).count(), 1, "{told:#?}");
    }
}

/// `metrics()` reports on the runtime on which `spawn` acts: in its tasks, on its threads, and where it was
/// entered. From outside all runtimes can be listed until they are dropped.
#[test]
fn metrics_are_those_of_the_runtime_on_which_spawn_acts() {
    let runtime = Runtime::builder().threads(3).build().unwrap();
    let workers = || paceline::metrics().workers;
    assert_eq!(runtime.block_on(async { workers() }), 3);
    assert_eq!(runtime.block_on(runtime.spawn(async move { workers() })), 3);
    let closure = runtime.block_on(async { paceline::unblock(workers).await });
    assert_eq!(closure, 3);
    let entered = runtime.handle().enter();
    assert_eq!(workers(), 3);
    drop(entered);

    let mark = |runtime: &Runtime| (0..77).for_each(|_| runtime.spawn(pending::<()>()).detach());
    mark(&runtime);
    let marked = || Handle::all().iter().filter(|handle| handle.metrics().tasks == Some(77)).count();
    assert_eq!(thread::spawn(marked).join().unwrap(), 1);
    let other = Runtime::builder().current_thread().build().unwrap();
    mark(&other);
    assert_eq!(marked(), 2);
    drop(runtime);
    assert_eq!(marked(), 1);
}
