//! The settings of a [`Tuning`].

use std::time::Duration;

use crate::leadership::WakeOrder;
use crate::pool::{Promotion, Tuning};
use crate::reactor::WayChoice;

/// The longest duration that is stored. Unlike [`Duration::MAX`] it can be added to another duration or to an
/// instant without overflow.
const AGES: Duration = Duration::from_secs(365 * 24 * 3600);

impl Tuning {
    /// Sets when a leader that found an event wakes another thread to lead in its place. The default is
    /// [`Promotion::Adaptive`].
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use paceline::{Promotion, Runtime, Tuning};
    /// let tuning = Tuning::default().promotion(Promotion::Eager);
    /// let runtime = Runtime::builder().threads(1).tuning(tuning).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn promotion(mut self, promotion: Promotion) -> Self {
        self.promotion = promotion;
        self
    }

    /// Sets which waiting thread is woken first. The default is [`WakeOrder::LastInFirstOut`].
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use paceline::{Runtime, Tuning, WakeOrder};
    /// let tuning = Tuning::default().wake_order(WakeOrder::FirstInFirstOut);
    /// let runtime = Runtime::builder().threads(1).tuning(tuning).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn wake_order(mut self, wake_order: WakeOrder) -> Self {
        self.wake_order = wake_order;
        self
    }

    /// Sets how long a thread may stay awake without work if its waits are usually shorter than that: the
    /// leader, if events come one by one, and a thread that waits for another one. The default is 50
    /// microseconds. Zero turns spinning off, but for some microseconds beside a leader that is busy, and
    /// [`Duration::MAX`] sets no limit. With zero, the deputy also wakes up once after each burst of work,
    /// even if bursts are rare: a thread that does not spin does not measure how long its waits are.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use std::time::Duration;
    /// use paceline::{Runtime, Tuning};
    /// let tuning = Tuning::default().spin(Duration::ZERO);
    /// let runtime = Runtime::builder().threads(1).tuning(tuning).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn spin(mut self, spin: Duration) -> Self {
        self.spin = spin.min(AGES);
        self
    }

    /// Sets how often the deputy checks that a thread looks for events: its tick. When a task blocks the
    /// thread that was about to do that, the second check finds out. The default is one millisecond. With
    /// [`Duration::MAX`] the deputy checks only when it is called.
    ///
    /// A request that wakes an idle runtime sets a timer for the first check, and the end of its work stops
    /// it. Linux does both cheaply if the timer is due after the next tick of its scheduler, which comes
    /// every four milliseconds on many systems. On a virtual machine, five milliseconds instead of one made a
    /// lone request cost 13 us of processor time instead of 25.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use std::time::Duration;
    /// use paceline::{Runtime, Tuning};
    /// let tuning = Tuning::default().max_blind(Duration::from_micros(200));
    /// let runtime = Runtime::builder().threads(1).tuning(tuning).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_blind(mut self, max_blind: Duration) -> Self {
        self.max_blind = max_blind.min(AGES);
        self
    }

    /// Sets how late a timer may fire if others fired shortly before: by a sixteenth of its delay, but at
    /// least by 50 microseconds, and at most by this time, which is a millisecond by default. When timers are
    /// due in close succession, those for which that is allowed fire together, and the operating system wakes
    /// a thread once for all of them. No timer fires early. The first timer after a pause of this length is
    /// on time.
    ///
    /// With zero every timer is on time, at the cost of more wake-ups. The maximum is a millisecond, also for
    /// [`Duration::MAX`].
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use std::time::Duration;
    /// use paceline::{Runtime, Timer, Tuning};
    /// let tuning = Tuning::default().timer_slack(Duration::from_micros(100));
    /// let runtime = Runtime::builder().threads(1).tuning(tuning).build()?;
    /// let timers: Vec<_> = (0..100)
    ///     .map(|number| runtime.spawn(Timer::after(Duration::from_micros(10 * number))))
    ///     .collect();
    /// timers.into_iter().for_each(|timer| drop(runtime.block_on(timer)));
    /// // The leader slept once for many of them.
    /// assert!(runtime.metrics().sleeps < 100);
    /// # Ok(())
    /// # }
    /// ```
    pub fn timer_slack(mut self, slack: Duration) -> Self {
        self.timer_slack = slack.min(Duration::from_millis(1));
        self
    }

    /// Sets whether to wait through the portable interface of `polling` even if there is a faster way: to
    /// compare both, or to work around a defect. By default the fastest way is used.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// use paceline::{Runtime, Tuning};
    /// let runtime = Runtime::builder().threads(1).tuning(Tuning::default().portable(true)).build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn portable(mut self, portable: bool) -> Self {
        self.way = if portable { WayChoice::Portable } else { WayChoice::Best };
        self
    }
}
