//! The atomics of std, and the cell of the door, with counted writes.
//!
//! The atomics do not dereference to those of std, so that no operation escapes the count.

use std::sync::atomic::{self, Ordering};

use super::super::cell;
use super::count_failed;
use super::writes::{WriteKind, count};

/// Operations that pass their arguments on to the atomic of std and return what it returns, with a counted
/// read-modify-write.
macro_rules! modifying {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            #[inline]
            #[track_caller]
            pub(crate) fn $name(&self, $($argument: $type),*) -> $result {
                count(WriteKind::Modify, self);
                self.0.$name($($argument),*)
            }
        )*
    };
}

/// A swap that may fail; failures are counted, too.
macro_rules! exchanging {
    ($name:ident, $value:ty) => {
        #[inline]
        #[track_caller]
        pub(crate) fn $name(
            &self,
            now: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            count(WriteKind::Modify, self);
            self.0.$name(now, new, success, failure).inspect_err(|_| count_failed())
        }
    };
}

/// An atomic of std, with counted writes. `$name` are its operations that change what they read.
macro_rules! counting {
    ($atomic:ident $(<$of:ident>)?, $value:ty, $($name:ident)*) => {
        pub(crate) struct $atomic$(<$of>)?(atomic::$atomic$(<$of>)?);

        // Not each of them is used with each operation.
        #[allow(dead_code)]
        impl$(<$of>)? $atomic$(<$of>)? {
            pub(crate) const fn new(value: $value) -> Self {
                Self(atomic::$atomic::new(value))
            }

            #[inline]
            pub(crate) fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }

            #[inline]
            #[track_caller]
            pub(crate) fn store(&self, value: $value, order: Ordering) {
                count(WriteKind::Store, self);
                self.0.store(value, order);
            }

            pub(crate) fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            modifying! {
                swap(value: $value, order: Ordering) -> $value;
                $($name(value: $value, order: Ordering) -> $value;)*
            }
            #[inline]
            #[track_caller]
            pub(crate) fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                update: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                count(WriteKind::Modify, self);
                self.0.fetch_update(success, failure, update)
            }

            exchanging!(compare_exchange, $value);
            exchanging!(compare_exchange_weak, $value);
        }

        impl$(<$of>)? std::fmt::Debug for $atomic$(<$of>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counting!(AtomicBool, bool, fetch_or fetch_and);
counting!(AtomicU8, u8, fetch_add fetch_sub fetch_or fetch_and);
counting!(AtomicU32, u32, fetch_add fetch_sub fetch_or fetch_and);
counting!(AtomicU64, u64, fetch_add fetch_sub fetch_or fetch_and);
counting!(AtomicUsize, usize, fetch_add fetch_sub fetch_or fetch_and);
counting!(AtomicPtr<T>, *mut T,);

impl Default for AtomicBool {
    fn default() -> Self {
        Self::new(false)
    }
}

impl Default for AtomicU64 {
    fn default() -> Self {
        Self::new(0)
    }
}

/// The cell of the door. Each access counts as a write.
#[derive(Debug)]
pub(crate) struct ProtocolCell<T>(cell::ProtocolCell<T>);

impl<T> ProtocolCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(cell::ProtocolCell::new(value))
    }

    /// Calls `f` with the value.
    ///
    /// # Safety
    ///
    /// The caller's protocol grants it exclusive access until `f` returns.
    #[inline]
    #[track_caller]
    pub(crate) unsafe fn with_mut<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        count(WriteKind::Store, self);
        // SAFETY: exclusive, as the caller promises.
        unsafe { self.0.with_mut(f) }
    }
}
