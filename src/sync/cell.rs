//! [`ProtocolCell`] of std.

/// A cell whose exclusive access some protocol grants, checked in the models.
#[derive(Debug)]
pub(crate) struct ProtocolCell<T>(std::cell::UnsafeCell<T>);

impl<T> ProtocolCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Calls `f` with the value.
    ///
    /// # Safety
    ///
    /// The caller's protocol grants it exclusive access until `f` returns.
    #[inline]
    pub(crate) unsafe fn with_mut<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: exclusive, as the caller promises.
        f(unsafe { &mut *self.0.get() })
    }
}
