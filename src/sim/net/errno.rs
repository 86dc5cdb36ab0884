//! The error numbers of the simulated kernel, which are those of Linux.

use std::io;

macro_rules! errnos {
    ($($name:ident = $number:literal, $kind:ident;)*) => {
        /// An error of a call.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        pub(crate) enum Errno {
            $($name = $number,)*
        }

        impl Errno {
            fn kind(self) -> io::ErrorKind {
                match self {
                    $(Errno::$name => io::ErrorKind::$kind,)*
                }
            }
        }
    };
}

// Numbers of Linux on all architectures but Alpha, MIPS, PA-RISC and SPARC.
errnos! {
    NotPermitted = 1, PermissionDenied;
    NoEntry = 2, NotFound;
    Io = 5, Other;
    BadDescriptor = 9, Other;
    WouldBlock = 11, WouldBlock;
    AccessDenied = 13, PermissionDenied;
    Busy = 16, ResourceBusy;
    Exists = 17, AlreadyExists;
    NotDirectory = 20, NotADirectory;
    IsDirectory = 21, IsADirectory;
    Invalid = 22, InvalidInput;
    TooLarge = 27, FileTooLarge;
    NoSpace = 28, StorageFull;
    BrokenPipe = 32, BrokenPipe;
    NameTooLong = 36, InvalidInput;
    NotEmpty = 39, DirectoryNotEmpty;
    TooManyLinks = 40, Other;
    DestinationRequired = 89, InvalidInput;
    MessageTooLong = 90, InvalidInput;
    WrongProtocolType = 91, InvalidInput;
    NotSupported = 95, Unsupported;
    FamilyNotSupported = 97, Unsupported;
    AddressInUse = 98, AddrInUse;
    AddressNotAvailable = 99, AddrNotAvailable;
    NetworkDown = 100, NetworkDown;
    NetworkUnreachable = 101, NetworkUnreachable;
    ConnectionAborted = 103, ConnectionAborted;
    ConnectionReset = 104, ConnectionReset;
    IsConnected = 106, Other;
    NotConnected = 107, NotConnected;
    TimedOut = 110, TimedOut;
    ConnectionRefused = 111, ConnectionRefused;
    HostUnreachable = 113, HostUnreachable;
    AlreadyConnecting = 114, Other;
    InProgress = 115, WouldBlock;
}

impl From<Errno> for io::Error {
    /// Returns the error with the number that Linux gives, so that `raw_os_error` is right there. Other
    /// systems have other numbers, so the error only has its kind there.
    fn from(errno: Errno) -> Self {
        if cfg!(target_os = "linux") {
            io::Error::from_raw_os_error(errno as i32)
        } else {
            io::Error::from(errno.kind())
        }
    }
}

/// Returns `errno` as the error of a socket call.
pub(super) fn fail<T>(errno: Errno) -> io::Result<T> {
    Err(errno.into())
}
