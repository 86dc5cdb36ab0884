//! Loom models of a job's state, with the cell that it guards, driven as [`Shared`](super::super::shared) does.

use super::*;
use crate::sync::models::model;
use crate::sync::{Arc, AtomicUsize, ProtocolCell};
use loom::thread;

/// A job, its result, and who got it.
struct Job {
    state: State,
    result: ProtocolCell<Option<u32>>,
    delivered: AtomicUsize,
    discarded: AtomicUsize,
    /// Lost threads, as the deadline says, and as the threads say.
    lost: AtomicUsize,
    came_back: AtomicUsize,
}

// SAFETY: loom sees who is in the cell.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    fn new() -> Arc<Self> {
        let [delivered, discarded, lost, came_back] = [(); 4].map(|()| AtomicUsize::new(0));
        let result = ProtocolCell::new(None);
        Arc::new(Self { state: State::new(), result, delivered, discarded, lost, came_back })
    }

    fn take(&self) -> u32 {
        // SAFETY: the state gives it to one side; loom sees it if that is not so.
        unsafe { self.result.with_mut(Option::take) }.expect("it was written, and nobody took it")
    }

    /// The thread's side.
    fn run(&self) {
        if !self.state.begin() {
            return;
        }
        // SAFETY: nobody else is in it before `finish`.
        unsafe { self.result.with_mut(|result| *result = Some(7)) };
        let finish = self.state.finish();
        if finish != Finish::Deliver {
            assert_eq!(self.take(), 7);
            self.discarded.fetch_add(1, Ordering::Relaxed);
        }
        if finish == Finish::Lost {
            self.came_back.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The reactor's.
    fn expire(&self) {
        if self.state.expire() == Expiry::Lost {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The handle's, which looks once.
    fn look(&self) -> Option<Answer> {
        let answer = self.state.answer();
        if answer == Some(Answer::Done) {
            assert_eq!(self.take(), 7);
            self.delivered.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    /// The handle is dropped before it had an answer.
    fn drop_handle(&self) {
        if !self.state.cancel() {
            self.look();
        }
    }

    fn counts(&self) -> [usize; 4] {
        [&self.delivered, &self.discarded, &self.lost, &self.came_back]
            .map(|count| count.load(Ordering::Relaxed))
    }
}

#[test]
fn of_the_handle_and_a_thread_past_its_deadline_one_gets_the_result() {
    model(|| {
        let job = Job::new();
        let others = [Job::run as fn(&Job), Job::expire].map(|side| {
            let job = job.clone();
            thread::spawn(move || side(&job))
        });
        let early = job.look();
        others.into_iter().for_each(|other| other.join().unwrap());
        let answer = early.or_else(|| job.look());
        let [delivered, discarded, lost, came_back] = job.counts();
        assert_eq!(lost, came_back);
        match answer {
            Some(Answer::Done) => assert_eq!((delivered, discarded, lost), (1, 0, 0)),
            Some(Answer::TimedOut) => assert_eq!((delivered, discarded), (0, lost)),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_handle_that_is_dropped_beside_the_end_leaves_no_result_behind() {
    model(|| {
        let job = Job::new();
        let others = [Job::run as fn(&Job), Job::expire].map(|side| {
            let job = job.clone();
            thread::spawn(move || side(&job))
        });
        job.drop_handle();
        others.into_iter().for_each(|other| other.join().unwrap());
        let [delivered, discarded, lost, came_back] = job.counts();
        assert_eq!(lost, came_back);
        // SAFETY: all threads are done.
        let left = unsafe { job.result.with_mut(|result| result.is_some()) };
        assert!(!left && delivered + discarded <= 1 && lost <= discarded);
    });
}
