//! The common part of all sockets: a socket of the standard library that a runtime watches.

use std::io;

use paceline::simulated_sockets as simulated;
use socket2::{SockAddr, SockRef, Socket};

use crate::io::Interest;
use crate::io::registration::{Registration, Source};

/// Refuses a blocking socket, which would block a thread with all of its tasks.
#[track_caller]
pub(super) fn check_nonblocking(socket: &impl Source) -> io::Result<()> {
    #[cfg(unix)]
    debug_assert!(
        SockRef::from(socket).nonblocking()?,
        "Registering a blocking socket with the tokio runtime is unsupported. If you wish to do anyways, please add `--cfg \
         tokio_allow_from_blocking_fd` to your RUSTFLAGS. See github.com/tokio-rs/tokio/issues/7172 for details."
    );
    #[cfg(not(unix))]
    let _ = socket;
    Ok(())
}

/// Connects a socket in non-blocking mode. Over loopback the connection is usually established at the first
/// look; the event is awaited nevertheless, because some programs rely on that, and because it shows a Unix
/// listener that closes before it has accepted.
pub(super) async fn connect<T: Source + From<Socket>>(
    socket: Socket,
    addr: &SockAddr,
) -> io::Result<Registration<T>> {
    begin(&socket, addr)?;
    let io = Registration::new(T::from(socket))?;
    io.ready(Interest::WRITABLE).await?;
    let simulated = simulated::take_error(io.get_ref());
    match simulated.unwrap_or_else(|| SockRef::from(io.get_ref()).take_error())? {
        Some(error) => Err(error),
        None => Ok(io),
    }
}

/// Returns the path of a Unix address.
fn path_of(addr: &SockAddr) -> simulated::Address {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(name) = addr.as_abstract_namespace() {
        return simulated::Address::Path([b"\0", name].concat());
    }
    #[cfg(unix)]
    if let Some(path) = addr.as_pathname() {
        return path.into();
    }
    let _ = addr;
    simulated::Address::Path(Vec::new())
}

fn begin(socket: &Socket, addr: &SockAddr) -> io::Result<()> {
    let connected = match addr.as_socket() {
        _ if !simulated::is_simulated() => socket.connect(addr),
        Some(ip) => simulated::connect(socket, ip, |socket, _| socket.connect(addr)),
        None => simulated::connect(socket, path_of(addr), |socket, _| socket.connect(addr)),
    };
    match connected {
        Err(error) if is_in_progress(&error) => Ok(()),
        result => result,
    }
}

#[cfg(unix)]
fn is_in_progress(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINPROGRESS)
}

#[cfg(windows)]
fn is_in_progress(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

/// The methods of all sockets.
macro_rules! socket {
    ($socket:ident, $std:ty) => {
        impl $socket {
            #[track_caller]
            pub fn from_std(socket: $std) -> std::io::Result<Self> {
                $crate::net::sockets::check_nonblocking(&socket)?;
                Self::new(socket)
            }

            #[track_caller]
            fn new(socket: $std) -> std::io::Result<Self> {
                Ok(Self { io: $crate::io::registration::Registration::new(socket)? })
            }

            pub fn into_std(self) -> std::io::Result<$std> {
                self.io.into_inner()
            }
        }

        impl TryFrom<$std> for $socket {
            type Error = std::io::Error;

            fn try_from(socket: $std) -> std::io::Result<Self> {
                Self::from_std(socket)
            }
        }

        impl std::fmt::Debug for $socket {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.io.fmt(f)
            }
        }

        $crate::net::sockets::lends_its_descriptor!($socket, |this| this.io.get_ref());
    };
}

