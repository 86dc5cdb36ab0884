//! How many threads the deputy adds, and when, if tasks compute or wait for a core. The scenario says what
//! each thread does ([`SceneActivity`]).

use std::future::Future;
use std::mem;
use std::sync::Arc;

use super::stage::{SOON, ticks};
use super::{Latch, Pace, Reader, explore, foreign_block_on, remember, sleep, spawn};
use crate::probe::SceneActivity;
use crate::reactor::Pipe;
use crate::{Role, Runtime, ThreadKind, Timer};

/// Ticks after which one thread more is added for tasks that wait: see `watch/decide.rs`.
const LONG: u32 = 100;

/// Makes a runtime in which a worker waits for a core where the scenario does not say what it does. If
/// nothing was said, a fast deputy could take a worker that is about to compute for one that blocks, and add
/// a worker.
fn runtime(threads: usize, max_threads: usize) -> Runtime {
    let builder = Runtime::builder().threads(threads).max_threads(max_threads);
    let builder = builder.on_thread_start(|| mem::forget(SceneActivity::WaitsForCore.begin()));
    let runtime = builder.build().expect("threads start");
    remember(&runtime.pool);
    runtime
}

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
    runtime.pool.crew().expect("a runtime has one").live()
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
        assert!(live(&runtime) <= 2, "it has not computed for long: there is a standby at most");
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
        sleep(LONG / 2);
        assert_eq!(live(&runtime), 1, "more threads would not bring it a core");
        end.open();
        foreign_block_on(waits);
        foreign_block_on(next);
    });
}

/// Fails if no standby is started for the events beside a task that computes, or another thread beside
/// it.
#[test]
fn a_timer_beside_a_task_that_computes_is_left_to_a_standby() {
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
        assert_eq!(live(&runtime), 2, "the worker and the standby");
        end.open();
        foreign_block_on(computes);
    });
}

/// Tasks wait behind one that computes, beside a standby. Fails if that worker takes one of them; and if
/// no worker takes them when the first task has ended, long before any has computed
/// for long.
#[test]
fn tasks_behind_one_that_computes_wait_for_it_although_a_standby_leads() {
    explore(2_500, || {
        let runtime = runtime(1, 4);
        let [begun, end, next, ends] = [(); 4].map(|()| Latch::new());
        let timer = runtime.spawn(Timer::after(ticks(LONG / 4)));
        let computes = runtime.spawn(busy(SceneActivity::Computes, &begun, &end));
        begun.wait();
        let waits = runtime.spawn(busy(SceneActivity::Computes, &next, &ends));
        let last = runtime.spawn(async {});
        foreign_block_on(timer);
        assert_eq!(live(&runtime), 2, "the worker and the standby");
        assert!(!next.is_open(), "the standby has taken a task");
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

/// Fails if a thread that computes is reported as one that blocks, or the standby beside it as
/// one that takes tasks.
#[test]
fn a_worker_that_computes_and_the_standby_are_reported_as_such() {
    explore(2_500, || {
        let runtime = runtime(1, 4);
        let (begun, end) = (Latch::new(), Latch::new());
        let timer = runtime.spawn(Timer::after(ticks(LONG / 4)));
        let line = line!() + 1;
        let computes = runtime.spawn(busy(SceneActivity::Computes, &begun, &end));
        begun.wait();
        foreign_block_on(timer);
        let pace = Pace::new();
        loop {
            let threads = runtime.threads();
            let known = threads.iter().map(|it| (it.kind, it.role, it.spawned_at.map(|at| at.line())));
            let computes = (ThreadKind::Worker, Role::Computes, Some(line));
            let standby = [Role::Leads, Role::Follows].map(|role| (ThreadKind::Reserve, role, None));
            let known: Vec<_> = known.collect();
            if standby.iter().any(|standby| known == [computes, *standby]) {
                break;
            }
            pace.at_most(SOON, format_args!("what they do is reported: {threads:?}"));
            sleep(1);
        }
        end.open();
        foreign_block_on(computes);
    });
}

/// All workers compute, the standby too, and a guest leads, which polls no task. Fails if no other standby
/// starts for a task that an event wakes there, because leadership is not abandoned; and if that one waits
/// behind tasks that no thread takes.
#[test]
fn a_task_that_a_guest_wakes_is_polled_by_a_standby() {
    explore(2_500, || {
        let runtime = Arc::new(runtime(1, 8));
        let end = Latch::new();
        let [begun, too] = [(); 2].map(|()| Latch::new());
        let pipe = Pipe::new();
        let reader = runtime.block_on(async { Reader::new(&pipe) });
        let reads = runtime.spawn(async move { reader.byte().await });
        let on_standby = busy(SceneActivity::Computes, &too, &end);
        let on_standby = runtime.spawn(async {
            Timer::after(ticks(LONG / 4)).await;
            on_standby.await;
        });
        let computes = runtime.spawn(busy(SceneActivity::Computes, &begun, &end));
        begun.wait();
        let waits = runtime.spawn(busy(SceneActivity::Computes, &Latch::new(), &end));
        too.wait();
        let guest = spawn("guest", {
            let (runtime, end) = (runtime.clone(), end.clone());
            move || runtime.block_on(end.opened())
        });
        let pace = Pace::new();
        pipe.write();
        foreign_block_on(reads).expect("a thread leads");
        pace.at_most(2 * SOON, "an event beside a standby that computes");
        end.open();
        guest.join().expect("it only waits");
        [on_standby, computes, waits].into_iter().for_each(foreign_block_on);
    });
}
