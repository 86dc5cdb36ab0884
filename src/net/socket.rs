//! Conversions of a socket to and from the types that it wraps, and socket options: the same for all sockets.

/// Implements the conversions between `$handle`, whose first field is an `Arc<Async<$std>>`, and
/// `Async<$std>`, and gives access to the descriptor. `$new` makes the handle from such an `Arc`.
macro_rules! handle {
    ($handle:ident, $std:ty, $field:tt, $new:expr) => {
        impl From<Async<$std>> for $handle {
            fn from(io: Async<$std>) -> Self {
                Arc::new(io).into()
            }
        }

        impl From<Arc<Async<$std>>> for $handle {
            fn from(io: Arc<Async<$std>>) -> Self {
                $new(io)
            }
        }

        impl From<$handle> for Arc<Async<$std>> {
            fn from(handle: $handle) -> Self {
                handle.$field
            }
        }

        /// Puts the socket in non-blocking mode and registers it with the reactor of the current runtime.
        impl TryFrom<$std> for $handle {
            type Error = io::Error;

            fn try_from(io: $std) -> io::Result<Self> {
                Async::new(io).map(Self::from)
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsFd for $handle {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.$field.get_ref().as_fd()
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $handle {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                self.$field.get_ref().as_raw_fd()
            }
        }

        #[cfg(unix)]
        impl TryFrom<std::os::fd::OwnedFd> for $handle {
            type Error = io::Error;

            fn try_from(fd: std::os::fd::OwnedFd) -> io::Result<Self> {
                Self::try_from(<$std>::from(fd))
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsSocket for $handle {
            fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
                self.$field.get_ref().as_socket()
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsRawSocket for $handle {
            fn as_raw_socket(&self) -> std::os::windows::io::RawSocket {
                self.$field.get_ref().as_raw_socket()
            }
        }
    };
}

/// Defines methods for options of the socket in `$handle.$field`, which call those of the standard library,
/// unless the socket is simulated and there is a function for that.
macro_rules! options {
    ($handle:ident.$field:tt: $($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) -> $result:ty $(= $simulated:path)?;)*) => {
        impl $handle {
            $(
                $(#[$doc])*
                ///
                /// # Errors
                ///
                /// Returns the error of the system call.
                pub fn $name(&self $(, $arg: $type)*) -> io::Result<$result> {
                    $(
                        if let Some(answer) = $simulated(self.$field.get_ref()) {
                            return answer;
                        }
                    )?
                    self.$field.get_ref().$name($($arg),*)
                }
            )*
        }
    };
}

pub(super) use {handle, options};