/// Lends out the descriptor of `$io`.
macro_rules! lends_its_descriptor {
    ($socket:ident, |$this:ident| $io:expr) => {
        #[cfg(unix)]
        impl std::os::fd::AsFd for $socket {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                let $this = self;
                $io.as_fd()
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $socket {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                std::os::fd::AsRawFd::as_raw_fd(&std::os::fd::AsFd::as_fd(self))
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsSocket for $socket {
            fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
                let $this = self;
                $io.as_socket()
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsRawSocket for $socket {
            fn as_raw_socket(&self) -> std::os::windows::io::RawSocket {
                std::os::windows::io::AsRawSocket::as_raw_socket(&std::os::windows::io::AsSocket::as_socket(
                    self,
                ))
            }
        }
    };
}

/// The methods of sockets that transfer bytes: waiting for readiness, and operations of the caller.
macro_rules! readiness {
    ($socket:ident, $poll_read_ready:ident, $poll_write_ready:ident) => {
        impl $socket {
            pub async fn ready(&self, interest: crate::io::Interest) -> std::io::Result<crate::io::Ready> {
                Ok(self.io.ready(interest).await?.ready)
            }

            pub async fn readable(&self) -> std::io::Result<()> {
                self.ready(crate::io::Interest::READABLE).await.map(drop)
            }

            pub async fn writable(&self) -> std::io::Result<()> {
                self.ready(crate::io::Interest::WRITABLE).await.map(drop)
            }

            pub fn $poll_read_ready(
                &self,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.io.poll_ready(crate::io::registration::Direction::Read, cx).map_ok(drop)
            }

            pub fn $poll_write_ready(
                &self,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.io.poll_ready(crate::io::registration::Direction::Write, cx).map_ok(drop)
            }

            pub fn try_io<R>(
                &self,
                interest: crate::io::Interest,
                f: impl FnOnce() -> std::io::Result<R>,
            ) -> std::io::Result<R> {
                self.io.try_io(interest, |_| f())
            }

            pub async fn async_io<R>(
                &self,
                interest: crate::io::Interest,
                mut f: impl FnMut() -> std::io::Result<R>,
            ) -> std::io::Result<R> {
                self.io.async_io(interest, |_| f()).await
            }

            pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
                let simulated = paceline::simulated_sockets::take_error(self.io.get_ref());
                simulated.unwrap_or_else(|| self.io.get_ref().take_error())
            }
        }
    };
}

/// Socket options of `$io`, by the names of its own methods, or of a function for a simulated socket.
macro_rules! options {
    ($socket:ident, |$this:ident| $io:expr; $($name:ident($($arg:ident: $type:ty)?) -> $result:ty = $as:ident $(, $simulated:path)?;)*) => {
        impl $socket {
            $(
                pub fn $name(&self $(, $arg: $type)?) -> std::io::Result<$result> {
                    let $this = self;
                    $(
                        if let Some(answer) = $simulated(&$io) {
                            return answer;
                        }
                    )?
                    $io.$as($($arg)?)
                }
            )*
        }
    };
}

/// Options of TCP and UDP, of the `socket2::Socket` that `$io` is.
macro_rules! socket_options {
    ($socket:ident, |$this:ident| $io:expr) => {
        #[cfg(not(any(
            target_os = "fuchsia",
            target_os = "redox",
            target_os = "solaris",
            target_os = "illumos",
            target_os = "haiku"
        )))]
        $crate::net::sockets::options! {
            $socket, |$this| $io;
            tos_v4() -> u32 = tos_v4;
            set_tos_v4(tos: u32) -> () = set_tos_v4;
        }

        #[cfg(not(any(
            target_os = "fuchsia",
            target_os = "redox",
            target_os = "solaris",
            target_os = "illumos",
            target_os = "haiku"
        )))]
        impl $socket {
            #[deprecated(
                note = "`tos` related methods have been renamed `tos_v4` since they are IPv4-specific."
            )]
            pub fn tos(&self) -> std::io::Result<u32> {
                self.tos_v4()
            }

            #[deprecated(
                note = "`tos` related methods have been renamed `tos_v4` since they are IPv4-specific."
            )]
            pub fn set_tos(&self, tos: u32) -> std::io::Result<()> {
                self.set_tos_v4(tos)
            }
        }

        #[cfg(any(
            target_os = "android",
            target_os = "dragonfly",
            target_os = "freebsd",
            target_os = "fuchsia",
            target_os = "linux",
            target_os = "macos",
            target_os = "netbsd",
            target_os = "openbsd",
            target_os = "cygwin"
        ))]
        $crate::net::sockets::options! {
            $socket, |$this| $io;
            tclass_v6() -> u32 = tclass_v6;
            set_tclass_v6(tclass: u32) -> () = set_tclass_v6;
        }

        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        $crate::net::sockets::options! {
            $socket, |$this| $io;
            device() -> Option<Vec<u8>> = device;
            bind_device(interface: Option<&[u8]>) -> () = bind_device;
        }
    };
}

/// Conversions between a descriptor and a socket in `inner` that is not registered.
#[cfg(unix)]
macro_rules! takes_descriptors {
    ($socket:ident) => {
        impl std::os::fd::FromRawFd for $socket {
            unsafe fn from_raw_fd(fd: std::os::fd::RawFd) -> Self {
                // SAFETY: the caller keeps the promises of `from_raw_fd`.
                let inner = unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) };
                paceline::simulated_sockets::adopt(&inner);
                Self { inner }
            }
        }

        impl std::os::fd::IntoRawFd for $socket {
            fn into_raw_fd(self) -> std::os::fd::RawFd {
                std::os::fd::IntoRawFd::into_raw_fd(self.inner)
            }
        }
    };
}

#[cfg(unix)]
pub(super) use takes_descriptors;
pub(super) use {lends_its_descriptor, options, readiness, socket, socket_options};
