//! [`JobState`]: the state of a job, in one atomic word.
//!
//! | stage | marks | meaning | next |
//! |---|---|---|---|
//! | queued | none, or detached | waits for a thread | [`begin`], [`expire`], [`cancel`], [`detach`] |
//! | queued | cancelled or expired, perhaps detached before | the job never begins | - |
//! | running | none | a thread runs the job | [`finish`], [`expire`], [`cancel`], [`detach`] |
//! | running | detached | the same; the result will not be asked for | [`finish`], [`expire`] |
//! | running | cancelled | the awaiting task is told, or gone; the deadline holds | [`finish`], [`expire`] |
//! | running | expired, perhaps cancelled or detached before | the thread is lost | [`finish`] |
//! | over | none | the result belongs to the handle | - |
//! | over | any | the result belongs to the thread, which drops it | - |
//!
//! [`begin`]: JobState::begin
//! [`expire`]: JobState::expire
//! [`cancel`]: JobState::cancel
//! [`detach`]: JobState::detach
//! [`finish`]: JobState::finish
//!
//! **Exactly one side gets the closure.** The closure is written before any side can reach the job. The
//! closure belongs to the side that takes the word away from "queued, neither cancelled nor expired". Two
//! kinds of steps lead away from there, and none back: `begin`, after which the closure belongs to that
//! thread, which runs it; and the first of the marks `cancelled` and `expired`, after which it belongs to the
//! side that set the mark, which drops it. Each is one atomic step, so one of them is first, and the others
//! are told that they were not.
//!
//! **Exactly one side gets the result.** The thread that runs the job writes the result before `finish`, and
//! no other side touches it until then. `finish` is one atomic step, and so is each mark; a mark is set only
//! if the job is not over. Either the first mark comes before `finish`: then `finish` gives the result to the
//! thread, and the handle, which reads the same word, sees a mark and leaves the result alone. Or no mark
//! comes before: then none is ever set, and the result belongs to the handle.
//!
//! **Exactly one lost thread for each deadline that passes.** `expire` reports a lost thread once, if the
//! thread runs the job; `finish` reports it to the thread if, and only if, `expire` came before.

use crate::sync::{AtomicU8, Ordering};

const QUEUED: u8 = 0;
const RUNNING: u8 = 1;
const OVER: u8 = 2;
const STAGE: u8 = 3;
const CANCELLED: u8 = 4;
const EXPIRED: u8 = 8;
const DETACHED: u8 = 16;
/// The marks that settle a job before it is over.
const SETTLED: u8 = CANCELLED | EXPIRED;

/// The state word.
#[derive(Debug)]
pub(super) struct JobState(AtomicU8);

/// The answer that the awaiting task gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The result belongs to the handle.
    Done,
    Cancelled,
    TimedOut,
}

/// The outcome of `finish`, for the thread that ran the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Finish {
    /// The result belongs to the handle.
    Deliver,
    /// The result belongs to this thread, which drops it.
    Discard,
    /// The result belongs to this thread, which drops it; and the runtime has given this thread up.
    Lost,
}

/// The effect of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Effect {
    /// No effect: the job is over, or had such a mark before.
    Nothing,
    /// The job never begins. The closure belongs to the caller.
    Unbegun,
    /// A thread runs the job. If the deadline has passed, that thread is lost.
    Running,
}

