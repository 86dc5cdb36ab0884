//! [`Bell`]: one side of a pipe waits for the other one.
//!
//! Who waits leaves its waker, says so, fence, and looks again. Who changes something does that, fence, and looks whether anybody
//! waits. Of two fences one is first, so either the one sees the change or the other one sees him wait.

use std::task::Waker;

use crate::sync::{self, AtomicBool, Mutex, Ordering};
use crate::waking;

/// For one who waits, and one who rings.
#[derive(Debug)]
pub(super) struct Bell {
    waits: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Bell {
    pub(super) fn new() -> Self {
        Self { waits: AtomicBool::new(false), waker: Mutex::new(None) }
    }

    /// From now on the next ring wakes. The caller looks once more at what it waits for.
    pub(super) fn listen(&self, waker: &Waker) {
        let waker = waker.clone();
        let old = sync::lock(&self.waker).replace(waker);
        waking::discard(old);
        self.waits.store(true, Ordering::Relaxed);
        // ORDER: pairs with the fence in `ring`.
        sync::full_fence();
    }

    /// What was waited for has changed.
    #[inline]
    pub(super) fn ring(&self) {
        // ORDER: pairs with the fence in `listen`.
        sync::full_fence();
        // ORDER: Acquire and Relaxed do: the waker is behind a lock.
        if self.waits.load(Ordering::Relaxed) && self.waits.swap(false, Ordering::AcqRel) {
            let waker = sync::lock(&self.waker).take();
            waker.into_iter().for_each(waking::wake);
        }
    }
}

/// Tries `look`; waits for `bell` if that gives nothing.
#[inline]
pub(super) fn poll<T>(
    bell: &Bell,
    cx: &std::task::Context<'_>,
    mut look: impl FnMut() -> Option<T>,
) -> std::task::Poll<T> {
    use std::task::Poll;
    if let Some(found) = look() {
        return Poll::Ready(found);
    }
    bell.listen(cx.waker());
    look().map_or(Poll::Pending, Poll::Ready)
}

#[cfg(all(test, paceline_loom))]
mod models {
    use std::task::{Context, Poll};

    use super::*;
    use crate::sync::Arc;
    use crate::sync::models::{model, waker};
    use crate::sync::thread::park;

    #[test]
    fn who_waits_sees_the_change_or_is_woken() {
        model(|| {
            let shared = Arc::new((Bell::new(), AtomicBool::new(false)));
            let other = shared.clone();
            let ringer = loom::thread::spawn(move || {
                other.1.store(true, Ordering::Release);
                other.0.ring();
            });
            let waker = waker();
            let cx = Context::from_waker(&waker);
            let look = || shared.1.load(Ordering::Acquire).then_some(());
            while poll(&shared.0, &cx, look) == Poll::Pending {
                park();
            }
            ringer.join().unwrap();
        });
    }
}
