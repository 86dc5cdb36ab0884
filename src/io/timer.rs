//! [`Timer`]: a future that completes at a point in time, and a stream of such points.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures::Stream;
use futures::future::FusedFuture;
use futures::stream::FusedStream;

use crate::budget;
use crate::current;
use crate::pool;
use crate::reactor::Alarm;
use crate::simulated;
use crate::sync::Instant;

/// Longer than a simulation lasts.
const FAR: Duration = Duration::from_secs(600 * 365 * 24 * 60 * 60);

/// Fires at a point in time: once as a future, repeatedly as a stream.
///
/// A timer never fires early. Creating, arming and cancelling a timer is cheap, so use them freely as
/// timeouts. If other timers fired within the last millisecond, a timer may wait for the end of that
/// millisecond, so that they share a wake-up: by up to a sixteenth of its delay, or 50 microseconds. See
/// [`Tuning::timer_slack`](crate::Tuning::timer_slack). Points of a stream do not shift by that.
///
/// In tests, the feature `test-clock` lets timers fire without waiting: see `paceline::clock` and
/// `#[paceline::test(start_paused)]`.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
/// use paceline::{Timer, block_on};
///
/// let start = Instant::now();
/// block_on(Timer::after(Duration::from_millis(5)));
/// assert!(start.elapsed() >= Duration::from_millis(5));
/// ```
///
/// # Panics
///
/// Polling a timer panics if it is the first use of the default instance and the process has no free
/// descriptor to make that instance: unlike [`Builder::build`](crate::Builder::build) and
/// [`Async::new`](crate::Async::new), a timer cannot return an error.
#[derive(Debug)]
#[must_use = "a timer does nothing unless it is polled"]
pub struct Timer {
    /// The alarm in a reactor, which may have fired. Without one, the next poll arms one.
    alarm: Option<Alarm>,
    /// When the timer fires next; `None` if it never fires.
    when: Option<Instant>,
    /// The time from one point to the next; [`Duration::MAX`] for a timer that fires once.
    period: Duration,
}

/// Arms an alarm in the reactor of the current runtime, or in that of the default instance if the runtime is
/// gone. Panics if there is no reactor and none can be made.
fn arm(when: Instant, delay: Duration, waker: &Waker) -> Alarm {
    let found = |reactor: io::Result<_>| {
        reactor.unwrap_or_else(|error| panic!("no reactor can be made for a timer: {error}"))
    };
    Alarm::arm(found(current::current_reactor()), when, delay, waker).unwrap_or_else(|| {
        // `None`: the current runtime is gone, and this is a task that it could not stop.
        let default = found(current::default_reactor());
        Alarm::arm(default, when, delay, waker).expect("the default instance stays")
    })
}

impl Timer {
    /// Creates a timer that never fires.
    ///
    /// ```
    /// assert!(!paceline::Timer::never().will_fire());
    /// ```
    pub fn never() -> Timer {
        Timer { alarm: None, when: None, period: Duration::MAX }
    }

    /// Creates a timer that fires once, after `duration`. If `duration` is too long for the clock, the timer
    /// never fires.
    ///
    /// ```
    /// use std::time::Duration;
    /// paceline::block_on(paceline::Timer::after(Duration::from_micros(100)));
    /// assert!(!paceline::Timer::after(Duration::MAX).will_fire());
    /// ```
    #[doc(alias = "sleep")]
    pub fn after(duration: Duration) -> Timer {
        Timer { alarm: None, when: pool::now().checked_add(duration), period: Duration::MAX }
    }

    /// Creates a timer that fires once, at `instant`.
    ///
    /// ```
    /// use std::time::Instant;
    /// let now = Instant::now();
    /// assert_eq!(paceline::block_on(paceline::Timer::at(now)), now);
    /// ```
    #[doc(alias = "sleep_until")]
    pub fn at(instant: Instant) -> Timer {
        Timer::interval_at(instant, Duration::MAX)
    }

    /// Creates a timer that fires repeatedly, for the first time after one `period`. Points that passed while
    /// the timer was not polled are returned one after the other, without a wait.
    ///
    /// ```
    /// use std::time::Duration;
    /// use futures_lite::StreamExt;
    /// let mut ticks = paceline::Timer::interval(Duration::from_millis(1));
    /// paceline::block_on(async {
    ///     let first = ticks.next().await.unwrap();
    ///     assert_eq!(ticks.next().await, Some(first + Duration::from_millis(1)));
    /// });
    /// ```
    pub fn interval(period: Duration) -> Timer {
        Timer { alarm: None, when: pool::now().checked_add(period), period }
    }

    /// Creates a timer that fires repeatedly, for the first time at `start`.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use futures_lite::StreamExt;
    /// let start = Instant::now();
    /// let mut ticks = paceline::Timer::interval_at(start, Duration::from_secs(1));
    /// assert_eq!(paceline::block_on(ticks.next()), Some(start));
    /// ```
    pub fn interval_at(start: Instant, period: Duration) -> Timer {
        Timer { alarm: None, when: Some(start), period }
    }

    /// Returns whether the timer is going to fire.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// assert!(paceline::Timer::at(Instant::now()).will_fire());
    /// ```
    #[inline]
    pub fn will_fire(&self) -> bool {
        self.when.is_some()
    }

