//! Sleeping, timeouts and intervals. They are [`paceline::Timer`]s; with `test-util`, a current-thread runtime's clock can be paused,
//! and what waits for it waits for a time that moves when a test says so, or when there is nothing else to do.
//!
//! | file | what it is |
//! |---|---|
//! | [`alarm`] | what a [`Sleep`] waits with while its clock runs |
//! | [`clock`] | one for each runtime, and what a [`Sleep`] has of it: `clock_plain`, or `clock_pausable` |
//! | `pausable`, `entries`, `pausing` | a clock that can be paused, what waits for it, and the functions that do so |
//! | [`sleep`](mod@sleep), [`timeout`](mod@timeout), [`interval`](mod@interval), [`instant`], [`error`] | as they are called |

mod alarm;
#[cfg_attr(feature = "test-util", path = "clock_pausable.rs")]
#[cfg_attr(not(feature = "test-util"), path = "clock_plain.rs")]
mod clock;
#[cfg(feature = "test-util")]
mod entries;
pub mod error;
mod instant;
mod interval;
#[cfg(feature = "test-util")]
mod pausable;
#[cfg(feature = "test-util")]
mod pausing;
mod sleep;
#[cfg(all(test, feature = "test-util"))]
mod tests;
mod timeout;

pub use std::time::Duration;

pub(crate) use clock::{Clock, Hold};
pub use instant::Instant;
pub use interval::{Interval, MissedTickBehavior, interval, interval_at};
#[cfg(feature = "test-util")]
pub use pausing::{advance, pause, resume};
pub use sleep::{Sleep, sleep, sleep_until};
pub use timeout::{Timeout, timeout, timeout_at};

/// What is longer is taken for this: about thirty years, which no clock has trouble with.
const LONGEST: Duration = Duration::from_secs(86_400 * 365 * 30);
