//! Whether two types are the same, for types that may borrow.

use std::any::TypeId;
use std::marker::PhantomData;

/// Returns whether `T` is `U` apart from lifetimes: `&'a str` counts as `&'static str`.
///
/// The answer may choose between two correct implementations. Because lifetimes are ignored, it does not
/// justify a cast from `T` to `U`, unless `U` has none: see `cast`. In an optimised build the answer is a
/// constant.
pub(super) fn same_type<T: ?Sized, U: ?Sized + 'static>() -> bool {
    type_id_without_lifetimes::<T>() == TypeId::of::<U>()
}

/// Returns the value as a `U`, if it is one.
///
/// # Safety
///
/// `U` contains no lifetime: then only one type has that name.
#[cfg(feature = "hyper")]
#[inline]
pub(crate) unsafe fn cast<T, U: 'static>(it: &T) -> Option<&U> {
    // SAFETY: `T` is `U` apart from lifetimes (`same_type`), and the caller promises that `U` has none.
    same_type::<T, U>().then(|| unsafe { &*std::ptr::from_ref(it).cast() })
}

/// The [`TypeId`] that `T` would have if all its lifetimes were `'static`.
fn type_id_without_lifetimes<T: ?Sized>() -> TypeId {
    /// Its method requires a `'static` implementor, but is in the vtable of every implementor.
    trait Identity {
        fn id(&self) -> TypeId
        where
            Self: 'static;
    }

    impl<T: ?Sized> Identity for PhantomData<T> {
        fn id(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }

    let phantom = PhantomData::<T>;
    let identity: &dyn Identity = &phantom;
    // SAFETY: only the lifetime bound of the trait object changes, which has no representation. The vtable is
    // that of `PhantomData<T>`. Lifetimes are erased before code is generated, so its `id` is the same
    // function that `PhantomData<T>` with `'static` lifetimes has. The function reads nothing through its
    // receiver (a zero-sized value, which lives until the end of this function) and returns a `TypeId`, which
    // borrows nothing: no reference with a longer lifetime than `T` allows is made or returned.
    let identity = unsafe { std::mem::transmute::<&dyn Identity, &(dyn Identity + 'static)>(identity) };
    identity.id()
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::same_type;
    use std::io::BufReader;
    use std::net::{TcpListener, TcpStream};

    struct Borrows<'a>(#[allow(dead_code)] &'a str);

    fn ask_of_a_short_lifetime(text: &str) -> bool {
        fn ask<'a>(_: &'a str) -> bool {
            same_type::<Borrows<'a>, Borrows<'static>>() && !same_type::<Borrows<'a>, TcpStream>()
        }
        ask(text)
    }

    #[test]
    fn a_type_is_itself_and_no_wrapper_of_itself() {
        assert!(same_type::<TcpStream, TcpStream>());
        assert!(!same_type::<TcpListener, TcpStream>());
        assert!(!same_type::<&TcpStream, TcpStream>());
        assert!(!same_type::<&mut TcpStream, TcpStream>());
        assert!(!same_type::<Box<TcpStream>, TcpStream>());
        assert!(!same_type::<BufReader<TcpStream>, TcpStream>());
        assert!(!same_type::<dyn Send, TcpStream>());
    }

    #[test]
    fn a_type_that_borrows_may_be_asked_about() {
        assert!(ask_of_a_short_lifetime(&String::from("on the heap")));
    }
}