    /// Returns when the timer fires next, or `None` if it never fires.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use paceline::Timer;
    /// let now = Instant::now();
    /// assert_eq!(Timer::at(now).deadline(), Some(now));
    /// assert!(Timer::after(Duration::from_secs(1)).deadline() >= Some(now + Duration::from_secs(1)));
    /// assert_eq!(Timer::never().deadline(), None);
    /// ```
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        self.when
    }

    /// Sets the timer to fire after `duration`. The period of a stream stays.
    ///
    /// ```
    /// use std::time::Duration;
    /// let mut timer = paceline::Timer::after(Duration::from_secs(3600));
    /// timer.set_after(Duration::from_micros(10));
    /// paceline::block_on(timer);
    /// ```
    pub fn set_after(&mut self, duration: Duration) {
        self.set(pool::now().checked_add(duration));
    }

    /// Sets the timer to fire at `instant`. The period of a stream stays.
    ///
    /// ```
    /// use std::time::Instant;
    /// let mut timer = paceline::Timer::never();
    /// timer.set_at(Instant::now());
    /// paceline::block_on(timer);
    /// ```
    pub fn set_at(&mut self, instant: Instant) {
        self.set(Some(instant));
    }

    /// Sets the timer to fire repeatedly, for the first time after one `period`.
    ///
    /// ```
    /// use std::time::Duration;
    /// let mut timer = paceline::Timer::never();
    /// timer.set_interval(Duration::from_millis(1));
    /// paceline::block_on(timer);
    /// ```
    pub fn set_interval(&mut self, period: Duration) {
        self.period = period;
        self.set(pool::now().checked_add(period));
    }

    /// Sets the timer to fire repeatedly, for the first time at `start`.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// let mut timer = paceline::Timer::never();
    /// timer.set_interval_at(Instant::now(), Duration::from_secs(1));
    /// paceline::block_on(timer);
    /// ```
    pub fn set_interval_at(&mut self, start: Instant, period: Duration) {
        self.period = period;
        self.set(Some(start));
    }

    /// Stops the timer: it does not fire any more.
    ///
    /// ```
    /// use std::time::Duration;
    /// let mut timer = paceline::Timer::after(Duration::from_secs(1));
    /// timer.clear();
    /// assert!(!timer.will_fire());
    /// ```
    pub fn clear(&mut self) {
        self.set(None);
    }

    /// Sets when the timer fires next; `None` is never, and drops the alarm. An alarm that has not fired gets
    /// the new deadline; any other alarm is dropped, and the next poll arms one.
    fn set(&mut self, when: Option<Instant>) {
        self.when = when;
        // An alarm that has fired or was lost has woken its task. When that task polls the timer, it arms the
        // timer again.
        self.alarm.take_if(|alarm| !when.is_some_and(|when| alarm.set(when)));
    }

    /// Arms the timer to wake this task at the deadline: its own alarm, if that is not lost, else another
    /// one.
    fn arm(&mut self, when: Instant, delay: Duration, waker: &Waker) {
        if !self.alarm.as_mut().is_some_and(|alarm| alarm.rearm(when, delay, waker)) {
            self.alarm = Some(arm(when, delay, waker));
        }
    }

    #[inline]
    fn is_armed_for(&self, waker: &Waker) -> bool {
        self.alarm.as_ref().is_some_and(|alarm| alarm.is_for(waker))
    }

    /// Arms a timer that never fires, in a simulation: for a time to which the clock does not come. So the
    /// report of a deadlock can count the timers that never fire.
    #[cold]
    fn arm_for_never(&mut self, waker: &Waker) {
        if let (false, Some(far)) = (self.is_armed_for(waker), pool::now().checked_add(FAR)) {
            self.arm(far, FAR, waker);
        }
    }
}

impl Future for Timer {
    type Output = Instant;

    /// Once the point in time for which the timer was set has come, returns it, and sets the timer to the
    /// next one, a period later; if there is none, as for a timer that fires once, the timer never fires
    /// again. A timer that never fires stays pending, and wakes no task.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        let this = self.get_mut();
        let Some(when) = this.when else {
            if simulated::is_running() {
                this.arm_for_never(cx.waker());
            }
            return Poll::Pending;
        };
        budget::spend(cx.waker(), || {
            let now = pool::now();
            if now >= when {
                this.when = when.checked_add(this.period);
                match this.when {
                    Some(next) => this.arm(next, this.period, cx.waker()),
                    None => this.alarm = None,
                }
                return Poll::Ready(when);
            }
            if !this.is_armed_for(cx.waker()) {
                this.arm(when, when - now, cx.waker());
            }
            Poll::Pending
        })
    }
}

impl Stream for Timer {
    type Item = Instant;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.poll(cx).map(Some)
    }
}

/// Lets `futures::select!` take a timer as it is, and skip one that [does not fire](Timer::will_fire).
impl FusedFuture for Timer {
    fn is_terminated(&self) -> bool {
        !self.will_fire()
    }
}

/// The same as for the future.
impl FusedStream for Timer {
    fn is_terminated(&self) -> bool {
        !self.will_fire()
    }
}
