//! Atomics and locks that charge their operations in a simulation. In other runs they are those of shuttle.

use std::fmt;
use std::sync::LockResult;

use shuttle::sync::{MutexGuard, atomic};

use super::cores::{Line, charge};
use atomic::Ordering;

/// Methods that are one operation on the atomic inside.
macro_rules! operations {
    ($($charge:ident: $method:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        #[track_caller]
        pub(crate) fn $method(&self, $($argument: $type),*) -> $result {
            let result = self.0.$method($($argument),*);
            self.1.$charge();
            result
        }
    )*};
}

/// An atomic, and its line.
macro_rules! charged {
    ($name:ident $(<$of:ident>)?, $value:ty $(, $integer:ident)?) => {
        pub(crate) struct $name$(<$of>)?(atomic::$name$(<$of>)?, Line);

        impl$(<$of>)? $name$(<$of>)? {
            #[track_caller]
            pub(crate) const fn new(value: $value) -> Self {
                Self(atomic::$name::new(value), Line::new())
            }

            pub(crate) fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            operations! {
                read: load(order: Ordering) -> $value;
                write: store(value: $value, order: Ordering) -> ();
                lock: swap(value: $value, order: Ordering) -> $value;
                lock: compare_exchange(now: $value, new: $value, success: Ordering, failure: Ordering)
                    -> Result<$value, $value>;
                lock: compare_exchange_weak(now: $value, new: $value, success: Ordering, failure: Ordering)
                    -> Result<$value, $value>;
            }

            /// A loop of a load and an exchange.
            pub(crate) fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let result = self.0.fetch_update(set, fetch, change);
                self.1.lock();
                result
            }

            $(charged!(@$integer $value);)?
        }

        impl$(<$of>)? fmt::Debug for $name$(<$of>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
    (@bits $value:ty) => {
        operations! {
            lock: fetch_and(value: $value, order: Ordering) -> $value;
            lock: fetch_or(value: $value, order: Ordering) -> $value;
        }
    };
    (@integer $value:ty) => {
        charged!(@bits $value);
        operations! {
            lock: fetch_add(value: $value, order: Ordering) -> $value;
            lock: fetch_sub(value: $value, order: Ordering) -> $value;
            lock: fetch_max(value: $value, order: Ordering) -> $value;
        }
    };
}

charged!(AtomicBool, bool, bits);
charged!(AtomicU8, u8, integer);
charged!(AtomicU32, u32, integer);
charged!(AtomicU64, u64, integer);
charged!(AtomicUsize, usize, integer);
charged!(AtomicPtr<T>, *mut T);

impl Default for AtomicBool {
    fn default() -> Self {
        Self::new(false)
    }
}

/// A lock, and its line. A thread that waits for it takes it at the moment of its release: it never falls
/// asleep.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>, Line);

impl<T> Mutex<T> {
    #[track_caller]
    pub(crate) const fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value), Line::new())
    }

    /// Charges the unlock, too.
    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let guard = self.0.lock();
        self.1.lock();
        charge(|costs| costs.locked);
        guard
    }

    pub(crate) fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }

    pub(crate) fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}
