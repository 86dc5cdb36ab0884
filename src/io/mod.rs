//! Sockets, pipes and other descriptors as async I/O; and timers.
//!
//! | file | what it holds |
//! |---|---|
//! | `async_handle` | [`Async`]: a handle and its registration with a reactor |
//! | `unix`, `windows` | creating an [`Async`] from a descriptor or a socket |
//! | `conversions` | conversions between an [`Async`], its inner handle and owned descriptors |
//! | `waiting` | waiting for readiness, or until an operation of the caller succeeds |
//! | `ready` | the futures of [`Async::readable`] and its siblings |
//! | `io_safe` | [`IoSafe`]: the promise that reading and writing never replaces the descriptor |
//! | `transfer` | `AsyncRead` and `AsyncWrite` |
//! | `uninit` | reading into uninitialized memory |
//! | `trust` | whether `WouldBlock` or a short transfer is evidence for the descriptor's state |
//! | `same_type` | whether two types are the same apart from lifetimes |
//! | `retry` | waiting for an operation whose `WouldBlock` is no evidence for the descriptor's state |
//! | `sockets/` | TCP, UDP and Unix sockets: bind, connect, accept, send, receive |
//! | `os/` | what only some platforms have |
//! | `sys/` | the system calls that differ by platform |
//! | `errors` | error messages for descriptors that cannot be registered |
//! | `timer` | [`Timer`]: a deadline in a reactor |
//! | `timeout` | [`timeout()`]: a future with a limit |
//!
//! There are two kinds of waiting. If this crate makes the system call itself, `WouldBlock` comes from the
//! kernel and means that the descriptor is drained: [`Source`](crate::reactor::Source) waits for the next
//! edge without a call to the poller. If other code returns `WouldBlock` (a closure given to
//! [`Async::read_with`], the `Read` of a type that is not in `trust`), bytes may still be queued that no edge
//! reports: each wait arms interest again.
//!
//! Nothing in this module has a lock or an atomic of its own. Threads are started on Windows only, to
//! connect.

mod async_handle;
mod conversions;
mod errors;
mod io_safe;
pub mod os;
mod ready;
mod retry;
mod same_type;
mod sockets;
mod sys;
mod timeout;
mod timer;
mod transfer;
mod trust;
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
mod uninit;
#[cfg(unix)]
mod unix;
mod waiting;
#[cfg(windows)]
mod windows;

pub use async_handle::Async;
pub(crate) use errors::explained;
pub use io_safe::IoSafe;
pub use ready::{Readable, ReadableOwned, Writable, WritableOwned};
#[cfg(feature = "hyper")]
pub(crate) use same_type::cast;
pub use timeout::{Elapsed, Timeout, timeout};
pub use timer::Timer;
