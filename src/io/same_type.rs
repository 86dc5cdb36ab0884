//! Whether two types are the same one, asked about types that may borrow.

use std::any::TypeId;
use std::marker::PhantomData;

/// Whether `T` is `U`, lifetimes aside: `&'a str` counts as `&'static str`.
///
/// The answer may choose between two correct ways to do a thing. It justifies no cast from `T` to `U`, because
/// of those lifetimes: see `cast`. In an optimised build it is a constant.
pub(super) fn same_type<T: ?Sized, U: ?Sized + 'static>() -> bool {
    type_id_without_lifetimes::<T>() == TypeId::of::<U>()
}

/// `it` as what it is, if that is a `U`.
///
/// # Safety
///
/// `U` has no lifetime in it: then there is but one type of that name.
#[cfg(feature = "hyper")]
#[inline]
pub(crate) unsafe fn cast<T, U: 'static>(it: &T) -> Option<&U> {
    // SAFETY: a `T` is a `U` but for lifetimes, of which `U` has none.
    same_type::<T, U>().then(|| unsafe { &*std::ptr::from_ref(it).cast() })
}

/// The [`TypeId`] that `T` would have if all its lifetimes were `'static`.
fn type_id_without_lifetimes<T: ?Sized>() -> TypeId {
    /// Has a method that only a `'static` implementor may be asked for, in a vtable that every implementor has.
    trait Named {
        fn name(&self) -> TypeId
        where
            Self: 'static;
    }

    impl<T: ?Sized> Named for PhantomData<T> {
        fn name(&self) -> TypeId
        where
            Self: 'static,
        {
            TypeId::of::<T>()
        }
    }

    let phantom = PhantomData::<T>;
    let named: &dyn Named = &phantom;
    // SAFETY: only the lifetime bound of the trait object changes, which has no representation. The vtable is that of
    // `PhantomData<T>`, and lifetimes are erased before code is generated, so `name` is the one function that
    // `PhantomData<T>` with `'static` lifetimes has as well. That function reads nothing through its receiver
    // (a zero-sized value, which lives until the end of this function) and returns a `TypeId`, which borrows nothing:
    // no reference that pretends to live longer than `T` allows is made, or gets out.
    let named = unsafe { std::mem::transmute::<&dyn Named, &(dyn Named + 'static)>(named) };
    named.name()
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
