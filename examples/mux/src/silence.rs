//! Detects a silent peer, without reading the clock for each read.
//!
//! A timer ticks, and a flag records activity between two ticks. So a silent peer is pinged after one to two
//! periods, and given up after two to three; a peer that reads nothing, after one to two. A peer with much to
//! read before it can see the ping has time to answer. The next tick is a period after this one was handled:
//! a pause of the process or the machine does not count as silence of the peer.
//!
//! For the last frame, the peer has a shorter time.

use std::mem::take;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use paceline::Timer;

use crate::error::Error;

/// For the last frame, and the peer's end of the transport.
const LAST: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Silence {
    period: Duration,
    timer: Timer,
    /// Something has arrived since the last tick.
    heard: bool,
    asked: Asked,
    /// The peer has read something since the last tick.
    sent: bool,
    /// How many ticks in a row found that the peer should have read something and had not.
    stuck: u32,
    /// How many ticks found no HELLO.
    unknown: u32,
}

/// The state of the ping.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Asked {
    No,
    /// The outbox has to become empty so often before the ping is written; and whether that has taken longer
    /// than a tick.
    Waits(u32, bool),
    /// The ping is written; and whether it had to wait for longer than a tick.
    Written(bool),
}

/// The result of a tick.
#[derive(Debug)]
pub(crate) enum Verdict {
    Lives,
    /// Send a ping.
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

    /// Switches to the periods for the last frame.
    pub(crate) fn part(&mut self) {
        self.period = self.period.min(LAST);
        self.timer.set_after(self.period);
        self.sent = false;
    }

    /// After a tick: returns the error if the peer has read nothing of the last frame.
    pub(crate) fn tick_parting(&mut self) -> Result<(), Error> {
        match take(&mut self.sent) {
            true => Ok(()),
            false => Err(Error::Deaf(self.period)),
        }
    }

    /// Returns whether a period has passed. The next one begins now.
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

    /// After a tick: whether the peer has sent HELLO, whether there is something that it should read, and
    /// whether a PING is unanswered.
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
            // The bytes that are being written, and then the PING.
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

    /// Returns the results of ticks, for a peer that has sent HELLO. Before each tick an event happens: this
    /// side `h`ears the peer, the peer reads something (`s`), or everything (`e`), or nothing; a capital
    /// letter means that there is more to read.
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
                        // Sent at once.
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
    fn a_silent_peer_is_pinged_and_given_up() {
        assert_eq!(ticks("--"), "?!");
        assert_eq!(ticks("hh---"), "..?!");
        assert_eq!(ticks("-h-h--"), "?.?.?!");
    }

    #[test]
    fn a_peer_that_takes_nothing_is_given_up_even_if_it_sends() {
        assert_eq!(ticks("HHH"), ".d");
        assert_eq!(ticks("HSHSHH"), ".?.?.d");
    }

    #[test]
    fn a_peer_with_much_to_take_before_the_ping_has_time_for_it() {
        // The peer reads all the time, and has not reached the ping.
        assert_eq!(ticks("SSSSSS"), "?.....");
        // The rest of the bytes before the ping, then the ping, and a whole period more.
        assert_eq!(ticks("SSEEs-"), "?...!");
        // The peer answers.
        assert_eq!(ticks("SSEEhh"), "?.....");
    }
}
