//! [`Timer`]: a future that is done at a point in time, and a stream of such points.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll, RawWakerVTable, Waker};
use std::time::Duration;

use futures::Stream;
use futures::future::FusedFuture;
use futures::stream::FusedStream;

use crate::pool;
use crate::reactor::Alarm;
use crate::sync::Instant;

/// Fires at a point in time: once as a future, again and again as a stream.
///
/// A timer is never early. Making, arming and cancelling one is cheap, so use them freely as timeouts.
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
/// Polling a timer panics if it is the first thing ever that needs the default instance and the process has no
/// descriptor left to make one: a timer has no way to return an error. [`Builder::build`](crate::Builder::build)
/// and [`Async::new`](crate::Async::new) have.
#[derive(Debug)]
#[must_use = "a timer does nothing unless it is polled"]
pub struct Timer {
    state: State,
    when: Option<Instant>,
    period: Duration,
}

/// A deadline so far ahead is taken not to have passed at the first poll, which saves reading the clock for the many
/// timeouts that are polled once and dropped. Where the first poll is that late, the timer fires right after it.
const FAR: Duration = Duration::from_secs(1);

#[derive(Debug)]
enum State {
    Idle {
        /// The deadline was [`FAR`] ahead when it was set, and no poll has come since.
        ahead: bool,
    },
    Armed(Armed),
}

/// A timer that is not armed, and of which it is not known when it is due.
const IDLE: State = State::Idle { ahead: false };

#[derive(Debug)]
struct Armed {
    alarm: Alarm,
    waker: WakerIdentity,
}

impl Armed {
    fn new(when: Instant, waker: &Waker) -> Self {
        let found = |reactor: io::Result<_>| {
            reactor.unwrap_or_else(|error| panic!("no reactor can be made for a timer: {error}"))
        };
        let alarm = Alarm::arm(found(pool::current_reactor()), when, waker).unwrap_or_else(|| {
            // This is a task that its runtime could not stop, and the runtime is gone.
            let default = found(pool::default_reactor());
            Alarm::arm(default, when, waker).expect("the default instance stays")
        });
        Self { alarm, waker: WakerIdentity::of(waker) }
    }

    /// Whether it will wake this task.
    #[inline]
    fn is_for(&self, waker: &Waker) -> bool {
        self.waker.is(waker) && !self.alarm.is_lost()
    }

    /// False if it [is lost](Alarm::is_lost).
    fn rearm(&mut self, when: Instant, waker: &Waker) -> bool {
        if self.waker.is(waker) && self.alarm.rearm(when, None) {
            return true;
        }
        self.waker = WakerIdentity::of(waker);
        self.alarm.rearm(when, Some(waker))
    }
}

