//! How many threads a runtime adds for tasks that block again and again, for many that block at the same
//! time, for tasks that never pause, and for hooks that block.
//!
//! By default, the deputy takes a thread of a scenario that makes no progress for one that blocks. Here a
//! hook gives each worker an activity ([`SceneActivity`]), so a worker that takes no step between two ticks
//! is not taken for one that blocks, and the numbers are exact however fast the clock is.

use std::mem;
use std::sync::Arc;

use super::stage::{SOON, settles, ticks};
use super::{Latch, Pace, Reader, explore, foreign_block_on, remember, sleep, within, yields};
use crate::probe::SceneActivity;
use crate::reactor::Pipe;
use crate::sync::{Mutex, lock};
use crate::{Builder, Runtime, Timer};

/// Returns a runtime whose workers are in `activity` from their start on.
fn runtime_of(activity: SceneActivity, builder: Builder) -> Runtime {
    built(builder.on_thread_start(move || mem::forget(activity.begin())))
}

fn built(builder: Builder) -> Runtime {
    let runtime = builder.max_threads(16).build().expect("threads start");
    remember(&runtime.pool);
    runtime
}

fn live(runtime: &Runtime) -> usize {
    runtime.pool.crew().expect("a runtime has one").live()
}

/// Blocks a thread that otherwise computes.
fn block(code: impl FnOnce()) {
    block_before(SceneActivity::Computes, code);
}

/// Blocks a thread that is in `activity` after that.
fn block_before(activity: SceneActivity, code: impl FnOnce()) {
    let part = SceneActivity::Blocks.begin();
    code();
    drop(part);
    mem::forget(activity.begin());
}

/// All workers compute, in many polls, and the task that events wake blocks in each poll. Fails if a thread
/// is added each time it blocks: one for the thread that blocks and two standbys are enough. (A poll that is
/// found in two looks counts as one that computes, and occupies the first of them.)
#[test]
fn a_handler_that_blocks_again_and_again_gets_one_thread_besides_the_standbys() {
    explore(2_500, || {
        let runtime = runtime_of(SceneActivity::Computes, Runtime::builder().threads(2));
        let stop = Latch::new();
        let mut tasks: Vec<_> = [(); 4]
            .map(|()| {
                let stop = stop.clone();
                runtime.spawn(async move {
                    while !stop.is_open() {
                        sleep(10);
                        yields().await;
                    }
                })
            })
            .into();
        // A timer is always awaited, so a thread has to lead.
        tasks.push(runtime.spawn({
            let stop = stop.clone();
            async move {
                while !stop.is_open() {
                    Timer::after(ticks(1)).await;
                }
            }
        }));
        let handler = runtime.spawn(async {
            for _ in 0..8 {
                Timer::after(ticks(1)).await;
                block(|| sleep(4));
            }
        });
        foreign_block_on(handler);
        let added = runtime.metrics().replacements;
        assert!((1..=3).contains(&added), "{added} threads were added");
        stop.open();
        tasks.into_iter().for_each(foreign_block_on);
        settles(&runtime);
    });
}

/// Tasks that come back at once keep both workers in rounds without an end. Fails if a thread is added for
/// the events that wait meanwhile, or for the tasks.
#[test]
fn rounds_of_short_tasks_get_no_threads() {
    explore(1_500, || {
        let runtime = runtime_of(SceneActivity::WaitsForCore, Runtime::builder().threads(2));
        let stop = Latch::new();
        let pipe = Pipe::new();
        let reader = runtime.block_on(async { Reader::new(&pipe) });
        let answers = [(); 3].map(|()| Latch::new());
        let echo = runtime.spawn({
            let answers = answers.clone();
            async move {
                for answer in answers {
                    reader.byte().await.expect("a worker leads");
                    answer.open();
                }
            }
        });
        for _ in 0..6 {
            let stop = stop.clone();
            let returns = async move {
                while !stop.is_open() {
                    yields().await;
                }
            };
            runtime.spawn(returns).detach();
        }
        for answer in answers {
            pipe.write();
            within(SOON, "an event beside rounds of tasks", || answer.wait());
        }
        assert_eq!((live(&runtime), runtime.metrics().replacements), (2, 0));
        stop.open();
        foreign_block_on(echo);
        settles(&runtime);
    });
}

