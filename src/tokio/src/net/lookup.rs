//! Name look-ups, on a blocking thread.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::{io, option, vec};

use super::addr::{ToSocketAddrs, sealed};
use crate::context;
use crate::task::JoinHandle;

/// Returns the addresses of a host.
pub async fn lookup_host<T: ToSocketAddrs>(host: T) -> io::Result<impl Iterator<Item = SocketAddr>> {
    resolve(host).await
}

pub(super) fn resolve<T: ToSocketAddrs>(addr: T) -> T::Future {
    addr.resolve(sealed::Internal)
}

/// Calls `f` for each address until it succeeds.
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

/// Addresses that `$parse` finds in `$this`, or that are looked up by `$owned`.
macro_rules! looked_up {
    ($($type:ty, |$this:ident| $parse:expr, $owned:expr;)*) => {$(
        impl ToSocketAddrs for $type {}

        impl sealed::Resolve for $type {
            type Iter = OneOrMore;
            type Future = Lookup;

            fn resolve(&self, _: sealed::Internal) -> Self::Future {
                let $this = self;
                match $parse {
                    Some(addr) => Lookup::known(addr),
                    None => {
                        let owned = $owned;
                        if let Some(found) = look_up_simulated(&owned) {
                            return Lookup(State::Found(Some(found)));
                        }
                        Lookup::begin(move || std::net::ToSocketAddrs::to_socket_addrs(&owned))
                    }
                }
            }
        }
    )*};
}

fn parse_ip(host: &str, port: u16) -> Option<SocketAddr> {
    Some(SocketAddr::new(host.parse().ok()?, port))
}

/// A host name and a port.
trait HostAndPort {
    fn host_and_port(&self) -> Option<(&str, u16)>;
}

impl HostAndPort for String {
    fn host_and_port(&self) -> Option<(&str, u16)> {
        let (host, port) = self.rsplit_once(':')?;
        Some((host, port.parse().ok()?))
    }
}

impl HostAndPort for (String, u16) {
    fn host_and_port(&self) -> Option<(&str, u16)> {
        Some((&self.0, self.1))
    }
}

/// Looks a host up in the network of a simulation, if the calling thread is in one.
fn look_up_simulated(name: &impl HostAndPort) -> Option<Found> {
    let (host, port) = name.host_and_port()?;
    paceline::simulated_sockets::look_up(host, port).map(|found| found.map(Vec::into_iter))
}

looked_up! {
    str, |this| this.parse().ok(), this.to_owned();
    String, |this| this.parse().ok(), this.clone();
    (&str, u16), |this| parse_ip(this.0, this.1), (this.0.to_owned(), this.1);
    (String, u16), |this| parse_ip(&this.0, this.1), this.clone();
}

#[derive(Debug)]
pub struct Lookup(State);

type Found = io::Result<vec::IntoIter<SocketAddr>>;

#[derive(Debug)]
enum State {
    Known(SocketAddr),
    /// The answer of the network of a simulation.
    Found(Option<Found>),
    Asked(JoinHandle<Found>),
}

impl Lookup {
    fn known(addr: SocketAddr) -> Self {
        Self(State::Known(addr))
    }

    #[track_caller]
    fn begin(ask: impl FnOnce() -> Found + Send + 'static) -> Self {
        Self(State::Asked(context::expect().spawn_blocking(ask)))
    }
}

impl Future for Lookup {
    type Output = io::Result<OneOrMore>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match &mut self.0 {
            State::Known(addr) => Ok(OneOrMore::One(Some(*addr).into_iter())),
            State::Found(found) => found.take().expect("it is polled once").map(OneOrMore::More),
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