impl JobState {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(QUEUED))
    }

    /// Begins a job that a thread has taken from the queue. Returns true if the closure belongs to that
    /// thread; otherwise another side has taken it.
    pub(super) fn begin(&self) -> bool {
        // ORDER: Relaxed suffices: the lock of the queue makes the job visible.
        let begun = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            (now & STAGE == QUEUED && now & SETTLED == 0).then_some(now | RUNNING)
        });
        begun.is_ok()
    }

    /// Ends the job, whose thread has written the result. Returns what that thread does with the result:
    /// `Lost` if the deadline has passed, `Discard` if the job was cancelled or detached, else `Deliver`.
    pub(super) fn finish(&self) -> Finish {
        // ORDER: Release pairs with the Acquire of `answer` and `mark`: the result.
        let before = self.0.fetch_add(OVER - RUNNING, Ordering::Release);
        debug_assert_eq!(before & STAGE, RUNNING);
        match before & !STAGE {
            0 => Finish::Deliver,
            marks if marks & EXPIRED != 0 => Finish::Lost,
            _ => Finish::Discard,
        }
    }

    /// Marks the job as expired: its deadline has passed.
    pub(super) fn expire(&self) -> Effect {
        self.mark(EXPIRED, EXPIRED)
    }

    /// Marks the job as cancelled: neither its result nor its end is wanted.
    pub(super) fn cancel(&self) -> Effect {
        self.mark(CANCELLED, SETTLED)
    }

    /// Marks the job as detached: its result will not be asked for, because the handle is gone. If the job is
    /// over without a mark, the result belongs to the caller.
    pub(super) fn detach(&self) -> Effect {
        self.mark(DETACHED, SETTLED)
    }

    /// Sets a mark and returns whether the job has begun. Sets none, and returns [`Effect::Nothing`], if the
    /// job is over, has one of the marks in `unless`, or will never begin.
    fn mark(&self, mark: u8, unless: u8) -> Effect {
        // ORDER: Acquire, on failure, pairs with the Release of `finish`: a handle that is dropped drops the
        // result.
        let marked = self.0.fetch_update(Ordering::Relaxed, Ordering::Acquire, |now| {
            let unless = if now & STAGE == QUEUED { unless | SETTLED } else { unless };
            (now & STAGE != OVER && now & unless == 0).then_some(now | mark)
        });
        match marked {
            Err(_) => Effect::Nothing,
            Ok(before) if before & STAGE == RUNNING => Effect::Running,
            Ok(_) => Effect::Unbegun,
        }
    }

    /// Returns the answer for the awaiting task; `None` if it has to wait. Once the job is cancelled or has
    /// expired, that is the answer, even while a thread still runs the job. An answer never changes.
    pub(super) fn answer(&self) -> Option<Answer> {
        // ORDER: Acquire pairs with the Release of `finish`: the result.
        let now = self.0.load(Ordering::Acquire);
        // If both marks are set, the deadline has passed after the cancellation.
        if now & CANCELLED != 0 {
            Some(Answer::Cancelled)
        } else if now & EXPIRED != 0 {
            Some(Answer::TimedOut)
        } else {
            (now & STAGE == OVER).then_some(Answer::Done)
        }
    }

    /// Returns whether the job may as well stop: it was cancelled, or its deadline has passed.
    pub(super) fn is_unwanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) & SETTLED != 0
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    /// Returns all words that there can be, and some that there cannot.
    fn words() -> impl Iterator<Item = u8> {
        [QUEUED, RUNNING, OVER].into_iter().flat_map(|stage| (0..8).map(move |marks| stage | marks << 2))
    }

    fn state(word: u8) -> JobState {
        JobState(AtomicU8::new(word))
    }

    fn word(state: &JobState) -> u8 {
        state.0.load(Ordering::Relaxed)
    }

    #[test]
    fn a_job_begins_once_and_not_where_it_is_settled() {
        for before in words() {
            let it = state(before);
            let begins = before == QUEUED || before == QUEUED | DETACHED;
            assert_eq!(it.begin(), begins);
            assert_eq!(word(&it), if begins { before | RUNNING } else { before });
        }
    }

    #[test]
    fn the_result_is_the_threads_where_there_is_a_mark() {
        let all = words().filter(|before| before & STAGE == RUNNING);
        let finishes: Vec<_> = all
            .map(|before| {
                let it = state(before);
                let finish = it.finish();
                assert_eq!(word(&it), before - RUNNING + OVER);
                finish
            })
            .collect();
        // By the marks: none; cancelled; expired; both; and the same four of a detached job.
        use Finish::{Deliver, Discard, Lost};
        assert_eq!(finishes, [Deliver, Discard, Lost, Lost, Discard, Discard, Lost, Lost]);
    }

    #[test]
    fn a_mark_is_set_where_it_makes_a_difference() {
        type Sets = fn(&JobState) -> Effect;
        let marks = [
            (JobState::cancel as Sets, CANCELLED, SETTLED),
            (JobState::detach, DETACHED, SETTLED),
            (JobState::expire, EXPIRED, EXPIRED),
        ];
        for before in words() {
            for (set, mark, unless) in marks {
                let it = state(before);
                let expected = match before & STAGE {
                    QUEUED if before & SETTLED == 0 => Effect::Unbegun,
                    RUNNING if before & unless == 0 => Effect::Running,
                    _ => Effect::Nothing,
                };
                assert_eq!(set(&it), expected, "{before}");
                assert_eq!(word(&it), if expected == Effect::Nothing { before } else { before | mark });
            }
        }
    }

    #[test]
    fn an_answer_stays() {
        for before in words() {
            let it = state(before);
            let answer = it.answer();
            assert_eq!(it.is_unwanted(), before & SETTLED != 0);
            let (_, _) = (it.cancel(), it.expire());
            if answer.is_some() {
                assert_eq!(it.answer(), answer, "{before}");
            }
        }
    }
}
