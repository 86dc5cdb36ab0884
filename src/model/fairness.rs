//! How long tasks wait beside tasks that compute, of which there are more than workers: see the promise in
//! `pool/README.md`. In each scene one worker stays in a poll that computes, and two more such tasks, which
//! were never polled, wait behind it.

use std::mem;
use std::sync::Arc;

use super::stage::SOON;
use super::{Latch, Pace, Reader, explore, foreign_block_on, remember, sleep, spawn, within, yields};
use crate::Runtime;
use crate::probe::SceneActivity;
use crate::reactor::Pipe;
use crate::sync::thread::JoinHandle;
use crate::sync::{Mutex, lock};

/// A runtime whose worker computes until `end` is open.
struct Scene {
    runtime: Arc<Runtime>,
    begun: Latch,
    end: Latch,
    tasks: Vec<async_task::Task<()>>,
}

/// Until it is opened, keeps its thread computing.
fn compute_until(end: &Latch) {
    let _part = SceneActivity::Computes.begin();
    end.wait();
}

impl Scene {
    /// Builds the runtime. Where the scene does not say what its threads do, they wait for a core.
    fn new() -> Self {
        let builder = Runtime::builder().threads(1).max_threads(8);
        let builder = builder.on_thread_start(|| mem::forget(SceneActivity::WaitsForCore.begin()));
        let runtime = Arc::new(builder.build().expect("threads start"));
        remember(&runtime.pool);
        Self { runtime, begun: Latch::new(), end: Latch::new(), tasks: Vec::new() }
    }

    /// Spawns a task that waits for a byte, yields, and opens the latch. Returns after its first poll.
    fn echo(&mut self, pipe: &Pipe, yielded: u32) -> Latch {
        let (ready, answer) = (Latch::new(), Latch::new());
        let reader = self.runtime.block_on(async { Reader::new(pipe) });
        let (is_ready, answers) = (ready.clone(), answer.clone());
        self.tasks.push(self.runtime.spawn(async move {
            is_ready.open();
            reader.byte().await.expect("a thread leads");
            for _ in 0..yielded {
                yields().await;
            }
            answers.open();
        }));
        ready.wait();
        answer
    }

    /// Spawns a task that waits until it is told, and opens the answer. Returns both latches after its first
    /// poll.
    fn told(&mut self) -> (Latch, Latch) {
        let [ready, told, answer] = [(); 3].map(|()| Latch::new());
        let (is_ready, tell, answers) = (ready.clone(), told.clone(), answer.clone());
        self.tasks.push(self.runtime.spawn(async move {
            is_ready.open();
            told.opened().await;
            answers.open();
        }));
        ready.wait();
        (tell, answer)
    }

    /// Has the worker compute, in a task that calls `first`, and two more such tasks wait.
    fn begin(&mut self, first: impl FnOnce() + Send + 'static) {
        let (begun, end) = (self.begun.clone(), self.end.clone());
        self.tasks.push(self.runtime.spawn(async move {
            begun.open();
            first();
            compute_until(&end);
        }));
        self.begun.wait();
        for _ in 0..2 {
            let end = self.end.clone();
            self.tasks.push(self.runtime.spawn(async move { compute_until(&end) }));
        }
    }

    fn end(self) {
        self.end.open();
        self.tasks.into_iter().for_each(foreign_block_on);
    }
}

/// Fails if a task that wakes itself on a standby goes behind tasks that compute.
#[test]
fn a_task_that_yields_on_a_standby_stays_there() {
    for yielded in [0, 3] {
        explore(2_500, move || {
            let mut scene = Scene::new();
            let pipe = Pipe::new();
            let answer = scene.echo(&pipe, yielded);
            scene.begin(|| ());
            pipe.write();
            within(2 * SOON, "an event and its task", || answer.wait());
            scene.end();
        });
    }
}

/// A thread wakes a task that has shown to be quick: into the injector, behind tasks that were never polled.
/// Fails if no standby starts, or wakes up, for the injector, or if the standby polls one of those.
#[test]
fn a_quick_task_that_another_thread_wakes_passes_those_that_were_never_polled() {
    for is_standby_there in [false, true] {
        explore(2_500, move || {
            let mut scene = Scene::new();
            let (tell, answer) = scene.told();
            let pipe = Pipe::new();
            let event = scene.echo(&pipe, 0);
            scene.begin(|| ());
            if is_standby_there {
                pipe.write();
                event.wait();
                // It passes over what waits, and sleeps.
                sleep(3 * SOON);
            }
            let pace = Pace::new();
            let waker: JoinHandle<()> = spawn("waker", move || tell.open());
            answer.wait();
            pace.at_most(2 * SOON, "a task that a thread has woken");
            waker.join().expect("it only wakes");
            if !is_standby_there {
                pipe.write();
            }
            scene.end();
        });
    }
}

/// A poll that computes wakes a quick task, which waits in the slot of its runner. Fails if the task is moved
/// behind tasks that compute, or if no standby comes for it.
#[test]
fn what_a_poll_wakes_before_it_computes_is_polled_elsewhere() {
    explore(2_500, || {
        let mut scene = Scene::new();
        let (tell, answer) = scene.told();
        scene.begin(move || tell.open());
        within(2 * SOON, "a task that a long poll has woken", || answer.wait());
        scene.end();
    });
}

/// Three tasks compute for some ticks and yield, again and again. A task from outside comes. Fails if it waits
/// for more polls than those of the tasks before it, and the one in progress.
#[test]
fn a_task_from_outside_waits_for_the_polls_of_those_before_it() {
    const POLL: u32 = 5;
    explore(2_500, || {
        let scene = Scene::new();
        let polls = Arc::new(Mutex::new(0));
        let computing: Vec<_> = (0..3)
            .map(|_| {
                let (polls, end) = (polls.clone(), scene.end.clone());
                scene.runtime.spawn(async move {
                    while !end.is_open() {
                        let part = SceneActivity::Computes.begin();
                        sleep(POLL);
                        drop(part);
                        mem::forget(SceneActivity::WaitsForCore.begin());
                        *lock(&polls) += 1;
                        yields().await;
                    }
                })
            })
            .collect();
        // All are known by then.
        while *lock(&polls) < 6 {
            sleep(1);
        }
        let before = *lock(&polls);
        foreign_block_on(scene.runtime.spawn(async {}));
        let waited = *lock(&polls) - before;
        assert!(waited <= 4, "a task from outside has waited for {waited} polls");
        scene.end.open();
        computing.into_iter().for_each(foreign_block_on);
        scene.end();
    });
}
