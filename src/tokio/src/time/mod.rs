//! Sleeps, timeouts and intervals. All of them are [`paceline::Timer`]s; with `test-util`, a current-thread
//! runtime's clock can be paused, and its waits end when a test moves the clock, or when the runtime is idle.
//!
//! | file | what it is |
//! |---|---|
//! | [`alarm`] | the timer of a [`Sleep`] while its clock runs |
//! | [`clock`] | one for each runtime, with the wait of a [`Sleep`]: `clock_plain`, or `clock_pausable` |
//! | `pausable`, `entries`, `pausing` | a clock that can be paused, its waits, and its functions |
//! | [`sleep`](mod@sleep), [`timeout`](mod@timeout), [`interval`](mod@interval) | as their names say |
//! | [`resource`] | a [`Sleep`] as subscribers of `tracing` see it |
//! | [`system`] | the time where no clock can be paused: the system's, or a simulation's |
//! | [`instant`], [`error`] | as their names say |

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
#[cfg_attr(all(tokio_unstable, feature = "tracing"), path = "resource_on.rs")]
#[cfg_attr(not(all(tokio_unstable, feature = "tracing")), path = "resource_off.rs")]
mod resource;
mod sleep;
#[cfg_attr(feature = "sim", path = "system_sim.rs")]
#[cfg_attr(not(feature = "sim"), path = "system_std.rs")]
mod system;
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

/// Longer durations are treated as this one: about thirty years, which no clock has trouble with.
const LONGEST: Duration = Duration::from_secs(86_400 * 365 * 30);