/// Which waker the alarm has. The alarm's own copy keeps what this points to alive, so equal means the same.
#[derive(Clone, Copy, Debug)]
struct WakerIdentity(*const (), &'static RawWakerVTable);

// SAFETY: the pointer is only compared.
unsafe impl Send for WakerIdentity {}
// SAFETY: as above.
unsafe impl Sync for WakerIdentity {}

impl WakerIdentity {
    fn of(waker: &Waker) -> Self {
        Self(waker.data(), waker.vtable())
    }

    fn is(self, waker: &Waker) -> bool {
        ptr::eq(self.0, waker.data()) && ptr::eq(self.1, waker.vtable())
    }
}

impl Timer {
    /// A timer that never fires.
    ///
    /// ```
    /// assert!(!paceline::Timer::never().will_fire());
    /// ```
    pub fn never() -> Timer {
        Timer { state: IDLE, when: None, period: Duration::MAX }
    }

    /// Fires once, after `duration`. One that is too long for the clock never fires.
    ///
    /// ```
    /// use std::time::Duration;
    /// paceline::block_on(paceline::Timer::after(Duration::from_micros(100)));
    /// assert!(!paceline::Timer::after(Duration::MAX).will_fire());
    /// ```
    pub fn after(duration: Duration) -> Timer {
        let mut timer = Timer::never();
        timer.set_after(duration);
        timer
    }

    /// Fires once, at `instant`.
    ///
    /// ```
    /// use std::time::Instant;
    /// let now = Instant::now();
    /// assert_eq!(paceline::block_on(paceline::Timer::at(now)), now);
    /// ```
    pub fn at(instant: Instant) -> Timer {
        Timer::interval_at(instant, Duration::MAX)
    }

    /// Fires again and again, for the first time after one `period`.
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
        let mut timer = Timer::never();
        timer.set_interval(period);
        timer
    }

    /// Fires again and again, for the first time at `start`.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use futures_lite::StreamExt;
    /// let start = Instant::now();
    /// let mut ticks = paceline::Timer::interval_at(start, Duration::from_secs(1));
    /// assert_eq!(paceline::block_on(ticks.next()), Some(start));
    /// ```
    pub fn interval_at(start: Instant, period: Duration) -> Timer {
        Timer { state: IDLE, when: Some(start), period }
    }

    /// Whether it will fire at some time.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// assert!(paceline::Timer::at(Instant::now()).will_fire());
    /// ```
    #[inline]
    pub fn will_fire(&self) -> bool {
        self.when.is_some()
    }

    /// When it fires next, if it will.
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

    /// From now on fires once, after `duration`; for a stream, the period stays.
    ///
    /// ```
    /// use std::time::Duration;
    /// let mut timer = paceline::Timer::after(Duration::from_secs(3600));
    /// timer.set_after(Duration::from_micros(10));
    /// paceline::block_on(timer);
    /// ```
    pub fn set_after(&mut self, duration: Duration) {
        self.set(pool::now().checked_add(duration), duration >= FAR);
    }

    /// From now on fires at `instant`.
    ///
    /// ```
    /// use std::time::Instant;
    /// let mut timer = paceline::Timer::never();
    /// timer.set_at(Instant::now());
    /// paceline::block_on(timer);
    /// ```
    pub fn set_at(&mut self, instant: Instant) {
        self.set(Some(instant), false);
    }

    /// From now on fires again and again, for the first time after one `period`.
    ///
    /// ```
    /// use std::time::Duration;
    /// let mut timer = paceline::Timer::never();
    /// timer.set_interval(Duration::from_millis(1));
    /// paceline::block_on(timer);
    /// ```
    pub fn set_interval(&mut self, period: Duration) {
        self.period = period;
        self.set(pool::now().checked_add(period), period >= FAR);
    }

    /// From now on fires again and again, for the first time at `start`.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// let mut timer = paceline::Timer::never();
    /// timer.set_interval_at(Instant::now(), Duration::from_secs(1));
    /// paceline::block_on(timer);
    /// ```
    pub fn set_interval_at(&mut self, start: Instant, period: Duration) {
        self.period = period;
        self.set(Some(start), false);
    }

    /// Never fires, from now on.
    ///
    /// ```
    /// use std::time::Duration;
    /// let mut timer = paceline::Timer::after(Duration::from_secs(1));
    /// timer.clear();
    /// assert!(!timer.will_fire());
    /// ```
    pub fn clear(&mut self) {
        self.set(None, false);
    }

    fn set(&mut self, when: Option<Instant>, ahead: bool) {
        self.when = when;
        // One that has fired, or was lost, has woken its task, which will arm it when it polls it.
        let stays_armed = match (&self.state, when) {
            (State::Armed(armed), Some(when)) => armed.alarm.rearm(when, None),
            _ => false,
        };
        // One that stays armed may well be polled next because it has fired.
        if !stays_armed {
            self.state = State::Idle { ahead };
        }
    }

    /// Waits for the deadline with this task.
    fn arm(&mut self, when: Instant, waker: &Waker) {
        if let State::Armed(armed) = &mut self.state {
            if armed.rearm(when, waker) {
                return;
            }
        }
        self.state = State::Armed(Armed::new(when, waker));
    }
}

impl Future for Timer {
    type Output = Instant;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        let this = self.get_mut();
        let Some(when) = this.when else { return Poll::Pending };
        let is_ahead = matches!(this.state, State::Idle { ahead: true });
        if !is_ahead && pool::now() >= when {
            this.when = when.checked_add(this.period);
            match this.when {
                Some(next) => this.arm(next, cx.waker()),
                None => this.state = IDLE,
            }
            return Poll::Ready(when);
        }
        match &this.state {
            State::Armed(armed) if armed.is_for(cx.waker()) => {}
            _ => this.arm(when, cx.waker()),
        }
        Poll::Pending
    }
}

impl Stream for Timer {
    type Item = Instant;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.poll(cx).map(Some)
    }
}

/// So that it goes into `futures::select!` as it is. One that [does not fire](Timer::will_fire) is left out there.
impl FusedFuture for Timer {
    fn is_terminated(&self) -> bool {
        !self.will_fire()
    }
}

/// As for the future.
impl FusedStream for Timer {
    fn is_terminated(&self) -> bool {
        !self.will_fire()
    }
}
