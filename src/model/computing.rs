//! How many threads the deputy adds, and when, if tasks compute or wait for a core. The scenario says what
//! each thread does ([`SceneActivity`]).

use std::future::Future;

use super::stage::{SOON, ticks};
use super::{Latch, Pace, explore, foreign_block_on, runtime, sleep};
use crate::probe::SceneActivity;
use crate::{Runtime, Timer};

/// Ticks of processor time after which one thread more is added for tasks that wait: see `watch/decide.rs`.
const LONG: u32 = 100;

/// Returns a future that opens `begun`, and then keeps its thread in `activity` until `end` is open.
fn busy(activity: SceneActivity, begun: &Latch, end: &Latch) -> impl Future<Output = ()> + Send + 'static {
    let (begun, end) = (begun.clone(), end.clone());
    async move {
        let _part = activity.begin();
        begun.open();
        end.wait();
    }
}

fn live(runtime: &Runtime) -> usize {
    runtime.pool().crew().expect("a runtime has one").live()
}

/// Fails if a task that computes is taken for one that blocks, which is covered at once; and if it is never
/// covered.
#[test]
fn a_task_behind_one_that_computes_gets_a_thread_when_that_is_long() {
    explore(2_500, || {
        let runtime = runtime(1, 4);
        let (begun, end) = (Latch::new(), Latch::new());
        let computes = runtime.spawn(busy(SceneActivity::Computes, &begun, &end));
        begun.wait();
        let pace = Pace::new();
        let next = runtime.spawn(async {});
        sleep(LONG / 2);
        assert_eq!(live(&runtime), 1, "it has not computed for long");
        foreign_block_on(next);
        pace.at_most(LONG + 2 * SOON, "one more thread runs what waits");
        end.open();
        foreign_block_on(computes);
    });
}

/// Fails if a thread that has no core is taken for one that blocks, or computes.
#[test]
fn no_thread_is_added_for_a_thread_that_waits_for_a_core() {
    explore(2_500, || {
        let runtime = runtime(1, 4);
        let (begun, end) = (Latch::new(), Latch::new());
        let waits = runtime.spawn(busy(SceneActivity::WaitsForCore, &begun, &end));
        begun.wait();
        let next = runtime.spawn(async {});
        sleep(LONG);
        assert_eq!(live(&runtime), 1, "more threads would not bring it a core");
        end.open();
        foreign_block_on(waits);
        foreign_block_on(next);
    });
}

/// Fails if no spare worker is started for the events beside a task that computes, or another thread beside
/// it.
#[test]
fn a_timer_beside_a_task_that_computes_is_left_to_a_spare_worker() {
    explore(2_500, || {
        let runtime = runtime(1, 4);
        let (begun, end) = (Latch::new(), Latch::new());
        // Polled first, so it is registered before the worker computes.
        let timer = runtime.spawn(Timer::after(ticks(LONG / 4)));
        let computes = runtime.spawn(busy(SceneActivity::Computes, &begun, &end));
        begun.wait();
        let pace = Pace::new();
        foreign_block_on(timer);
        pace.at_most(LONG / 4 + 2 * SOON, "a timer beside a task that computes");
        assert_eq!(live(&runtime), 2, "the worker and the spare one");
        end.open();
        foreign_block_on(computes);
    });
}

/// Tasks wait behind one that computes, beside a spare worker. Fails if that worker takes one of them; and if
/// no worker takes them when the first task has ended and returned its permit, long before any has computed
/// for long.
#[test]
fn tasks_behind_one_that_computes_wait_for_it_although_a_worker_is_spare() {
    explore(2_500, || {
        let runtime = runtime(1, 4);
        let [begun, end, next, ends] = [(); 4].map(|()| Latch::new());
        let timer = runtime.spawn(Timer::after(ticks(LONG / 4)));
        let computes = runtime.spawn(busy(SceneActivity::Computes, &begun, &end));
        begun.wait();
        let waits = runtime.spawn(busy(SceneActivity::Computes, &next, &ends));
        let last = runtime.spawn(async {});
        foreign_block_on(timer);
        assert_eq!(live(&runtime), 2, "the worker and the spare one");
        assert!(!next.is_open(), "the spare worker has taken a task");
        let pace = Pace::new();
        end.open();
        next.wait();
        pace.at_most(SOON, "the next task is taken");
        ends.open();
        foreign_block_on(computes);
        foreign_block_on(waits);
        foreign_block_on(last);
    });
}
