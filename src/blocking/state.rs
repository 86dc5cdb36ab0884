//! [`State`]: where a job is, in one atomic word.
//!
//! | stage | marks | meaning | next |
//! |---|---|---|---|
//! | queued | none, or detached | it waits for a thread | [`begin`](State::begin), [`expire`](State::expire), [`cancel`](State::cancel), [`detach`](State::detach) |
//! | queued | cancelled or expired, perhaps detached before | it never begins | - |
//! | running | none | a thread is in it | [`finish`](State::finish), `expire`, `cancel`, `detach` |
//! | running | detached | the same; nobody will ask for its result | `finish`, `expire` |
//! | running | cancelled | whoever waited has been told, or has gone; its deadline still holds | `finish`, `expire` |
//! | running | expired, perhaps cancelled or detached before | its thread is lost | `finish` |
//! | over | none | its result is the handle's | - |
//! | over | any | its result is that thread's, which drops it | - |
//!
//! *Exactly one side gets the closure.* It is written before the job can be reached by anybody, and touched by whoever takes the word
//! away from "queued, neither cancelled nor expired", and nobody else. Two kinds of steps lead away from there, and none back: `begin`,
//! after which it is that thread's, which runs it; and the first of the marks `cancelled` and `expired`, after which it is the
//! marker's, who drops it. Each is one atomic step, so one of them is first, and the others are told that they were not.
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
const DETACHED: u8 = 16;
/// What a job ends with before it is over.
const SETTLED: u8 = CANCELLED | EXPIRED;

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

/// What it means that nobody wants a job any more, or that its deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Marked {
    /// Nothing: the job is over, or that was so before.
    Nothing,
    /// It never begins. The closure is the caller's.
    Unbegun,
    /// A thread is in it. If its deadline has passed, that thread is lost.
    Running,
}

impl State {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(QUEUED))
    }

    /// A thread has taken the job from the queue. If it is to be begun, the closure is that thread's; else it has been somebody's before.
    pub(super) fn begin(&self) -> bool {
        // ORDER: Relaxed: what the job needs came by the queue's lock.
        let begun = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| {
            (now & STAGE == QUEUED && now & SETTLED == 0).then_some(now | RUNNING)
        });
        begun.is_ok()
    }

    /// The thread that began it has its result, and has written it down.
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

    /// Its deadline has passed.
    pub(super) fn expire(&self) -> Marked {
        self.mark(EXPIRED, EXPIRED)
    }

    /// Nobody wants its result, nor that it goes on.
    pub(super) fn cancel(&self) -> Marked {
        self.mark(CANCELLED, SETTLED)
    }

    /// Nobody will ask for its result: the handle is gone. Where it is over, the result is the caller's, if it was the handle's.
    pub(super) fn detach(&self) -> Marked {
        self.mark(DETACHED, SETTLED)
    }

    /// Sets a mark, unless the job is over, has one of these, or will never begin.
    fn mark(&self, mark: u8, unless: u8) -> Marked {
        // ORDER: Acquire, where it fails, pairs with the Release of `finish`: who drops the handle drops the result.
        let marked = self.0.fetch_update(Ordering::Relaxed, Ordering::Acquire, |now| {
            let unless = if now & STAGE == QUEUED { unless | SETTLED } else { unless };
            (now & STAGE != OVER && now & unless == 0).then_some(now | mark)
        });
        match marked {
            Err(_) => Marked::Nothing,
            Ok(before) if before & STAGE == RUNNING => Marked::Running,
            Ok(_) => Marked::Unbegun,
        }
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

    /// Whether it may as well stop: it was cancelled, or its deadline has passed.
    pub(super) fn is_unwanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) & SETTLED != 0
    }
}

#[cfg(all(test, paceline_loom))]
mod models;

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    /// Each word that there can be, and some that there cannot.
    fn words() -> impl Iterator<Item = u8> {
        [QUEUED, RUNNING, OVER].into_iter().flat_map(|stage| (0..8).map(move |marks| stage | marks << 2))
    }

    fn state(word: u8) -> State {
        State(AtomicU8::new(word))
    }

    fn word(state: &State) -> u8 {
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
        // By the marks: none; cancelled; expired; both; and the same four of a job that was detached.
        use Finish::{Deliver, Discard, Lost};
        assert_eq!(finishes, [Deliver, Discard, Lost, Lost, Discard, Discard, Lost, Lost]);
    }

    #[test]
    fn a_mark_is_set_where_it_makes_a_difference() {
        type Sets = fn(&State) -> Marked;
        let marks = [
            (State::cancel as Sets, CANCELLED, SETTLED),
            (State::detach, DETACHED, SETTLED),
            (State::expire, EXPIRED, EXPIRED),
        ];
        for before in words() {
            for (set, mark, unless) in marks {
                let it = state(before);
                let expected = match before & STAGE {
                    QUEUED if before & SETTLED == 0 => Marked::Unbegun,
                    RUNNING if before & unless == 0 => Marked::Running,
                    _ => Marked::Nothing,
                };
                assert_eq!(set(&it), expected, "{before}");
                assert_eq!(word(&it), if expected == Marked::Nothing { before } else { before | mark });
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