/// Each of many tasks blocks until all of them do, three times. Fails if the threads do not come one after
/// the other, as soon as all that are there block; and if those that came for the first round do not stay for
/// the others.
#[test]
fn tasks_that_wait_for_each_other_get_a_thread_each_and_only_once() {
    const TASKS: usize = 6;
    explore(2_500, || {
        let runtime = runtime_of(SceneActivity::Computes, Runtime::builder().threads(2));
        for round in 0..3 {
            let (missing, all) = (Arc::new(Mutex::new(TASKS)), Latch::new());
            let spawn = |_| {
                let (missing, all) = (missing.clone(), all.clone());
                runtime.spawn(async move {
                    let is_last = {
                        let mut missing = lock(&missing);
                        *missing -= 1;
                        *missing == 0
                    };
                    if is_last { all.open() } else { block(|| all.wait()) }
                })
            };
            let pace = Pace::new();
            let tasks: Vec<_> = (0..TASKS).map(spawn).collect();
            tasks.into_iter().for_each(foreign_block_on);
            let limit = if round == 0 { (TASKS - 2) as u32 * SOON } else { SOON };
            pace.at_most(limit, format_args!("round {round}"));
            assert_eq!(
                (live(&runtime), runtime.metrics().replacements),
                (TASKS, TASKS as u64 - 2),
                "{round}"
            );
        }
        settles(&runtime);
    });
}

/// A hook blocks each worker at its start, and timers are awaited elsewhere. Fails if threads are added,
/// which would call the hook, too; and if no thread leads.
#[test]
fn a_hook_that_blocks_costs_its_own_threads() {
    for threads in [1, 2] {
        explore(2_500, move || {
            let latch = Latch::new();
            let at_start = latch.clone();
            let runtime = built(Runtime::builder().threads(threads).on_thread_start(move || at_start.wait()));
            {
                let _inside = runtime.handle().enter();
                for _ in 0..40 {
                    within(1 + SOON, "a timer beside hooks", || foreign_block_on(Timer::after(ticks(1))));
                }
            }
            assert_eq!(runtime.metrics().replacements, 0);
            latch.open();
            foreign_block_on(runtime.spawn(async {}));
        });
    }
}

/// A hook blocks each worker before it sleeps, or after that, and timers are awaited elsewhere. Fails if
/// threads are added for the events, which would call the hook, too; if no thread leads; and if a task waits
/// for the hooks for long, or gets no replacement when it blocks.
#[test]
fn a_park_hook_that_blocks_costs_no_thread_but_for_tasks_that_wait_for_long() {
    const LONG: u32 = 100;
    for is_park in [true, false] {
        explore(2_500, move || {
            let latch = Latch::new();
            let in_hook = latch.clone();
            let hook = move || block_before(SceneActivity::WaitsForCore, || in_hook.wait());
            let builder = Runtime::builder().threads(2);
            let builder = if is_park { builder.on_thread_park(hook) } else { builder.on_thread_unpark(hook) };
            let runtime = runtime_of(SceneActivity::WaitsForCore, builder);
            let timers = || {
                let _inside = runtime.handle().enter();
                for _ in 0..20 {
                    within(1 + SOON, "a timer beside hooks", || foreign_block_on(Timer::after(ticks(1))));
                }
            };
            timers();
            // Bring both workers into the hook that they call when they wake up.
            let first = [(); 2].map(|()| runtime.spawn(async {}));
            timers();
            assert_eq!(runtime.metrics().replacements, 0);
            within(LONG + SOON, "tasks beside hooks", || first.map(foreign_block_on));
            let (stop, runs) = (Latch::new(), Latch::new());
            let (blocked, tell) = (stop.clone(), runs.clone());
            let blocks = runtime.spawn(async move {
                tell.open();
                block_before(SceneActivity::WaitsForCore, || blocked.wait());
            });
            within(2 * LONG + SOON, "a task that blocks", || runs.wait());
            within(4 * LONG + SOON, "a task beside it", || foreign_block_on(runtime.spawn(async {})));
            let added = runtime.metrics().replacements;
            assert!((1..=4).contains(&added), "{added} threads were added");
            stop.open();
            latch.open();
            foreign_block_on(blocks);
            settles(&runtime);
        });
    }
}
