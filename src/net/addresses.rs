//! [`ToSocketAddrs`]: names of addresses to connect to or to bind, looked up if necessary.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::{fmt, slice};

use crate::blocking::try_unblock;
use crate::io::explained;
use crate::simulated::sockets;

/// A name of one address, or of several: `"localhost:80"`, `("localhost", 80)`, `([127, 0, 0, 1], 80)`, a
/// `SocketAddr`, a slice of them.
///
/// Only host names are looked up. The trait is sealed: other crates cannot implement it.
///
/// ```
/// use paceline::net::TcpListener;
/// # fn main() -> std::io::Result<()> {
/// # paceline::block_on(async {
/// TcpListener::bind("127.0.0.1:0").await?;
/// TcpListener::bind(("localhost", 0)).await?;
/// TcpListener::bind(([127, 0, 0, 1], 0)).await?;
/// let error = TcpListener::bind("localhost").await.unwrap_err();
/// assert_eq!(error.to_string(), "\"localhost\" has no port: write it as \"localhost:80\"");
/// # Ok(())
/// # })
/// # }
/// ```
pub trait ToSocketAddrs: sealed::Name {}

impl<T: sealed::Name + ?Sized> ToSocketAddrs for T {}

/// Returns the addresses of a name, in the order in which to try them. The list has at least one.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let addresses = paceline::block_on(paceline::net::resolve("localhost:80"))?;
/// assert!(addresses.iter().all(|address| address.ip().is_loopback() && address.port() == 80));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Returns `InvalidInput` if `name` cannot be a name with a port, `NotFound` for a name without an address,
/// and the system's error if a look-up fails. A look-up also fails if no [thread that may
/// block](crate::blocking) can be started, and if the runtime that it belongs to ends, or has ended. The
/// error contains the name.
///
/// # Cancel safety
///
/// Dropping the future leaves a look-up that has begun to end on its own.
pub async fn resolve<A: ToSocketAddrs>(name: A) -> io::Result<Vec<SocketAddr>> {
    Ok(name.target()?.resolved().await?.addresses().into())
}

/// Runs `attempt` on each address of `name` in turn, until one succeeds. If none does, returns an error with
/// the kind of the last failure and the texts of all; `what` names the operation in it. Returns the errors of
/// [`resolve`], too.
pub(super) async fn try_each<A, T, F>(
    name: A,
    what: &'static str,
    mut attempt: impl FnMut(SocketAddr) -> F,
) -> io::Result<T>
where
    A: ToSocketAddrs,
    F: Future<Output = io::Result<T>>,
{
    let target = name.target()?.resolved().await?;
    let mut failures = Vec::new();
    for &address in target.addresses() {
        match attempt(address).await {
            Ok(it) => return Ok(it),
            Err(error) => failures.push((address, error)),
        }
    }
    Err(failed(what, failures))
}

/// Returns the first address of `name`, or the error of the look-up, if one is needed. If `name` is an
/// address, this does not allocate.
pub(super) async fn first<A: ToSocketAddrs>(name: A) -> io::Result<SocketAddr> {
    name.target()?.resolved().await?.addresses().first().copied().ok_or_else(none)
}

fn none() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "an empty list of addresses")
}

/// Returns the error of an operation that failed for each address: it has the kind of the last failure and
/// the texts of all; `InvalidInput` if there is none, because there was no address. `what` is the verb of the
/// message, such as "connect to".
pub(super) fn failed<A: fmt::Display>(what: &str, mut failures: Vec<(A, io::Error)>) -> io::Error {
    let texts: Vec<_> = failures.iter().map(|(address, error)| format!("{address}: {error}")).collect();
    let Some((_, last)) = failures.pop() else { return none() };
    explained(last.kind(), format!("cannot {what} {}", texts.join("; ")), last)
}

/// The meaning of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One address.
    One(SocketAddr),
    /// The addresses of a slice, in its order.
    Several(Vec<SocketAddr>),
    /// A host name and a port, to be looked up.
    Name(String, u16),
}

impl Target {
    /// Looks a host name up, and returns its addresses. Returns anything else as it is.
    async fn resolved(self) -> io::Result<Self> {
        match self {
            Self::Name(name, port) => look_up(name, port).await.map(Self::Several),
            addresses => Ok(addresses),
        }
    }

    /// Returns the addresses. A name has none before it is [looked up](Self::resolved).
    fn addresses(&self) -> &[SocketAddr] {
        match self {
            Self::One(address) => slice::from_ref(address),
            Self::Several(addresses) => addresses,
            Self::Name(..) => &[],
        }
    }
}

/// Looks a host name up, on a thread that may block. Returns `NotFound` if the name has no address; every
/// error contains the name.
async fn look_up(name: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    use std::net::ToSocketAddrs;

    if let Some(found) = sockets::look_up(&name, port) {
        return found;
    }
    let asked = name.clone();
    let found = try_unblock(move || (asked.as_str(), port).to_socket_addrs()).await.and_then(|found| found);
    match found.map(Iterator::collect::<Vec<_>>) {
        Ok(addresses) if addresses.is_empty() => {
            Err(io::Error::new(io::ErrorKind::NotFound, format!("{name:?} has no address")))
        }
        Ok(addresses) => Ok(addresses),
        Err(error) => Err(failed("look up", vec![(format!("{name:?}"), error)])),
    }
}

