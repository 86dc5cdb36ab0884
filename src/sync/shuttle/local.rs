//! Thread locals of shuttle's threads, with the methods of `std`'s that those of shuttle lack.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use shuttle::thread::AccessError;

/// Like `std::thread::LocalKey`.
#[derive(Debug)]
pub(crate) struct LocalKey<T: 'static>(shuttle::thread::LocalKey<T>);

macro_rules! local {
    ($($(#[$meta:meta])* static $name:ident: $type:ty = $value:expr;)*) => {$(
        $(#[$meta])*
        static $name: $crate::sync::LocalKey<$type> = $crate::sync::LocalKey::new(|| $value);
    )*};
}
pub(crate) use local;

impl<T> LocalKey<T> {
    pub(crate) const fn new(init: fn() -> T) -> Self {
        // As `shuttle::thread_local` makes it. Its address is the key, so it has to be the static itself.
        Self(shuttle::thread::LocalKey { init, _p: PhantomData })
    }

    pub(crate) fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.0.with(f)
    }

    pub(crate) fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        self.0.try_with(f)
    }
}

impl<T> LocalKey<Cell<T>> {
    pub(crate) fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.with(Cell::get)
    }

    pub(crate) fn set(&'static self, value: T) {
        self.with(|cell| cell.set(value));
    }

    pub(crate) fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T> LocalKey<RefCell<T>> {
    pub(crate) fn with_borrow<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.with(|cell| f(&cell.borrow()))
    }

    pub(crate) fn with_borrow_mut<R>(&'static self, f: impl FnOnce(&mut T) -> R) -> R {
        self.with(|cell| f(&mut cell.borrow_mut()))
    }
}
