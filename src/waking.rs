//! Calling foreign code from threads that have no part in it: wakers, hooks, destructors.
//!
//! The calling thread leads, or drops something, or polls another task, so a panic of that code ends here.
//! The panic hook has already reported the panic, and no caller further up could do more about it.
//!
//! The payload of such a panic is dropped here as well, because its destructor is foreign code and may panic,
//! too. So no other place drops the result of a `catch_unwind`: it calls [`call`] or [`catch`], or passes the
//! payload to [`discard_payload`].

use std::any::Any;
use std::future::Future;
use std::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Wakes a task. A panic of the waker ends here.
#[inline]
pub(crate) fn wake(waker: Waker) {
    call(|| waker.wake());
}

/// Wakes a task and keeps the waker. A panic of the waker ends here.
#[inline]
pub(crate) fn wake_by_ref(waker: &Waker) {
    call(|| waker.wake_by_ref());
}

/// Calls foreign code. A panic in it ends here.
#[inline]
pub(crate) fn call(code: impl FnOnce()) {
    let _: Option<()> = catch(code);
}

/// Calls code that may reach foreign code, and returns its result; `None` if it panicked.
#[inline]
pub(crate) fn catch<R>(code: impl FnOnce() -> R) -> Option<R> {
    // Unwind safe: the interrupted code is foreign, or keeps its state in guards.
    catch_unwind(AssertUnwindSafe(code)).map_err(discard_payload).ok()
}

/// Drops a waker that is not needed any more, if there is one. A panic of its destructor ends here.
#[inline]
pub(crate) fn discard(waker: Option<Waker>) {
    if let Some(waker) = waker {
        call(|| drop(waker));
    }
}

/// A future of a task that `async-task` may drop. A panic of the future's destructor ends here; otherwise
/// `async-task` would abort the process.
pub(crate) struct Contained<F>(ManuallyDrop<F>);

impl<F> Contained<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(ManuallyDrop::new(future))
    }
}

impl<F: Future> Future for Contained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is pinned with this value, and never moved out of it.
        unsafe { self.map_unchecked_mut(|this| &mut *this.0) }.poll(cx)
    }
}

impl<F> Drop for Contained<F> {
    fn drop(&mut self) {
        // SAFETY: the future is not used again.
        call(|| unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}

/// Drops the payload of a panic. The destructor of the payload is foreign code. If it panics, its own payload
/// is dropped too if it is a message; any other payload is leaked, because its destructor might panic again.
#[cold]
pub(crate) fn discard_payload(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        if !another.is::<&'static str>() && !another.is::<String>() {
            mem::forget(another);
        }
    }
}

#[cfg(all(test, not(paceline_shuttle)))]
pub(crate) use counter::WakeCounter;

#[cfg(all(test, not(paceline_shuttle)))]
mod counter {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::{Wake, Waker};

    /// Counts how often it is woken.
    #[derive(Debug, Default)]
    pub(crate) struct WakeCounter(AtomicUsize);

    impl WakeCounter {
        /// Returns a counter, and a waker that counts there.
        pub(crate) fn new() -> (Arc<Self>, Waker) {
            let counter = Arc::<Self>::default();
            (counter.clone(), counter.into())
        }

        pub(crate) fn times(&self) -> usize {
            self.0.load(Relaxed)
        }
    }

    impl Wake for WakeCounter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
}
