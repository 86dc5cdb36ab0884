//! Loom models of a job's state and the cells that it guards, driven as [`SharedJob`](super::super::shared)
//! does.

use super::*;
use crate::sync::models::model;
use crate::sync::{Arc, AtomicUsize, ProtocolCell};
use loom::thread;

/// A job with its closure and its result, and counters of the sides that got them.
struct Job {
    state: JobState,
    body: ProtocolCell<Option<u32>>,
    /// How often the closure was run, and how often it was dropped instead.
    ran: AtomicUsize,
    spared: AtomicUsize,
    result: ProtocolCell<Option<u32>>,
    delivered: AtomicUsize,
    discarded: AtomicUsize,
    /// Lost threads, as the deadline counts them, and as the threads do.
    lost: AtomicUsize,
    came_back: AtomicUsize,
}

// SAFETY: loom checks the accesses to the cells.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    fn new() -> Arc<Self> {
        let [ran, spared, delivered, discarded, lost, came_back] = [(); 6].map(|()| AtomicUsize::new(0));
        let (body, result) = (ProtocolCell::new(Some(6)), ProtocolCell::new(None));
        Arc::new(Self {
            state: JobState::new(),
            body,
            ran,
            spared,
            result,
            delivered,
            discarded,
            lost,
            came_back,
        })
    }

    fn take(&self) -> u32 {
        // SAFETY: the state gives the result to one side; loom checks it.
        unsafe { self.result.with_mut(Option::take) }.expect("it was written, and not taken before")
    }

    fn take_body(&self, into: &AtomicUsize) {
        // SAFETY: as above.
        assert_eq!(unsafe { self.body.with_mut(Option::take) }, Some(6), "another side had it");
        into.fetch_add(1, Ordering::Relaxed);
    }

    /// The steps of the thread.
    fn run(&self) {
        if !self.state.begin() {
            return;
        }
        self.take_body(&self.ran);
        // SAFETY: no other side uses the result before `finish`.
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

    /// The steps of the reactor.
    fn expire(&self) {
        match self.state.expire() {
            Effect::Nothing => {}
            Effect::Unbegun => self.take_body(&self.spared),
            Effect::Running => _ = self.lost.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The steps of the handle, which looks once.
    fn look(&self) -> Option<Answer> {
        let answer = self.state.answer();
        if answer == Some(Answer::Done) {
            assert_eq!(self.take(), 7);
            self.delivered.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    /// Drops the handle before it had an answer.
    fn drop_handle(&self) {
        match self.state.cancel() {
            Effect::Nothing => _ = self.look(),
            Effect::Unbegun => self.take_body(&self.spared),
            Effect::Running => {}
        }
    }

    /// Detaches the handle before it had an answer.
    fn detach_handle(&self) {
        if self.state.detach() == Effect::Nothing {
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
        let others = beside(&job, [Job::run, Job::expire]);
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

/// The handle is dropped, or detached, beside the thread and the deadline: no result is left behind.
#[test]
fn a_handle_that_is_dropped_beside_the_end_leaves_nothing_behind() {
    leaves_nothing_behind(Job::drop_handle);
}

#[test]
fn a_handle_that_is_detached_beside_the_end_leaves_nothing_behind() {
    leaves_nothing_behind(Job::detach_handle);
}

fn leaves_nothing_behind(goes: fn(&Job)) {
    model(move || {
        let job = Job::new();
        let others = beside(&job, [Job::run, Job::expire]);
        goes(&job);
        others.into_iter().for_each(|other| other.join().unwrap());
        let [delivered, discarded, lost, came_back] = job.counts();
        assert_eq!(lost, came_back);
        let [ran, spared] = [&job.ran, &job.spared].map(|count| count.load(Ordering::Relaxed));
        assert_eq!((ran + spared, delivered + discarded), (1, ran));
        // SAFETY: all threads are done.
        let left = unsafe {
            (job.body.with_mut(|body| body.is_some()), job.result.with_mut(|result| result.is_some()))
        };
        assert!(left == (false, false) && lost <= discarded);
    });
}

/// The closure belongs to the first of these: the thread that begins the job, the cancelling side (the
/// handle, or the end of the runtime), the deadline. Fails if a side that finds a mark takes the closure.
#[test]
fn either_a_thread_that_begins_a_job_or_a_side_that_ends_it_gets_the_closure() {
    model(|| {
        let job = Job::new();
        let others = beside(&job, [Job::drop_handle, Job::expire]);
        job.run();
        others.into_iter().for_each(|other| other.join().unwrap());
        let [ran, spared] = [&job.ran, &job.spared].map(|count| count.load(Ordering::Relaxed));
        assert_eq!(ran + spared, 1);
    });
}

fn beside(job: &Arc<Job>, sides: [fn(&Job); 2]) -> [thread::JoinHandle<()>; 2] {
    sides.map(|side| {
        let job = job.clone();
        thread::spawn(move || side(&job))
    })
}
