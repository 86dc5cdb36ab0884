//! [`yield_now`]: makes way for others, events included.

use std::future::poll_fn;
use std::task::Poll;

use crate::pool;
use crate::reactor::Alarm;

/// Makes way: the task is polled again after those that can go on now, and after somebody has looked for events.
///
/// Where a task only wakes itself, its thread may come back to it many times before it looks for events, as that takes a call to the
/// system, and a task that wakes itself most often has something to do. This is for one that waits for what others do, and cannot be told.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
/// use std::time::Duration;
/// use paceline::{Timer, block_on, spawn, yield_now};
///
/// static DONE: AtomicBool = AtomicBool::new(false);
///
/// block_on(async {
///     spawn(async {
///         Timer::after(Duration::from_millis(1)).await;
///         DONE.store(true, Relaxed);
///     })
///     .detach();
///     while !DONE.load(Relaxed) {
///         yield_now().await;
///     }
/// });
/// ```
pub async fn yield_now() {
    let mut yielded = None;
    poll_fn(|cx| {
        if yielded.take().is_some() {
            return Poll::Ready(());
        }
        // Where somebody else leads, events are looked for, and the task need only make way for other tasks.
        let alarm = pool::unled_reactor().and_then(|reactor| Alarm::at_the_next_look(reactor, cx.waker()));
        if alarm.is_none() {
            cx.waker().wake_by_ref();
        }
        yielded = Some(alarm);
        Poll::Pending
    })
    .await;
}