mod sealed {
    use super::Target;
    use std::io;

    #[diagnostic::on_unimplemented(
        message = "`{Self}` names no socket address",
        note = "these do: \"localhost:80\", (\"localhost\", 80), ([127, 0, 0, 1], 80), a `SocketAddr`, a slice of them"
    )]
    pub trait Name {
        /// Returns the meaning of the name, without a look-up; `InvalidInput` if it cannot be a name with a
        /// port.
        fn target(&self) -> io::Result<Target>;
    }
}

use sealed::Name;

impl Name for SocketAddr {
    fn target(&self) -> io::Result<Target> {
        Ok(Target::One(*self))
    }
}

/// Implements the trait for types that convert into one address.
macro_rules! one {
    ($($from:ty),*) => {
        $(impl Name for $from {
            fn target(&self) -> io::Result<Target> {
                Ok(Target::One((*self).into()))
            }
        })*
    };
}

one!(
    SocketAddrV4,
    SocketAddrV6,
    (IpAddr, u16),
    (Ipv4Addr, u16),
    (Ipv6Addr, u16),
    ([u8; 4], u16),
    ([u16; 8], u16)
);

impl Name for str {
    /// An address is parsed. In any other text, the part behind the last colon has to be a port.
    fn target(&self) -> io::Result<Target> {
        if let Ok(address) = self.parse() {
            return Ok(Target::One(address));
        }
        let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
        let Some((name, port)) = self.rsplit_once(':') else {
            return Err(invalid(format!("{self:?} has no port: write it as \"{self}:80\"")));
        };
        match port.parse() {
            Ok(port) => Ok(Target::Name(name.into(), port)),
            Err(_) => {
                Err(invalid(format!("{port:?} in {self:?} is not a port: a port is a number up to 65535")))
            }
        }
    }
}

impl Name for (&str, u16) {
    /// An address is parsed. Any other text is taken for a host name.
    fn target(&self) -> io::Result<Target> {
        let &(name, port) = self;
        Ok(name.parse().map_or_else(
            |_| Target::Name(name.into(), port),
            |address: IpAddr| Target::One((address, port).into()),
        ))
    }
}

impl Name for (String, u16) {
    fn target(&self) -> io::Result<Target> {
        (self.0.as_str(), self.1).target()
    }
}

impl Name for String {
    fn target(&self) -> io::Result<Target> {
        self.as_str().target()
    }
}

impl Name for [SocketAddr] {
    fn target(&self) -> io::Result<Target> {
        if self.is_empty() { Err(none()) } else { Ok(Target::Several(self.into())) }
    }
}

impl<const N: usize> Name for [SocketAddr; N] {
    fn target(&self) -> io::Result<Target> {
        self.as_slice().target()
    }
}

impl Name for Vec<SocketAddr> {
    fn target(&self) -> io::Result<Target> {
        self.as_slice().target()
    }
}

impl<T: Name + ?Sized> Name for &T {
    fn target(&self) -> io::Result<Target> {
        (**self).target()
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    fn name(name: &str, port: u16) -> Target {
        Target::Name(name.into(), port)
    }

    #[test]
    fn numbers_are_not_looked_up() {
        let one = Target::One(([127, 0, 0, 1], 80).into());
        let v6 = Target::One((Ipv6Addr::LOCALHOST, 80).into());
        for it in ["127.0.0.1:80".target(), ("127.0.0.1", 80).target(), ([127, 0, 0, 1], 80).target()] {
            assert_eq!(it.unwrap(), one);
        }
        for it in ["[::1]:80".target(), ("::1", 80).target(), (String::from("::1"), 80).target()] {
            assert_eq!(it.unwrap(), v6);
        }
    }

    #[test]
    fn the_last_colon_ends_a_name() {
        assert_eq!("localhost:80".target().unwrap(), name("localhost", 80));
        assert_eq!(String::from("a:b:1").target().unwrap(), name("a:b", 1));
        for wrong in ["", "localhost", "localhost:", "localhost:65536", "localhost:http", "localhost:-1"] {
            let error = wrong.target().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(error.to_string().contains(&format!("{wrong:?}")), "{error}");
        }
    }

    #[test]
    fn no_address_is_an_error() {
        assert_eq!([].target().unwrap_err().to_string(), "an empty list of addresses");
    }

    #[test]
    fn each_failure_is_told() {
        let failure =
            |port| (SocketAddr::from(([127, 0, 0, 1], port)), io::ErrorKind::ConnectionRefused.into());
        let error = failed("connect to", vec![failure(1), failure(2)]);
        assert_eq!(
            error.to_string(),
            "cannot connect to 127.0.0.1:1: connection refused; 127.0.0.1:2: connection refused"
        );
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
