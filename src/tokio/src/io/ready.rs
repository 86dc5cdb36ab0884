//! [`Ready`]: the readiness of a descriptor.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign, Sub};

use paceline::{Direction, Readiness};

use super::Interest;

/// A set of kinds of readiness.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ready(u8);

impl Ready {
    pub const EMPTY: Ready = Ready(0);
    pub const READABLE: Ready = Ready(1);
    pub const WRITABLE: Ready = Ready(1 << 1);
    pub const READ_CLOSED: Ready = Ready(1 << 2);
    pub const WRITE_CLOSED: Ready = Ready(1 << 3);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const PRIORITY: Ready = Ready(1 << 4);
    pub const ERROR: Ready = Ready(1 << 5);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const ALL: Ready = Ready((1 << 6) - 1);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub const ALL: Ready = Ready((1 << 6) - 1 - (1 << 4));

    pub fn is_empty(self) -> bool {
        self == Ready::EMPTY
    }

    pub fn is_readable(self) -> bool {
        self.has_any(Ready::READABLE | Ready::READ_CLOSED)
    }

    pub fn is_writable(self) -> bool {
        self.has_any(Ready::WRITABLE | Ready::WRITE_CLOSED)
    }

    pub fn is_read_closed(self) -> bool {
        self.has_any(Ready::READ_CLOSED)
    }

    pub fn is_write_closed(self) -> bool {
        self.has_any(Ready::WRITE_CLOSED)
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn is_priority(self) -> bool {
        self.has_any(Ready::PRIORITY)
    }

    pub fn is_error(self) -> bool {
        self.has_any(Ready::ERROR)
    }

    fn has_any(self, of: Ready) -> bool {
        self & of != Ready::EMPTY
    }

    /// Returns the kinds of readiness that end a wait with this interest.
    pub(crate) fn of_interest(interest: Interest) -> Ready {
        let mut ready = Ready::EMPTY;
        if interest.is_readable() {
            ready |= Ready::READABLE | Ready::READ_CLOSED;
        }
        if interest.is_writable() {
            ready |= Ready::WRITABLE | Ready::WRITE_CLOSED;
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if interest.is_priority() {
            ready |= Ready::PRIORITY | Ready::READ_CLOSED;
        }
        if interest.is_error() {
            ready |= Ready::ERROR;
        }
        ready
    }
}

impl From<Readiness> for Ready {
    fn from(known: Readiness) -> Self {
        let mut ready = Ready::EMPTY;
        for (holds, what) in [
            (known.is_ready(Direction::Read), Ready::READABLE),
            (known.is_ready(Direction::Write), Ready::WRITABLE),
            (known.is_closed(Direction::Read), Ready::READ_CLOSED),
            // In tokio an error beside writability counts as the end of writing.
            (
                known.is_closed(Direction::Write) || known.is_error() && known.is_ready(Direction::Write),
                Ready::WRITE_CLOSED,
            ),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            (known.is_priority(), Ready::PRIORITY),
            (known.is_error(), Ready::ERROR),
        ] {
            if holds {
                ready |= what;
            }
        }
        ready
    }
}

impl BitOr for Ready {
    type Output = Ready;

    fn bitor(self, other: Ready) -> Ready {
        Ready(self.0 | other.0)
    }
}

impl BitOrAssign for Ready {
    fn bitor_assign(&mut self, other: Ready) {
        *self = *self | other;
    }
}

impl BitAnd for Ready {
    type Output = Ready;

    fn bitand(self, other: Ready) -> Ready {
        Ready(self.0 & other.0)
    }
}

impl Sub for Ready {
    type Output = Ready;

    fn sub(self, other: Ready) -> Ready {
        Ready(self.0 & !other.0)
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut set = f.debug_struct("Ready");
        set.field("is_readable", &self.is_readable())
            .field("is_writable", &self.is_writable())
            .field("is_read_closed", &self.is_read_closed())
            .field("is_write_closed", &self.is_write_closed())
            .field("is_error", &self.is_error());
        #[cfg(any(target_os = "linux", target_os = "android"))]
        set.field("is_priority", &self.is_priority());
        set.finish()
    }
}
