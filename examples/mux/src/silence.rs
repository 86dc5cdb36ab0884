//! Whether the peer is still there, without a look at the clock for each read.
//!
//! A timer ticks, and what happened between two ticks is a flag. So a silent peer is asked after one to two periods, and given up after
//! two to three; one that takes nothing, after one to two. One that has taken a lot before it can see the question has time to answer.
//! The next tick is a period after this one was noticed: a process that was stopped for a minute, or a machine that was, does not take
//! it for the peer's silence.
//!
//! When all is said but the last word, the peer has a shorter time to take that.

use std::mem::take;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use paceline::Timer;

use crate::error::Error;

/// For the last word, and the peer's end of the transport.
const LAST: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Silence {
    period: Duration,
    timer: Timer,
    /// Something has come since the last tick.
    heard: bool,
    asked: Asked,
    /// The peer has taken something since the last tick.
    sent: bool,
    /// So many ticks in a row found that it had not, and should have.
    stuck: u32,
    /// So many ticks found that it had not said HELLO.
    unknown: u32,
}

/// Where the question is whether the peer is there.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Asked {
    No,
    /// The outbox has to become empty so often before it is written; longer ago than a tick, or not.
    Waits(u32, bool),
    /// It is written; it had to wait for longer than a tick, or not.
    Written(bool),
}

/// What a tick has found.
#[derive(Debug)]
pub(crate) enum Verdict {
    Lives,
    /// A ping should find out.
    Ask,
    Dead(Error),
}

impl Silence {
    pub(crate) fn new(period: Duration) -> Self {
        let timer = Timer::after(period);
        Self { period, timer, heard: false, asked: Asked::No, sent: false, stuck: 0, unknown: 0 }
    }

    pub(crate) fn heard(&mut self) {
        self.heard = true;
    }

    pub(crate) fn sent(&mut self) {
        self.sent = true;
    }

    /// From now on the periods are those for the last word.
    pub(crate) fn part(&mut self) {
        self.period = self.period.min(LAST);
        self.timer.set_after(self.period);
        self.sent = false;
    }

    /// After a tick: whether the peer took some of the last word. If not, it is given up, with this error.
    pub(crate) fn tick_parting(&mut self) -> Result<(), Error> {
        match take(&mut self.sent) {
            true => Ok(()),
            false => Err(Error::Deaf(self.period)),
        }
    }

    /// Whether a period is over. The next one begins now.
    pub(crate) fn poll_tick(&mut self, cx: &mut Context<'_>) -> bool {
        let ticks = Pin::new(&mut self.timer).poll(cx).is_ready();
        if ticks {
            self.timer.set_after(self.period);
        }
        ticks
    }

    /// The outbox has become empty.
    pub(crate) fn emptied(&mut self) {
        self.asked = match self.asked {
            Asked::Waits(..=1, late) => Asked::Written(late),
            Asked::Waits(times, late) => Asked::Waits(times - 1, late),
            other => other,
        };
    }

    /// After a tick: whether the peer has said HELLO, whether there is something that it should take, and whether a PING is on its way
    /// that it has not answered.
    pub(crate) fn tick(&mut self, greeted: bool, sending: bool, pinged: bool) -> Verdict {
        self.stuck = if take(&mut self.sent) || !sending { 0 } else { self.stuck + 1 };
        self.unknown += u32::from(!greeted);
        if self.unknown == 2 {
            return Verdict::Dead(Error::Silent(self.period));
        }
        if self.stuck == 2 {
            return Verdict::Dead(Error::Deaf(self.period));
        }
        let heard = take(&mut self.heard);
        self.asked = match self.asked {
            _ if heard || !greeted => Asked::No,
            Asked::No if pinged => Asked::Written(false),
            // What is being written, and then the PING.
            Asked::No => {
                self.asked = Asked::Waits(1 + u32::from(sending), false);
                return Verdict::Ask;
            }
            Asked::Waits(times, _) => Asked::Waits(times, true),
            Asked::Written(true) => Asked::Written(false),
            Asked::Written(false) => return Verdict::Dead(Error::Silent(2 * self.period)),
        };
        Verdict::Lives
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(1);

    /// What the ticks say, one after the other, of a peer that has said HELLO. Before each comes what happens: it is `h`eard, it takes
    /// something (`s`), all of it (`e`), or nothing; there is something more for it to take, if the letter is a capital one.
    fn ticks(story: &str) -> String {
        let (mut silence, mut pinged) = (Silence::new(PERIOD), false);
        let mut said = String::new();
        for what in story.chars() {
            match what.to_ascii_lowercase() {
                'h' => {
                    silence.heard();
                    pinged = false;
                }
                's' => silence.sent(),
                'e' => {
                    silence.sent();
                    silence.emptied();
                }
                _ => {}
            }
            said.push(match silence.tick(true, what.is_ascii_uppercase(), pinged) {
                Verdict::Lives => '.',
                Verdict::Ask => {
                    pinged = true;
                    if !what.is_ascii_uppercase() {
                        // It goes out at once.
                        silence.sent();
                        silence.emptied();
                    }
                    '?'
                }
                Verdict::Dead(Error::Silent(time)) if time == 2 * PERIOD => '!',
                Verdict::Dead(Error::Deaf(PERIOD)) => 'd',
                Verdict::Dead(error) => panic!("{error}"),
            });
            if said.ends_with(['!', 'd']) {
                break;
            }
        }
        said
    }

    #[test]
    fn who_says_nothing_is_asked_and_given_up() {
        assert_eq!(ticks("--"), "?!");
        assert_eq!(ticks("hh---"), "..?!");
        assert_eq!(ticks("-h-h--"), "?.?.?!");
    }

    #[test]
    fn who_takes_nothing_is_given_up_whatever_it_says() {
        assert_eq!(ticks("HHH"), ".d");
        assert_eq!(ticks("HSHSHH"), ".?.?.d");
    }

    #[test]
    fn who_has_much_to_take_before_the_question_has_time_for_it() {
        // It takes all the time, and has not come to the question.
        assert_eq!(ticks("SSSSSS"), "?.....");
        // The rest of what was before it, then the question, and a whole period more.
        assert_eq!(ticks("SSEEs-"), "?...!");
        // It answers.
        assert_eq!(ticks("SSEEhh"), "?.....");
    }
}
