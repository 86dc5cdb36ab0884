//! `SocketCalls`: the network of a simulation, as the calls for sockets see it.
//!
//! Each simulated socket is identified by a placeholder descriptor: that of a new socket of the operating
//! system, which is never bound or connected. So the types of the standard library own it, and keep the
//! options that are set on it.
//!
//! The functions here are the calls for sockets. If this thread is not in a simulation, or if the descriptor
//! is no placeholder, they call `real`, which makes the system call; those without `real` return `None`.

#![cfg_attr(not(feature = "sim"), allow(dead_code, reason = "no simulation calls it"))]

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::time::Duration;

use socket2::{SockRef, Type};

use super::{is_running, on_socket, with_sockets};

#[cfg(unix)]
pub use std::os::fd::{
    AsFd as AsDescriptor, BorrowedFd as BorrowedDescriptor, OwnedFd as OwnedDescriptor,
    RawFd as RawDescriptor,
};
#[cfg(windows)]
pub use std::os::windows::io::{
    AsSocket as AsDescriptor, BorrowedSocket as BorrowedDescriptor, OwnedSocket as OwnedDescriptor,
    RawSocket as RawDescriptor,
};

/// A handle whose descriptor may be the placeholder of a simulated socket.
pub trait MaybeSimulated {
    /// Returns the number of its descriptor.
    fn raw(&self) -> RawDescriptor;
}

impl<T: AsDescriptor> MaybeSimulated for T {
    #[cfg(unix)]
    fn raw(&self) -> RawDescriptor {
        std::os::fd::AsRawFd::as_raw_fd(&self.as_fd())
    }

    #[cfg(windows)]
    fn raw(&self) -> RawDescriptor {
        std::os::windows::io::AsRawSocket::as_raw_socket(&self.as_socket())
    }
}

/// The number of a simulated socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SocketNumber(pub(crate) u64);

/// What is known of a socket, in the terms of epoll.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an event of its own")]
pub(crate) struct SocketEvents {
    /// A read does not block.
    pub(crate) readable: bool,
    /// A write does not block.
    pub(crate) writable: bool,
    /// No further bytes arrive.
    pub(crate) read_hangup: bool,
    /// Both directions are closed, or there is no connection.
    pub(crate) hangup: bool,
    /// There is an error to collect.
    pub(crate) error: bool,
}

/// The kind of a socket: a stream or a datagram socket of one of three families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketType {
    /// Whether the socket is a stream, or is to listen for streams.
    pub is_stream: bool,
    /// The family of its addresses.
    pub family: AddressFamily,
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
    /// Paths.
    Unix,
}

/// The address of a socket: an IP address, or the path of a Unix socket, which is empty if it has none. An
/// abstract name begins with a zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IP address with a port.
    Ip(SocketAddr),
    /// A path.
    Path(Vec<u8>),
}

