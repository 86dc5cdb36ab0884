//! [`ToSocketAddrs`]: the types that name an address to bind or connect to. `lookup.rs` has the names that
//! need a look-up.

use std::future::{self, Future};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Sealed: types outside of this crate cannot implement it.
pub trait ToSocketAddrs: sealed::Resolve {}

type Known<I> = future::Ready<io::Result<I>>;

/// Addresses without a look-up, as `$addrs` makes them of `$this`.
macro_rules! known {
    ($($type:ty, $iter:ty, |$this:ident| $addrs:expr;)*) => {$(
        impl ToSocketAddrs for $type {}

        impl sealed::Resolve for $type {
            type Iter = $iter;
            type Future = Known<Self::Iter>;

            fn resolve(&self, _: sealed::Internal) -> Self::Future {
                let $this = self;
                future::ready(Ok($addrs.into_iter()))
            }
        }
    )*};
}

type One = std::option::IntoIter<SocketAddr>;

known! {
    SocketAddr, One, |this| Some(*this);
    SocketAddrV4, One, |this| Some(SocketAddr::V4(*this));
    SocketAddrV6, One, |this| Some(SocketAddr::V6(*this));
    (IpAddr, u16), One, |this| Some(SocketAddr::from(*this));
    (Ipv4Addr, u16), One, |this| Some(SocketAddr::from(*this));
    (Ipv6Addr, u16), One, |this| Some(SocketAddr::from(*this));
    &[SocketAddr], std::vec::IntoIter<SocketAddr>, |this| Vec::from(*this);
}

impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {}

impl<T: sealed::Resolve + ?Sized> sealed::Resolve for &T {
    type Iter = T::Iter;
    type Future = T::Future;

    fn resolve(&self, internal: sealed::Internal) -> Self::Future {
        (**self).resolve(internal)
    }
}

pub(super) mod sealed {
    //! Items that other crates can neither name nor implement.

    use super::{Future, SocketAddr, io};

    pub trait Resolve {
        type Iter: Iterator<Item = SocketAddr> + Send + 'static;
        type Future: Future<Output = io::Result<Self::Iter>> + Send + 'static;

        fn resolve(&self, internal: Internal) -> Self::Future;
    }

    #[derive(Debug)]
    pub struct Internal;
}
