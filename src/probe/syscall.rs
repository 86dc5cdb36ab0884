//! [`Syscall`]: the system call in which a thread sleeps, by name.

use std::fmt;

/// A system call in which a thread was found asleep: see [`StallKind::Blocked`](crate::StallKind::Blocked).
///
/// Its [`Display`](fmt::Display) is its name, or for example "system call 999" if the call is not known to
/// sleep often.
///
/// # Examples
///
/// ```
/// use paceline::{Runtime, Stall, StallKind};
///
/// fn is_a_lock(stall: &Stall) -> bool {
///     matches!(stall.kind, StallKind::Blocked(Some(call)) if call.name() == Some("futex"))
/// }
///
/// # fn main() -> std::io::Result<()> {
/// let runtime = Runtime::builder().threads(1).on_stall(|stall| {
///     if is_a_lock(stall) {
///         eprintln!("a lock or a channel of the standard library's? {stall}");
///     }
/// });
/// # drop(runtime);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Syscall(u32);

impl Syscall {
    #[allow(dead_code, reason = "only where the system tells")]
    pub(crate) fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number of the call on this architecture.
    ///
    /// ```
    /// # fn is_futex(call: paceline::Syscall) -> bool {
    /// cfg!(target_arch = "x86_64") && call.number() == 202
    /// # }
    /// ```
    pub fn number(self) -> u32 {
        self.0
    }

    /// Returns the name of the call, if it often makes threads sleep and the architecture is known.
    ///
    /// ```
    /// # fn is_futex(call: paceline::Syscall) -> bool {
    /// call.name() == Some("futex")
    /// # }
    /// ```
    pub fn name(self) -> Option<&'static str> {
        let at = CALL_NAMES.binary_search_by_key(&self.0, |(number, _)| *number).ok()?;
        Some(CALL_NAMES[at].1)
    }
}

impl fmt::Display for Syscall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "system call {}", self.0),
        }
    }
}

/// The calls in which threads of programs sleep most, by number.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const CALL_NAMES: &[(u32, &str)] = &[
    (0, "read"), (1, "write"), (3, "close"), (7, "poll"), (16, "ioctl"), (17, "pread64"), (18, "pwrite64"),
    (19, "readv"), (20, "writev"), (23, "select"), (35, "nanosleep"), (42, "connect"), (43, "accept"),
    (44, "sendto"), (45, "recvfrom"), (46, "sendmsg"), (47, "recvmsg"), (61, "wait4"), (72, "fcntl"),
    (73, "flock"), (74, "fsync"), (75, "fdatasync"), (82, "rename"), (87, "unlink"), (202, "futex"),
    (217, "getdents64"), (230, "clock_nanosleep"), (232, "epoll_wait"), (247, "waitid"), (257, "openat"),
    (263, "unlinkat"), (271, "ppoll"), (281, "epoll_pwait"), (288, "accept4"), (326, "copy_file_range"),
    (332, "statx"), (426, "io_uring_enter"),
];

/// The calls in which threads of programs sleep most, by number.
#[cfg(target_arch = "aarch64")]
#[rustfmt::skip]
const CALL_NAMES: &[(u32, &str)] = &[
    (22, "epoll_pwait"), (25, "fcntl"), (29, "ioctl"), (32, "flock"), (35, "unlinkat"), (38, "renameat"),
    (56, "openat"), (57, "close"), (61, "getdents64"), (63, "read"), (64, "write"), (65, "readv"),
    (66, "writev"), (67, "pread64"), (68, "pwrite64"), (72, "pselect6"), (73, "ppoll"), (82, "fsync"),
    (83, "fdatasync"), (95, "waitid"), (98, "futex"), (101, "nanosleep"), (115, "clock_nanosleep"),
    (202, "accept"), (203, "connect"), (206, "sendto"), (207, "recvfrom"), (211, "sendmsg"),
    (212, "recvmsg"), (242, "accept4"), (260, "wait4"), (276, "renameat2"), (285, "copy_file_range"),
    (291, "statx"), (426, "io_uring_enter"),
];

/// On other architectures only the number is known.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const CALL_NAMES: &[(u32, &str)] = &[];

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_unknown_ones_are_numbers() {
        assert!(CALL_NAMES.is_sorted_by_key(|(number, _)| *number));
        for (number, name) in CALL_NAMES {
            assert_eq!(Syscall::new(*number).to_string(), *name);
        }
        assert_eq!((Syscall::new(9_999).name(), Syscall::new(9_999).number()), (None, 9_999));
        assert_eq!(Syscall::new(9_999).to_string(), "system call 9999");
    }
}
