//! [`Bell`]: wakes one side of a pipe when the other side has changed something.
//!
//! The waiting side stores its waker, announces that it waits, passes a fence, and looks again. The ringing
//! side makes its change, passes a fence, and reads whether the other side waits. The fences are sequentially
//! consistent, so one of them is first: either the waiting side sees the change, or the ringing side sees the
//! announcement. So no wake is lost.

use std::task::Waker;

use crate::budget;
use crate::sync::{self, AtomicBool, Mutex, Ordering};
use crate::waking;

/// A bell for one waiting side and one ringing side.
#[derive(Debug)]
pub(super) struct Bell {
    /// Whether the waiting side waits for a ring.
    waits: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Bell {
    pub(super) fn new() -> Self {
        Self { waits: AtomicBool::new(false), waker: Mutex::new(None) }
    }

    /// Announces that the caller waits: the next ring wakes it. The caller has to look once more at what it
    /// waits for.
    pub(super) fn listen(&self, waker: &Waker) {
        let waker = waker.clone();
        let old = sync::lock(&self.waker).replace(waker);
        waking::discard(old);
        self.waits.store(true, Ordering::Relaxed);
        // ORDER: pairs with the fence in `ring`. Either the caller's next look sees the change, or `ring`
        // sees `waits`.
        sync::full_fence();
    }

    /// Wakes the other side if it waits. The change has to be made before this.
    #[inline]
    pub(super) fn ring(&self) {
        // ORDER: pairs with the fence in `listen`, as explained there.
        sync::full_fence();
        // ORDER: Relaxed and AcqRel suffice: the waker itself is behind a lock.
        if self.waits.load(Ordering::Relaxed) && self.waits.swap(false, Ordering::AcqRel) {
            let waker = sync::lock(&self.waker).take();
            if let Some(waker) = waker {
                waking::wake(waker);
            }
        }
    }
}

/// Returns what `look` finds; waits for `bell` if it finds nothing. Calls `look` again once the bell has the
/// waker, so that no ring is missed.
#[inline]
pub(super) fn poll<T>(
    bell: &Bell,
    cx: &std::task::Context<'_>,
    mut look: impl FnMut() -> Option<T>,
) -> std::task::Poll<T> {
    use std::task::Poll;
    budget::spend(cx.waker(), || {
        if let Some(found) = look() {
            return Poll::Ready(found);
        }
        bell.listen(cx.waker());
        look().map_or(Poll::Pending, Poll::Ready)
    })
}

#[cfg(all(test, paceline_loom))]
mod models {
    use std::task::{Context, Poll};

    use super::*;
    use crate::sync::Arc;
    use crate::sync::models::{model, waker};
    use crate::sync::thread::park;

    #[test]
    fn a_side_that_waits_sees_the_change_or_is_woken() {
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
