//! [`State`]: where a job is, in one atomic word.
//!
//! | stage | marks | meaning | next |
//! |---|---|---|---|
//! | queued | none | it waits for a thread | [`begin`](State::begin), [`expire`](State::expire), [`cancel`](State::cancel) |
//! | queued | cancelled, expired | it never begins | - |
//! | running | none | a thread is in it | [`finish`](State::finish), `expire`, `cancel` |
//! | running | cancelled | whoever waited has been told, or has gone; its deadline still holds | `finish`, `expire` |
//! | running | expired, perhaps cancelled before | its thread is lost | `finish` |
//! | over | none | its result is the handle's | - |
//! | over | cancelled, expired | its result is that thread's, which drops it | - |
//!
//! *Exactly one side gets the result.* It is written before `finish`, by the thread that runs the job, and nobody else touches it until
//! then. `finish` is one atomic step, and so is each mark; a mark is set only where the job is not over. So either the first mark
//! comes before `finish`, which then says that the result is the thread's, and the handle, which looks at the same word, sees a mark
//! and leaves it alone. Or none does, none is ever set after that, and the result is the handle's.
//!
//! *Exactly one lost thread for each deadline that passes.* `expire` says so once, if the thread is in the job; `finish` says it to the
//! thread if, and only if, `expire` came before.

use crate::sync::{AtomicU8, Ordering};

const QUEUED: u8 = 0;
const RUNNING: u8 = 1;
const OVER: u8 = 2;
const STAGE: u8 = 3;
const CANCELLED: u8 = 4;
const EXPIRED: u8 = 8;

/// The word.
#[derive(Debug)]
pub(super) struct State(AtomicU8);

/// What whoever waits for a job is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The result is his.
    Done,
    Cancelled,
    TimedOut,
}

/// What the end of a job means to the thread that ran it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Finish {
    /// The result is the handle's.
    Deliver,
    /// The result is this thread's, which drops it.
    Discard,
    /// The same; and the thread is lost.
    Lost,
}

/// What a deadline that has passed means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Expiry {
    /// Nothing: the job is over, or the deadline had passed before.
    Nothing,
    /// It never begins.
    Unbegun,
    /// The thread that runs it is lost.
    Lost,
}

impl State {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(QUEUED))
    }

    /// A thread has taken the job from the queue. False if it is not to be begun.
    pub(super) fn begin(&self) -> bool {
        // ORDER: Relaxed: what the job needs came by the queue's lock.
        self.0.compare_exchange(QUEUED, RUNNING, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// The thread that began it has its result, and has written it down.
    pub(super) fn finish(&self) -> Finish {
        // ORDER: Release pairs with the Acquire of `answer` and `cancel`: the result.
        let before = self.0.fetch_add(OVER - RUNNING, Ordering::Release);
        debug_assert_eq!(before & STAGE, RUNNING);
        match before & (CANCELLED | EXPIRED) {
            0 => Finish::Deliver,
            CANCELLED => Finish::Discard,
            _ => Finish::Lost,
        }
    }

    /// Its deadline has passed.
    pub(super) fn expire(&self) -> Expiry {
        match self.mark(EXPIRED, EXPIRED) {
            None => Expiry::Nothing,
            Some(before) if before & STAGE == RUNNING => Expiry::Lost,
            Some(_) => Expiry::Unbegun,
        }
    }

    /// Nobody wants its result. False if that makes no difference: it is over, or has one mark already.
    pub(super) fn cancel(&self) -> bool {
        self.mark(CANCELLED, CANCELLED | EXPIRED).is_some()
    }

    /// Sets a mark, unless the job is over or has one of these. Returns what was there before.
    fn mark(&self, mark: u8, unless: u8) -> Option<u8> {
        // ORDER: Acquire, where it fails, pairs with the Release of `finish`: who drops the handle drops the result.
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Acquire, |now| {
                let is_settled = now & STAGE == OVER || now & unless != 0;
                (!is_settled).then_some(now | mark)
            })
            .ok()
    }

    /// What to tell whoever waits; `None` if he has to wait. Once there is an answer, it stays that.
    pub(super) fn answer(&self) -> Option<Answer> {
        // ORDER: Acquire pairs with the Release of `finish`.
        let now = self.0.load(Ordering::Acquire);
        // Where both marks are set, the deadline passed after he was told.
        if now & CANCELLED != 0 {
            Some(Answer::Cancelled)
        } else if now & EXPIRED != 0 {
            Some(Answer::TimedOut)
        } else {
            (now & STAGE == OVER).then_some(Answer::Done)
        }
    }

    /// Whether it has a mark: nobody wants its result.
    pub(super) fn is_unwanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) & (CANCELLED | EXPIRED) != 0
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    /// Each word that there can be.
    fn words() -> impl Iterator<Item = u8> {
        [QUEUED, RUNNING, OVER].into_iter().flat_map(|stage| [0, 4, 8, 12].map(|marks| stage | marks))
    }

    fn state(word: u8) -> State {
        State(AtomicU8::new(word))
    }

    fn word(state: &State) -> u8 {
        state.0.load(Ordering::Relaxed)
    }

    #[test]
    fn a_job_begins_once_and_not_with_a_mark() {
        for before in words() {
            let it = state(before);
            assert_eq!(it.begin(), before == QUEUED);
            assert_eq!(word(&it), if before == QUEUED { RUNNING } else { before });
        }
    }

    #[test]
    fn the_result_is_the_threads_where_there_is_a_mark() {
        let finishes = [0, CANCELLED, EXPIRED, CANCELLED | EXPIRED].map(|marks| {
            let it = state(RUNNING | marks);
            let finish = it.finish();
            assert_eq!(word(&it), OVER | marks);
            finish
        });
        assert_eq!(finishes, [Finish::Deliver, Finish::Discard, Finish::Lost, Finish::Lost]);
    }

    #[test]
    fn a_mark_is_set_where_it_makes_a_difference() {
        for before in words() {
            let (over, cancelled) = (before & STAGE == OVER, before & CANCELLED != 0);
            let expired = before & EXPIRED != 0;
            let cancels = state(before);
            assert_eq!(cancels.cancel(), !over && !cancelled && !expired);
            let expires = state(before);
            let expected = match before & STAGE {
                _ if over || expired => Expiry::Nothing,
                RUNNING => Expiry::Lost,
                _ => Expiry::Unbegun,
            };
            assert_eq!(expires.expire(), expected, "{before}");
            assert_eq!(word(&expires), if expected == Expiry::Nothing { before } else { before | EXPIRED });
        }
    }

    #[test]
    fn an_answer_stays() {
        for before in words() {
            let it = state(before);
            let answer = it.answer();
            assert_eq!(it.is_unwanted(), before & (CANCELLED | EXPIRED) != 0);
            let (_, _) = (it.cancel(), it.expire());
            if answer.is_some() {
                assert_eq!(it.answer(), answer, "{before}");
            }
        }
    }
}
