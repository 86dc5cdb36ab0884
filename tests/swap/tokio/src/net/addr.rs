//! [`ToSocketAddrs`]: what names a place to bind or connect to. What has to be looked up is, on a thread that may block.

use std::future::{self, Future};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Nobody else can implement it.
pub trait ToSocketAddrs: sealed::Resolve {}

/// The addresses of a host.
pub async fn lookup_host<T: ToSocketAddrs>(host: T) -> io::Result<impl Iterator<Item = SocketAddr>> {
    resolve(host).await
}

pub(super) fn resolve<T: ToSocketAddrs>(addr: T) -> T::Future {
    addr.resolve(sealed::Internal)
}

/// What `f` makes of the first address of which it makes something.
pub(super) async fn first<A, F, R>(addr: A, mut f: impl FnMut(SocketAddr) -> F) -> io::Result<R>
where
    A: ToSocketAddrs,
    F: Future<Output = io::Result<R>>,
{
    let mut last = None;
    for addr in resolve(addr).await? {
        match f(addr).await {
            Err(error) => last = Some(error),
            done => return done,
        }
    }
    Err(last
        .unwrap_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "could not resolve to any address")))
}

type Known<I> = future::Ready<io::Result<I>>;

/// Addresses that are there already, as `$addrs` makes them of `$this`.
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

/// Addresses that `$parse` finds in `$this`, or else are looked up by `$owned`.
macro_rules! looked_up {
    ($($type:ty, |$this:ident| $parse:expr, $owned:expr;)*) => {$(
        impl ToSocketAddrs for $type {}

        impl sealed::Resolve for $type {
            type Iter = sealed::OneOrMore;
            type Future = sealed::Lookup;

            fn resolve(&self, _: sealed::Internal) -> Self::Future {
                let $this = self;
                match $parse {
                    Some(addr) => sealed::Lookup::known(addr),
                    None => {
                        let owned = $owned;
                        sealed::Lookup::begin(move || std::net::ToSocketAddrs::to_socket_addrs(&owned))
                    }
                }
            }
        }
    )*};
}

fn parse_ip(host: &str, port: u16) -> Option<SocketAddr> {
    Some(SocketAddr::new(host.parse().ok()?, port))
}

looked_up! {
    str, |this| this.parse().ok(), this.to_owned();
    String, |this| this.parse().ok(), this.clone();
    (&str, u16), |this| parse_ip(this.0, this.1), (this.0.to_owned(), this.1);
    (String, u16), |this| parse_ip(&this.0, this.1), this.clone();
}

impl<T: ToSocketAddrs + ?Sized> ToSocketAddrs for &T {}

impl<T: sealed::Resolve + ?Sized> sealed::Resolve for &T {
    type Iter = T::Iter;
    type Future = T::Future;

    fn resolve(&self, internal: sealed::Internal) -> Self::Future {
        (**self).resolve(internal)
    }
}

mod sealed {
    //! What others can neither name nor implement.

    use std::future::Future;
    use std::net::SocketAddr;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};
    use std::{io, option, vec};

    use crate::context;
    use crate::task::JoinHandle;

    pub trait Resolve {
        type Iter: Iterator<Item = SocketAddr> + Send + 'static;
        type Future: Future<Output = io::Result<Self::Iter>> + Send + 'static;

        fn resolve(&self, internal: Internal) -> Self::Future;
    }

    #[derive(Debug)]
    pub struct Internal;

    #[derive(Debug)]
    pub struct Lookup(State);

    type Found = io::Result<vec::IntoIter<SocketAddr>>;

    #[derive(Debug)]
    enum State {
        Known(SocketAddr),
        Asked(JoinHandle<Found>),
    }

    impl Lookup {
        pub(super) fn known(addr: SocketAddr) -> Self {
            Self(State::Known(addr))
        }

        #[track_caller]
        pub(super) fn begin(ask: impl FnOnce() -> Found + Send + 'static) -> Self {
            Self(State::Asked(context::expect().spawn_blocking(ask)))
        }
    }

    impl Future for Lookup {
        type Output = io::Result<OneOrMore>;

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
            Poll::Ready(match &mut self.0 {
                State::Known(addr) => Ok(OneOrMore::One(Some(*addr).into_iter())),
                State::Asked(answer) => ready!(Pin::new(answer).poll(cx))?.map(OneOrMore::More),
            })
        }
    }

    #[derive(Debug)]
    pub enum OneOrMore {
        One(option::IntoIter<SocketAddr>),
        More(vec::IntoIter<SocketAddr>),
    }

    impl Iterator for OneOrMore {
        type Item = SocketAddr;

        fn next(&mut self) -> Option<SocketAddr> {
            match self {
                Self::One(addrs) => addrs.next(),
                Self::More(addrs) => addrs.next(),
            }
        }

        fn size_hint(&self) -> (usize, Option<usize>) {
            match self {
                Self::One(addrs) => addrs.size_hint(),
                Self::More(addrs) => addrs.size_hint(),
            }
        }
    }
}
