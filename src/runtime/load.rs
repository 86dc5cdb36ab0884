//! [`Load`]: what each thread of a runtime has done, for the package that replaces tokio.

use std::time::Duration;

use super::Handle;
use crate::flight::FoundIn;
use crate::pool::{Pool, Station};
use crate::sync::thread::ThreadId;

/// The counts of a runtime by thread. The numbers are read one after the other while the threads go on, so
/// those of a thread that leaves meanwhile may be missing.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Load {
    /// The tasks that were spawned on the runtime so far.
    pub spawned: u64,
    /// The tasks that wait in the queue of all threads now.
    pub injected: usize,
    /// The tasks that were taken from that queue so far.
    pub taken: u64,
    /// The threads that are in a `block_on` of the runtime now.
    pub threads: Vec<ThreadLoad>,
    /// The polls of tasks by threads that have left their `block_on` since.
    pub past_polls: u64,
    /// Of these, the polls of tasks that another thread had in its queue.
    pub past_stolen: u64,
}

/// The part of one thread in a [`Load`], since its `block_on` began.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadLoad {
    /// The thread.
    pub id: ThreadId,
    /// Its polls of tasks.
    pub polls: u64,
    /// Of these, the polls of tasks that another thread had in its queue. A theft may move more tasks, whose
    /// polls are not among these.
    pub stolen: u64,
    /// The tasks that wait for this thread now.
    pub queued: usize,
    /// The processor time of the thread since it started, if the system tells.
    pub processor_time: Option<Duration>,
}

impl Handle {
    /// Returns what each thread of the runtime has done; nothing once the runtime was dropped. This is for
    /// the package that replaces tokio, whose metrics are numbered by worker.
    #[doc(hidden)]
    pub fn load(&self) -> Load {
        self.pool().map_or_else(Load::default, |pool| Load::of(&pool))
    }
}

impl Load {
    /// Reads the counts of a pool.
    fn of(pool: &Pool) -> Self {
        let past = &pool.past_polls;
        let mut load = Load {
            past_polls: past.total(),
            past_stolen: past.get(FoundIn::Stolen),
            threads: pool.stations().iter().map(|station| ThreadLoad::of(station)).collect(),
            ..Load::default()
        };
        if let Some(crew) = pool.crew() {
            (load.spawned, load.injected, load.taken) = crew.state.traffic();
        }
        load
    }
}

impl ThreadLoad {
    fn of(station: &Station) -> Self {
        let mut load = Self {
            id: station.thread.id(),
            polls: 0,
            stolen: 0,
            queued: 0,
            processor_time: station.state.processor_time(),
        };
        for hosted in station.runners.lock().iter() {
            let counters = &hosted.runner.counters;
            load.polls += counters.total();
            load.stolen += counters.get(FoundIn::Stolen);
            load.queued += hosted.runner.queued();
        }
        load
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use crate::Runtime;

    /// Fails if polls of a thread that has left are lost, or counted twice.
    #[test]
    fn all_polls_are_those_of_threads_here_and_of_threads_that_left() {
        let runtime = Runtime::builder().current_thread().build().unwrap();
        let handle = runtime.handle();
        let polls = |polls: usize| {
            runtime.block_on(async {
                for _ in 0..polls {
                    handle.spawn(async {}).await;
                }
                handle.load()
            })
        };
        let (first, second) = (polls(3), polls(4));
        let here = |load: &super::Load| {
            let thread = load.threads.iter().find(|load| load.id == std::thread::current().id());
            thread.map(|load| load.polls)
        };
        assert_eq!((here(&first), first.past_polls, first.spawned), (Some(3), 0, 3));
        assert_eq!((here(&second), second.past_polls, second.spawned), (Some(4), 3, 7));
        drop(handle.spawn(async {}));
        let load = handle.load();
        assert_eq!((here(&load), load.past_polls, load.injected), (None, 7, 1));
        drop(runtime);
        assert_eq!(handle.load().past_polls, 0);
    }

    /// Fails if the past polls are what all polls exceed those of the present threads by, which were read
    /// earlier.
    #[test]
    fn polls_during_the_reading_are_not_those_of_a_thread_that_has_left() {
        let runtime = Runtime::builder().threads(1).max_threads(1).build().unwrap();
        let handle = runtime.handle();
        let task = runtime.spawn(async {
            loop {
                futures_lite::future::yield_now().await;
            }
        });
        let polls = || handle.load().threads.iter().map(|thread| thread.polls).sum::<u64>();
        // The thread that reads and the worker may share a core, so the loads are not counted.
        let end = 1_000 + polls();
        while polls() < end {
            assert_eq!(handle.load().past_polls, 0);
        }
        drop(task);
    }
}
