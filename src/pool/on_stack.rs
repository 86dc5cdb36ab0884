//! [`OnStack`]: the future of a `block_on`, pinned in the caller's stack frame.

use std::future::Future;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future that lies in the stack frame of a public function: made by [`on_stack`], which pins it there. The
/// functions below move a pointer, where a debug build would copy the future into each of their frames.
/// Dropping this drops the future, so that its destructors run inside the `block_on` that drove it.
pub(crate) struct OnStack<'a, F>(&'a mut MaybeUninit<F>);

impl<'a, F> OnStack<'a, F> {
    /// # Safety
    ///
    /// There is a future in `slot`, and nothing but the new value uses the slot from now on.
    #[inline]
    pub(crate) unsafe fn new(slot: &'a mut MaybeUninit<F>) -> Self {
        Self(slot)
    }
}

/// Moves the future `$future` into a slot of the calling function, and makes `$future` the [`OnStack`] of
/// that slot.
macro_rules! on_stack {
    ($future:ident) => {
        let mut slot = ::std::mem::MaybeUninit::uninit();
        // Not by `MaybeUninit::write`, nor in a `ManuallyDrop`: these copy the future on the way, in a debug
        // build.
        // SAFETY: the slot has room for the future; after that only the `OnStack` can name it.
        let $future = unsafe {
            ::std::ptr::write(slot.as_mut_ptr(), $future);
            $crate::pool::on_stack::OnStack::new(&mut slot)
        };
    };
}
pub(crate) use on_stack;

impl<F: Future> Future for OnStack<'_, F> {
    type Output = F::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: `new` promises that there is a future in the slot. The future stays there until the drop
        // of `self` drops it: no code forgets a value of this type.
        let future: Pin<&mut F> = unsafe { Pin::new_unchecked(self.0.assume_init_mut()) };
        future.poll(cx)
    }
}

impl<F> Drop for OnStack<'_, F> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `new` promises that there is a future in the slot, and nothing uses it after this.
        unsafe { self.0.assume_init_drop() };
    }
}
