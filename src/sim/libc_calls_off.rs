//! The macro [`sim_libc!`](crate::sim_libc!) on systems where it has no functions.

/// Does nothing on this system.
#[macro_export]
macro_rules! sim_libc {
    () => {};
}