impl Address {
    fn family(&self) -> AddressFamily {
        match self {
            Self::Ip(SocketAddr::V4(_)) => AddressFamily::V4,
            Self::Ip(SocketAddr::V6(_)) => AddressFamily::V6,
            Self::Path(_) => AddressFamily::Unix,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

impl TryFrom<Address> for SocketAddr {
    type Error = io::Error;

    fn try_from(address: Address) -> io::Result<Self> {
        match address {
            Address::Ip(address) => Ok(address),
            Address::Path(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

#[cfg(unix)]
mod paths {
    use std::ffi::OsStr;
    use std::io;
    #[cfg(target_os = "android")]
    use std::os::android::net::SocketAddrExt;
    #[cfg(target_os = "linux")]
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::SocketAddr;
    use std::path::Path;

    use super::Address;

    impl From<&Path> for Address {
        fn from(path: &Path) -> Self {
            Self::Path(path.as_os_str().as_bytes().to_vec())
        }
    }

    impl From<&SocketAddr> for Address {
        fn from(address: &SocketAddr) -> Self {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            if let Some(name) = address.as_abstract_name() {
                return Self::Path([b"\0", name].concat());
            }
            Self::from(address.as_pathname().unwrap_or(Path::new("")))
        }
    }

    impl TryFrom<Address> for SocketAddr {
        type Error = io::Error;

        fn try_from(address: Address) -> io::Result<Self> {
            let Address::Path(path) = address else { return Err(io::ErrorKind::InvalidInput.into()) };
            #[cfg(any(target_os = "linux", target_os = "android"))]
            if let Some(name) = path.strip_prefix(b"\0") {
                return Self::from_abstract_name(name);
            }
            Self::from_pathname(OsStr::from_bytes(&path))
        }
    }
}

/// What a call receives: how many bytes, and from whom, if it is a datagram.
pub(crate) type Received = (usize, Option<Address>);

/// The network of a simulation. The calls have the results and the errors of Linux, as for non-blocking
/// sockets.
pub(crate) trait SocketCalls {
    /// Makes a socket of the host on which the present task runs. Returns its placeholder.
    fn socket(&self, kind: SocketType) -> io::Result<OwnedDescriptor>;
    /// Makes two Unix sockets that are connected with each other.
    fn pair(&self, is_stream: bool) -> io::Result<[OwnedDescriptor; 2]>;
    /// Makes a socket of the host on which the present task runs, with this descriptor as its placeholder.
    /// Does nothing if the descriptor is a placeholder already.
    fn adopt(&self, descriptor: RawDescriptor, family: AddressFamily) -> io::Result<()>;
    /// Returns the socket whose placeholder the descriptor is.
    fn find(&self, descriptor: RawDescriptor) -> Option<SocketNumber>;
    fn bind(&self, socket: SocketNumber, address: Address) -> io::Result<()>;
    fn listen(&self, socket: SocketNumber, backlog: usize) -> io::Result<()>;
    /// Begins to connect a socket, or connects it. Both are a success.
    fn connect(&self, socket: SocketNumber, address: Address) -> io::Result<()>;
    fn accept(&self, socket: SocketNumber) -> io::Result<(OwnedDescriptor, Address)>;
    fn receive(&self, socket: SocketNumber, buffer: &mut [u8], peeks: bool) -> io::Result<Received>;
    fn send(&self, socket: SocketNumber, slices: &[IoSlice<'_>], to: Option<Address>) -> io::Result<usize>;
    fn shutdown(&self, socket: SocketNumber, how: Shutdown) -> io::Result<()>;
    fn local_addr(&self, socket: SocketNumber) -> io::Result<Address>;
    fn peer_addr(&self, socket: SocketNumber) -> io::Result<Address>;
    fn take_error(&self, socket: SocketNumber) -> io::Result<Option<io::Error>>;
    /// Returns the addresses of the host of that name. `None` if there is no such host.
    fn look_up(&self, name: &str) -> Option<Vec<IpAddr>>;

    /// Reports the events of a socket with this key from now on, beginning with what it is ready for.
    fn watch(&self, socket: SocketNumber, key: u64);
    /// Closes a socket.
    fn close(&self, socket: SocketNumber);
    /// Returns what a socket is ready for.
    fn readiness(&self, socket: SocketNumber) -> SocketEvents;
    /// Processes what happens up to the present time, and returns the next event of a watched socket.
    fn next_event(&self) -> Option<(u64, SocketEvents)>;
    /// Returns for how long nothing happens in the network; `None` if that is for ever.
    fn until_next(&self) -> Option<Duration>;
}

/// Returns whether the calling thread is in a simulation.
pub fn is_simulated() -> bool {
    is_running()
}

/// The length of the queue of a listener, as the standard library asks for.
pub const STD_BACKLOG: usize = 128;

/// A Unix datagram socket.
pub const UNIX_DATAGRAM: SocketType = SocketType { is_stream: false, family: AddressFamily::Unix };

/// Makes a socket.
pub fn socket<T: From<OwnedDescriptor>>(
    kind: SocketType,
    real: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    with_sockets(|sockets| sockets.socket(kind).map(T::from)).unwrap_or_else(real)
}

/// Makes a socket of the system the placeholder of a simulated one, if it is a TCP socket that is neither
/// bound nor connected: some programs make one to set its options, and then pass it on. Leaves others as they
/// are.
pub fn adopt(descriptor: &impl AsDescriptor) {
    with_sockets(|sockets| {
        let socket = SockRef::from(descriptor);
        let local = socket.local_addr().ok().and_then(|local| local.as_socket());
        let is_stream = socket.r#type().is_ok_and(|kind| kind == Type::STREAM);
        if let Some(local) = local.filter(|local| is_stream && local.port() == 0) {
            let family = if local.is_ipv6() { AddressFamily::V6 } else { AddressFamily::V4 };
            // On an error it stays a socket of the system, which has no way into a simulation.
            let _ = sockets.adopt(descriptor.raw(), family);
        }
    });
}

/// Returns the error for a socket of the system in a simulation.
#[cold]
pub(crate) fn unsupported() -> io::Error {
    let what = "a simulation has no pipes, files or sockets of the system: their events would come from \
                outside of it. Its own sockets are made by `bind` and `connect` of `paceline::net` and \
                `tokio::net`, and not by the standard library";
    io::Error::new(io::ErrorKind::Unsupported, what)
}

/// Makes a socket for this address, and calls `call` with both. Closes the socket if that fails.
fn made_for<A: Into<Address>, T: From<OwnedDescriptor>>(
    address: A,
    is_stream: bool,
    call: impl FnOnce(&OwnedDescriptor, Address) -> Option<io::Result<()>>,
    real: impl FnOnce(A) -> io::Result<T>,
) -> io::Result<T> {
    if !is_running() {
        return real(address);
    }
    let address = address.into();
    let kind = SocketType { is_stream, family: address.family() };
    let made: OwnedDescriptor = socket(kind, || Err(unsupported()))?;
    if let Some(Err(error)) = call(&made, address) {
        on_socket(&made, |sockets, socket| sockets.close(socket));
        return Err(error);
    }
    Ok(made.into())
}

/// Makes a listener that is bound to an address, with the options that the standard library sets.
pub fn listener<A: Into<Address>, T: From<OwnedDescriptor>>(
    address: A,
    backlog: usize,
    real: impl FnOnce(A) -> io::Result<T>,
) -> io::Result<T> {
    let listens = |made: &OwnedDescriptor, address| {
        if let Err(error) = SockRef::from(made).set_reuse_address(true) {
            return Some(Err(error));
        }
        match bind(made, address)? {
            Ok(()) => listen(made, backlog),
            error => Some(error),
        }
    };
    made_for(address, true, listens, real)
}

/// Makes a datagram socket that is bound to an address.
pub fn datagrams<A: Into<Address>, T: From<OwnedDescriptor>>(
    address: A,
    real: impl FnOnce(A) -> io::Result<T>,
) -> io::Result<T> {
    made_for(address, false, bind, real)
}

/// Makes a stream socket that begins to connect to an address. Returns it, and whether it is connected
/// already. If not, [`connected`] says how that ends.
pub fn connecting<A: Into<Address> + Copy>(
    address: A,
    real: impl FnOnce(A) -> io::Result<(OwnedDescriptor, bool)>,
) -> io::Result<(OwnedDescriptor, bool)> {
    if !is_running() {
        return real(address);
    }
    let connects = |made: &_, address| on_socket(made, |sockets, socket| sockets.connect(socket, address));
    let made = made_for(address, true, connects, |_| Err(unsupported()))?;
    Ok((made, matches!(address.into(), Address::Path(_))))
}

/// Makes two Unix sockets that are connected with each other.
pub fn pair<T: From<OwnedDescriptor>>(
    is_stream: bool,
    real: impl FnOnce() -> io::Result<(T, T)>,
) -> io::Result<(T, T)> {
    let made = with_sockets(|sockets| sockets.pair(is_stream));
    made.map_or_else(real, |made| made.map(|[one, other]| (one.into(), other.into())))
}

/// Checks a socket that is connecting. Returns `WouldBlock` while the peer has not answered, and the error of
/// an attempt that has failed.
pub fn connected<S: MaybeSimulated>(socket: &S, real: impl FnOnce(&S) -> io::Result<()>) -> io::Result<()> {
    let error = match take_error(socket) {
        None => return real(socket),
        Some(Ok(None)) => on_socket(socket, |sockets, socket| sockets.peer_addr(socket).err()).flatten(),
        Some(Ok(error)) => error,
        Some(Err(error)) => Some(error),
    };
    match error {
        Some(error) if error.kind() == io::ErrorKind::NotConnected => Err(io::ErrorKind::WouldBlock.into()),
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Receives bytes or a datagram. If it `peeks`, leaves them there.
#[inline]
pub fn receive<S: MaybeSimulated>(
    socket: &S,
    buffer: &mut [u8],
    peeks: bool,
    real: impl FnOnce(&S, &mut [u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    on_socket(socket, |sockets, socket| sockets.receive(socket, buffer, peeks).map(|(len, _)| len))
        .unwrap_or_else(|| real(socket, buffer))
}

/// Receives a datagram, and returns its sender. If it `peeks`, leaves it there.
#[inline]
pub fn receive_from<S: MaybeSimulated, A: TryFrom<Address, Error = io::Error>>(
    socket: &S,
    buffer: &mut [u8],
    peeks: bool,
    real: impl FnOnce(&S, &mut [u8]) -> io::Result<(usize, A)>,
) -> io::Result<(usize, A)> {
    let received = on_socket(socket, |sockets, socket| match sockets.receive(socket, buffer, peeks)? {
        (len, Some(from)) => Ok((len, from.try_into()?)),
        (_, None) => Err(io::ErrorKind::InvalidInput.into()),
    });
    received.unwrap_or_else(|| real(socket, buffer))
}

/// Receives bytes into several buffers, one after the other.
pub fn receive_vectored(
    socket: &impl MaybeSimulated,
    buffers: &mut [IoSliceMut<'_>],
) -> Option<io::Result<usize>> {
    on_socket(socket, |sockets, socket| {
        let mut joined = vec![0; buffers.iter().map(|buffer| buffer.len()).sum()];
        let (len, _) = sockets.receive(socket, &mut joined, false)?;
        let mut left = &joined[..len];
        for buffer in buffers {
            let (taken, rest) = left.split_at(left.len().min(buffer.len()));
            buffer[..taken.len()].copy_from_slice(taken);
            left = rest;
        }
        Ok(len)
    })
}

/// Returns whether the descriptor is the placeholder of a simulated socket.
#[inline]
pub fn is_placeholder(socket: &impl MaybeSimulated) -> bool {
    on_socket(socket, |_, _| ()).is_some()
}

/// Initializes a buffer, if the socket is simulated, for a call that only writes to it.
pub fn initialize<'b>(
    socket: &impl MaybeSimulated,
    buffer: &'b mut [MaybeUninit<u8>],
) -> Option<&'b mut [u8]> {
    if !is_placeholder(socket) {
        return None;
    }
    // Not by `fill`, which takes each byte by itself in a build that is not optimized.
    // SAFETY: the pointer and the length are those of the slice, whose bytes are all initialized then.
    unsafe {
        buffer.as_mut_ptr().write_bytes(0, buffer.len());
        Some(&mut *(std::ptr::from_mut(buffer) as *mut [u8]))
    }
}

/// Sends bytes.
#[inline]
pub fn send<S: MaybeSimulated>(
    socket: &S,
    bytes: &[u8],
    real: impl FnOnce(&S, &[u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    send_vectored(socket, &[IoSlice::new(bytes)]).unwrap_or_else(|| real(socket, bytes))
}

/// Sends the bytes of several buffers.
#[inline]
pub fn send_vectored(socket: &impl MaybeSimulated, slices: &[IoSlice<'_>]) -> Option<io::Result<usize>> {
    on_socket(socket, |sockets, socket| sockets.send(socket, slices, None))
}

/// Sends a datagram to an address.
#[inline]
pub fn send_to<S: MaybeSimulated, A: Into<Address> + Copy>(
    socket: &S,
    bytes: &[u8],
    to: A,
    real: impl FnOnce(&S, &[u8], A) -> io::Result<usize>,
) -> io::Result<usize> {
    on_socket(socket, |sockets, socket| sockets.send(socket, &[IoSlice::new(bytes)], Some(to.into())))
        .unwrap_or_else(|| real(socket, bytes, to))
}

/// Binds a socket to an address.
pub fn bind(socket: &impl MaybeSimulated, address: impl Into<Address>) -> Option<io::Result<()>> {
    on_socket(socket, |sockets, socket| sockets.bind(socket, address.into()))
}

/// Makes a socket a listener.
pub fn listen(socket: &impl MaybeSimulated, backlog: usize) -> Option<io::Result<()>> {
    on_socket(socket, |sockets, socket| sockets.listen(socket, backlog))
}

/// Begins to connect a stream socket, or sets the peer of a datagram socket.
/// In a simulation, refuses a socket of the system, so that it sends no packet.
pub fn connect<S: MaybeSimulated, A: Into<Address> + Clone>(
    socket: &S,
    address: A,
    real: impl FnOnce(&S, A) -> io::Result<()>,
) -> io::Result<()> {
    on_socket(socket, |sockets, socket| sockets.connect(socket, address.clone().into()))
        .or_else(|| with_sockets(|_| Err(unsupported())))
        .unwrap_or_else(|| real(socket, address))
}

/// What an accept returns: a stream, or also the address of its peer.
pub trait Accepted: Sized {
    /// Makes it of the placeholder and the peer of a connection.
    fn new(accepted: OwnedDescriptor, peer: Address) -> io::Result<Self>;
}

impl<S: From<OwnedDescriptor>, A: TryFrom<Address, Error = io::Error>> Accepted for (S, A) {
    fn new(accepted: OwnedDescriptor, peer: Address) -> io::Result<Self> {
        Ok((accepted.into(), peer.try_into()?))
    }
}

#[cfg(unix)]
impl Accepted for std::os::unix::net::UnixStream {
    fn new(accepted: OwnedDescriptor, _: Address) -> io::Result<Self> {
        Ok(accepted.into())
    }
}

/// Accepts a connection.
#[inline]
pub fn accept<S: MaybeSimulated, R: Accepted>(
    socket: &S,
    real: impl FnOnce(&S) -> io::Result<R>,
) -> io::Result<R> {
    let accepted = on_socket(socket, |sockets, socket| {
        let (accepted, peer) = sockets.accept(socket)?;
        R::new(accepted, peer)
    });
    accepted.unwrap_or_else(|| real(socket))
}

/// Shuts down one direction of a stream, or both.
pub fn shutdown<S: MaybeSimulated>(
    socket: &S,
    how: Shutdown,
    real: impl FnOnce(&S, Shutdown) -> io::Result<()>,
) -> io::Result<()> {
    on_socket(socket, |sockets, socket| sockets.shutdown(socket, how)).unwrap_or_else(|| real(socket, how))
}

/// Returns the address that a socket is bound to.
pub fn local_addr<A: TryFrom<Address, Error = io::Error>>(
    socket: &impl MaybeSimulated,
) -> Option<io::Result<A>> {
    on_socket(socket, |sockets, socket| sockets.local_addr(socket)?.try_into())
}

/// Returns the address of the peer.
pub fn peer_addr<A: TryFrom<Address, Error = io::Error>>(
    socket: &impl MaybeSimulated,
) -> Option<io::Result<A>> {
    on_socket(socket, |sockets, socket| sockets.peer_addr(socket)?.try_into())
}

/// Returns the error of a socket that no call has returned.
pub fn take_error(socket: &impl MaybeSimulated) -> Option<io::Result<Option<io::Error>>> {
    on_socket(socket, |sockets, socket| sockets.take_error(socket))
}

/// Looks up the name of a host. A name that the network does not know is an error.
pub fn look_up(name: &str, port: u16) -> Option<io::Result<Vec<SocketAddr>>> {
    with_sockets(|sockets| match sockets.look_up(name) {
        Some(addresses) => Ok(addresses.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()),
        None => {
            let what = format!("no host of the simulated network has the name {name:?}");
            Err(io::Error::new(io::ErrorKind::NotFound, what))
        }
    })
}
