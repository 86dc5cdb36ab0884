//! [`Interest`]: the events to wait for.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of events to wait for, never empty.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Interest(u8);

impl Interest {
    pub const READABLE: Interest = Interest(1);
    pub const WRITABLE: Interest = Interest(1 << 1);
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const PRIORITY: Interest = Interest(1 << 2);
    pub const ERROR: Interest = Interest(1 << 3);

    pub const fn is_readable(self) -> bool {
        self.has(Interest::READABLE)
    }

    pub const fn is_writable(self) -> bool {
        self.has(Interest::WRITABLE)
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub const fn is_priority(self) -> bool {
        self.has(Interest::PRIORITY)
    }

    pub const fn is_error(self) -> bool {
        self.has(Interest::ERROR)
    }

    #[must_use = "this returns the result of the operation, without modifying the original"]
    #[allow(clippy::should_implement_trait, reason = "so it is called, and it is `const`")]
    pub const fn add(self, other: Interest) -> Interest {
        Interest(self.0 | other.0)
    }

    #[must_use = "this returns the result of the operation, without modifying the original"]
    pub fn remove(self, other: Interest) -> Option<Interest> {
        match self.0 & !other.0 {
            0 => None,
            left => Some(Interest(left)),
        }
    }

    const fn has(self, one: Interest) -> bool {
        self.0 & one.0 != 0
    }
}

impl BitOr for Interest {
    type Output = Interest;

    fn bitor(self, other: Interest) -> Interest {
        self.add(other)
    }
}

impl BitOrAssign for Interest {
    fn bitor_assign(&mut self, other: Interest) {
        *self = *self | other;
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Interest::READABLE, "READABLE"),
            (Interest::WRITABLE, "WRITABLE"),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            (Interest::PRIORITY, "PRIORITY"),
            (Interest::ERROR, "ERROR"),
        ];
        let mut separator = "";
        for (_, name) in names.into_iter().filter(|(one, _)| self.has(*one)) {
            write!(f, "{separator}{name}")?;
            separator = " | ";
        }
        Ok(())
    }
}
