//! The conversions of [`Async`](super::Async) and of its wrappers in `os`: the same on all systems, under
//! each system's names.

/// Implements the traits that lend out the descriptor or handle of `T` for `$wrapper<T>`, and the conversions
/// between `$wrapper<T>` and an owned descriptor or handle. `$new` makes the wrapper.
macro_rules! conversions {
    (
        $wrapper:ident, $new:expr;
        $As:ident::$as:ident -> $Borrowed:ident, $AsRaw:ident::$as_raw:ident -> $Raw:ident, $Owned:ident
    ) => {
        impl<T> AsRef<T> for $wrapper<T> {
            fn as_ref(&self) -> &T {
                self.get_ref()
            }
        }

        impl<T: $AsRaw> $AsRaw for $wrapper<T> {
            fn $as_raw(&self) -> $Raw {
                self.get_ref().$as_raw()
            }
        }

        impl<T: $As> $As for $wrapper<T> {
            fn $as(&self) -> $Borrowed<'_> {
                self.get_ref().$as()
            }
        }

        impl<T: $As + From<$Owned>> TryFrom<$Owned> for $wrapper<T> {
            type Error = io::Error;

            fn try_from(handle: $Owned) -> io::Result<Self> {
                $new(handle.into())
            }
        }

        impl<T: Into<$Owned>> TryFrom<$wrapper<T>> for $Owned {
            type Error = io::Error;

            fn try_from(wrapper: $wrapper<T>) -> io::Result<Self> {
                wrapper.into_inner().map(Into::into)
            }
        }
    };
}

pub(super) use conversions;
