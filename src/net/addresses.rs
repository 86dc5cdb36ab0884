//! [`ToSocketAddrs`]: what can be connected to, or bound; looked up where that takes time.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::{fmt, slice};

use crate::blocking::unblock;

/// What names one address, or several: `"localhost:80"`, `("localhost", 80)`, `([127, 0, 0, 1], 80)`, a `SocketAddr`, a slice of them.
///
/// Only what is a name is looked up. It is implemented here and nowhere else.
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

/// The addresses of a name, in the order in which they are to be tried; at least one.
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
/// `InvalidInput` for what cannot be a name with a port, `NotFound` for one that has no address, and the system's if a look-up fails;
/// they say for which name.
///
/// # Cancel safety
///
/// Dropping the future leaves a look-up that has begun to end on its own.
pub async fn resolve<A: ToSocketAddrs>(name: A) -> io::Result<Vec<SocketAddr>> {
    let target = name.target()?;
    Ok(target.addresses().await?.into_vec())
}

/// Tries each address of `name`, until one does.
pub(super) async fn try_each<A, T, F>(
    name: A,
    what: &'static str,
    mut attempt: impl FnMut(SocketAddr) -> F,
) -> io::Result<T>
where
    A: ToSocketAddrs,
    F: Future<Output = io::Result<T>>,
{
    let addresses = name.target()?.addresses().await?;
    let mut failures = Vec::new();
    for &address in addresses.as_slice() {
        match attempt(address).await {
            Ok(it) => return Ok(it),
            Err(error) => failures.push((address, error)),
        }
    }
    Err(Failed::error(what, failures))
}

/// The first address of `name`, without an allocation if it is one already.
pub(super) async fn first<A: ToSocketAddrs>(name: A) -> io::Result<SocketAddr> {
    let addresses = name.target()?.addresses().await?;
    addresses.as_slice().first().copied().ok_or_else(none)
}

fn none() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "an empty list of addresses")
}

/// What could not be done, with one address after the other.
pub(super) struct Failed<A> {
    what: &'static str,
    failures: Vec<(A, io::Error)>,
}

impl<A: fmt::Display + fmt::Debug + Send + Sync + 'static> Failed<A> {
    /// The kind of the last one.
    pub(super) fn error(what: &'static str, failures: Vec<(A, io::Error)>) -> io::Error {
        match failures.last() {
            Some((_, last)) => io::Error::new(last.kind(), Self { what, failures }),
            None => none(),
        }
    }
}

/// The same words: `main` prints its error so.
impl<A: fmt::Display> fmt::Debug for Failed<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<A: fmt::Display> fmt::Display for Failed<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}", self.what)?;
        for (number, (address, error)) in self.failures.iter().enumerate() {
            write!(f, "{} {address}: {error}", if number == 0 { "" } else { ";" })?;
        }
        Ok(())
    }
}

impl<A: fmt::Display + fmt::Debug> Error for Failed<A> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.failures.last().map(|(_, error)| error as _)
    }
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    One(SocketAddr),
    Several(Vec<SocketAddr>),
    /// To be looked up.
    Name(String, u16),
}

/// At least one, unless somebody gave an empty slice.
enum Addresses {
    One(SocketAddr),
    Several(Vec<SocketAddr>),
}

impl Addresses {
    fn as_slice(&self) -> &[SocketAddr] {
        match self {
            Self::One(address) => slice::from_ref(address),
            Self::Several(addresses) => addresses,
        }
    }

    fn into_vec(self) -> Vec<SocketAddr> {
        match self {
            Self::One(address) => vec![address],
            Self::Several(addresses) => addresses,
        }
    }
}

impl Target {
    async fn addresses(self) -> io::Result<Addresses> {
        match self {
            Self::One(address) => Ok(Addresses::One(address)),
            Self::Several(addresses) => Ok(Addresses::Several(addresses)),
            Self::Name(name, port) => look_up(name, port).await.map(Addresses::Several),
        }
    }
}

async fn look_up(name: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    use std::net::ToSocketAddrs;

    let asked = name.clone();
    let found = unblock(move || (asked.as_str(), port).to_socket_addrs()).await;
    match found.map(Iterator::collect::<Vec<_>>) {
        Ok(addresses) if addresses.is_empty() => {
            Err(io::Error::new(io::ErrorKind::NotFound, format!("{name:?} has no address")))
        }
        Ok(addresses) => Ok(addresses),
        Err(error) => Err(Failed::error("look up", vec![(format!("{name:?}"), error)])),
    }
}

mod sealed {
    use super::Target;
    use std::io;

    #[diagnostic::on_unimplemented(
        message = "`{Self}` names no socket address",
        note = "what does: \"localhost:80\", (\"localhost\", 80), ([127, 0, 0, 1], 80), a `SocketAddr`, a slice of them"
    )]
    pub trait Name {
        fn target(&self) -> io::Result<Target>;
    }
}

use sealed::Name;

impl Name for SocketAddr {
    fn target(&self) -> io::Result<Target> {
        Ok(Target::One(*self))
    }
}

/// Has `$from` be one address, as the standard library converts it.
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
            Err(_) => Err(invalid(format!("{port:?} in {self:?} is no port: one is a number up to 65535"))),
        }
    }
}

impl Name for (&str, u16) {
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
        let error = Failed::error("connect to", vec![failure(1), failure(2)]);
        assert_eq!(
            error.to_string(),
            "cannot connect to 127.0.0.1:1: connection refused; 127.0.0.1:2: connection refused"
        );
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
