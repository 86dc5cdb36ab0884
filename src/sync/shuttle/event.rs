//! [`Event`]: stands in for `event_listener::Event`, which calls wakers under a lock of std's. The wakers of
//! this crate take steps, and the next thread that locked it would wait for itself.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

#[derive(Debug, Default)]
pub(crate) struct Event(Arc<Mutex<Listeners>>);

/// Under a lock of `std`: no thread takes a step of the scenario under it.
#[derive(Debug, Default)]
struct Listeners {
    next: u64,
    waiting: BTreeMap<u64, Option<Waker>>,
}

fn listeners<R>(event: &Mutex<Listeners>, f: impl FnOnce(&mut Listeners) -> R) -> R {
    f(&mut event.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Event {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Returns a future of the next notification after this call.
    pub(crate) fn listen(&self) -> Listener {
        super::step();
        let number = listeners(&self.0, |listeners| {
            listeners.next += 1;
            listeners.waiting.insert(listeners.next, None);
            listeners.next
        });
        Listener { event: self.0.clone(), number }
    }

    /// Notifies the `count` listeners that have listened longest.
    pub(crate) fn notify(&self, count: usize) {
        super::step();
        let told: Vec<_> = listeners(&self.0, |listeners| {
            let longest: Vec<_> = listeners.waiting.keys().copied().take(count).collect();
            longest.iter().filter_map(|number| listeners.waiting.remove(number)).collect()
        });
        told.into_iter().flatten().for_each(Waker::wake);
    }
}

/// A future of one notification.
#[derive(Debug)]
pub(crate) struct Listener {
    event: Arc<Mutex<Listeners>>,
    number: u64,
}

impl Future for Listener {
    type Output = ();

    /// Ends once a notification has chosen this listener; until then keeps a clone of the waker.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        super::step();
        let fresh = cx.waker().clone();
        let old = listeners(&self.event, |listeners| {
            listeners.waiting.get_mut(&self.number).map(|place| place.replace(fresh))
        });
        if old.is_some() { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Drop for Listener {
    /// Stops listening. A notification that has come is not passed on to another listener.
    fn drop(&mut self) {
        let waker = listeners(&self.event, |listeners| listeners.waiting.remove(&self.number));
        drop(waker);
    }
}
