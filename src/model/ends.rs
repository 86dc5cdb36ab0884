//! Ends of a runtime: shutdowns from each role, spawns beside them, drops.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};

use super::stage::SOON;
use super::{Latch, Pace, explore, foreign_block_on, runtime, sleep, spawn, ticks, within};
use crate::sync::{self, thread, thread_local};
use crate::{Runtime, Timer};

thread_local! {
    /// This thread is in a call of `spawn`.
    static SPAWNS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Futures that were made, and are there still.
#[derive(Clone, Debug, Default)]
struct Counted(Arc<AtomicUsize>);

/// One of them.
struct One(Counted, bool);

impl Counted {
    /// `own` is the one that is being spawned where a call of `spawn` may drop it.
    fn one(&self, own: bool) -> One {
        self.0.fetch_add(1, Relaxed);
        One(self.clone(), own)
    }

    fn assert_none_left(&self) {
        let left = self.0.load(Relaxed);
        if left != 0 {
            sync::fault(&format!("{left} futures were not dropped, or some twice"));
        }
    }
}

impl Drop for One {
    fn drop(&mut self) {
        if SPAWNS.get() && !self.1 {
            sync::fault("another task's future was dropped in a call of spawn");
        }
        (self.0).0.fetch_sub(1, Relaxed);
    }
}

impl std::ops::Deref for Counted {
    type Target = AtomicUsize;

    fn deref(&self) -> &AtomicUsize {
        &self.0
    }
}

/// Spawns a task that says when it has run; it is what may be dropped in this call.
fn spawn_one(runtime: &Runtime, counted: &Counted) -> crate::Task<u32> {
    let one = counted.one(true);
    SPAWNS.set(true);
    let task = runtime.spawn(async move {
        // From here on it is another one's.
        let mut one = one;
        one.1 = false;
        crate::Timer::after(ticks(1)).await;
        7
    });
    SPAWNS.set(false);
    task
}

/// Either it has run, or it was cancelled.
fn runs_or_ends(task: crate::Task<u32>) {
    match foreign_block_on(task.fallible()) {
        Some(7) | None => {}
        Some(_) => unreachable!("it returns 7"),
    }
}

/// Shuts it down in one of many roles, and returns within so many ticks.
fn shuts_down(runtime: &Arc<Runtime>, limit: u32) {
    let here = runtime.clone();
    let shut = move || within(limit, "a shutdown", || _ = here.shutdown(ticks(20)));
    match thread_rng().gen_range(0..4) {
        0 => shut(),
        1 => runtime.block_on(async { shut() }),
        2 => crate::block_on(async { shut() }),
        _ => {
            // Where the runtime was shut down before, it does not run.
            let _ = catch_unwind(AssertUnwindSafe(|| foreign_block_on(runtime.spawn(async move { shut() }))));
        }
    }
}

#[test]
fn from_each_role_and_twice() {
    explore(3_500, || {
        let runtime = Arc::new(runtime(2, 2));
        let counted = Counted::default();
        let one = counted.one(false);
        runtime
            .spawn(async move {
                let _one = one;
                pending::<()>().await
            })
            .detach();
        let other = spawn("other", {
            let runtime = runtime.clone();
            move || shuts_down(&runtime, 20 + SOON)
        });
        shuts_down(&runtime, 20 + SOON);
        other.join().expect("it only shuts down");
        if thread_rng().gen_bool(0.5) {
            shuts_down(&runtime, SOON);
        }
        let _ = runtime.shutdown(ticks(50));
        counted.assert_none_left();
    });
}

#[test]
fn while_tasks_block() {
    explore(3_500, || {
        let runtime = Arc::new(runtime(2, 3));
        let counted = Counted::default();
        let latch = Latch::new();
        let tasks = [0, 1].map(|_| {
            let (one, latch) = (counted.one(false), latch.clone());
            runtime.spawn(async move {
                let _one = one;
                Timer::after(ticks(1)).await;
                latch.wait();
            })
        });
        sleep(thread_rng().gen_range(0..4));
        let pace = Pace::new();
        let stuck = runtime.shutdown(ticks(8)).is_err();
        pace.at_most(8 + SOON, "a shutdown beside tasks that block");
        latch.open();
        if thread_rng().gen_bool(0.5) {
            let again = runtime.shutdown(ticks(50));
            assert!(again.is_ok() || stuck, "nothing blocks");
        }
        drop(tasks);
        drop(runtime);
        // A stuck worker drops what it has when it comes back.
        let pace = Pace::new();
        while counted.load(Relaxed) > 0 {
            pace.at_most(SOON, "the last future is dropped");
            sleep(1);
        }
        counted.assert_none_left();
    });
}

#[test]
fn beside_a_spawn() {
    explore(3_500, || {
        let runtime = Arc::new(runtime(1, 2));
        let counted = Counted::default();
        let waits = counted.one(false);
        runtime
            .spawn(async move {
                let _waits = waits;
                pending::<()>().await
            })
            .detach();
        let spawners = ["first", "second"].map(|name| {
            let (runtime, counted) = (runtime.clone(), counted.clone());
            spawn(name, move || {
                for _ in 0..2 {
                    runs_or_ends(spawn_one(&runtime, &counted));
                }
            })
        });
        sleep(thread_rng().gen_range(0..3));
        runtime.shutdown(ticks(50)).expect("nothing blocks");
        let pace = Pace::new();
        spawners.into_iter().for_each(|spawner| spawner.join().expect("it says how it ended"));
        pace.at_most(SOON, "tasks that were spawned beside a shutdown end");
        drop(runtime);
        counted.assert_none_left();
    });
}

/// The spawn is in a task, which the shutdown waits for.
#[test]
fn beside_a_spawn_in_a_task() {
    explore(3_500, || {
        let runtime = Arc::new(runtime(1, 1));
        let counted = Counted::default();
        let (waits, spawns) = (counted.one(false), counted.one(false));
        runtime
            .spawn(async move {
                let _waits = waits;
                pending::<()>().await
            })
            .detach();
        let (started, go) = (Latch::new(), Latch::new());
        runtime
            .spawn({
                let (counted, started, go) = (counted.clone(), started.clone(), go.clone());
                async move {
                    let _spawns = spawns;
                    started.open();
                    go.wait();
                    let one = counted.one(true);
                    SPAWNS.set(true);
                    let task = crate::spawn(async move { drop(one) });
                    SPAWNS.set(false);
                    task.detach();
                }
            })
            .detach();
        started.wait();
        let opener = spawn("opener", move || {
            sleep(1);
            go.open();
        });
        runtime.shutdown(ticks(50)).expect("it blocks only shortly");
        opener.join().expect("it only opens");
        drop(runtime);
        counted.assert_none_left();
    });
}

/// A worker drops the last reference to the runtime.
#[test]
fn by_a_drop_in_a_task() {
    explore(3_500, || {
        let counted = Counted::default();
        let runtime = Arc::new(runtime(2, 2));
        let dropped = Latch::new();
        let one = counted.one(false);
        runtime
            .spawn({
                let (runtime, dropped) = (runtime.clone(), dropped.clone());
                async move {
                    let _one = one;
                    Timer::after(ticks(1)).await;
                    drop(runtime);
                    dropped.open();
                }
            })
            .detach();
        drop(runtime);
        let gone = dropped;
        foreign_block_on(gone.opened());
        let pace = Pace::new();
        while thread::alive() > 1 {
            pace.at_most(SOON, "all threads end");
            sleep(1);
        }
        counted.assert_none_left();
    });
}

/// Ticks for which a drop waits for threads that block: `DROP_TIMEOUT` of `runtime/mod.rs`.
const DROP_WAITS: u32 = 100;

/// A task blocks its worker. Fails if a drop waits for that worker although a shutdown or a drain has given
/// it up, or waits for longer than its timeout.
#[test]
fn a_drop_waits_for_a_task_that_blocks_unless_the_runtime_has_ended_before() {
    type Ends = fn(&Runtime);
    let shut_down: Ends = |runtime| _ = runtime.shutdown(Duration::ZERO).expect_err("a task blocks");
    let drained: Ends = |runtime| {
        let report = foreign_block_on(runtime.drain(Duration::ZERO));
        assert_eq!(report.stuck.len(), 1, "{report}");
    };
    let not_ended: Ends = |_| {};
    for (ends, limit) in [(shut_down, SOON), (drained, SOON), (not_ended, DROP_WAITS + SOON)] {
        explore(2_500, move || {
            let runtime = runtime(1, 1);
            let (begun, end) = (Latch::new(), Latch::new());
            let (has_begun, may_end) = (begun.clone(), end.clone());
            let blocks = async move {
                has_begun.open();
                may_end.wait();
            };
            runtime.spawn(blocks).detach();
            begun.wait();
            ends(&runtime);
            within(limit, "a drop beside a task that blocks", || drop(runtime));
            end.open();
        });
    }
}
