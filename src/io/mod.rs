//! Sockets, pipes and other descriptors as async I/O; and timers.
//!
//! | file | what it holds |
//! |---|---|
//! | `async_handle` | [`Async`]: a handle and its registration with a reactor |
//! | `unix`, `windows` | how an [`Async`] is made from a descriptor or a socket |
//! | `conversions` | what it lends out of the handle inside, and how it becomes that again |
//! | `waiting` | waiting for readiness, or for an operation of the caller's to get through |
//! | `ready` | the futures of [`Async::readable`] and its siblings |
//! | `io_safe` | [`IoSafe`]: the promise that reading and writing never swaps the descriptor |
//! | `trusted` | [`Trusted`]: waiting for operations whose `WouldBlock` is the descriptor's, and what is known about it |
//! | `transfer` | `AsyncRead` and `AsyncWrite` |
//! | `uninit` | reading into memory that nobody has written yet |
//! | `trust` | whether a `WouldBlock` or a short transfer tells the state of the descriptor, by type of handle |
//! | `same_type` | whether two types are one, lifetimes aside |
//! | `retry` | waiting for an operation whose `WouldBlock` tells nothing of the descriptor |
//! | `sockets/` | TCP, UDP and Unix sockets: bind, connect, accept, send, receive |
//! | `os/` | what only some platforms have |
//! | `sys/` | the system calls that differ by platform |
//! | `errors` | what an error says when a descriptor cannot be registered |
//! | `timer` | [`Timer`]: a deadline with the reactor |
//! | `timeout` | [`timeout()`]: a future with a limit |
//!
//! There are two kinds of waiting. Where we make the system call ourselves, its `WouldBlock` is the kernel's word
//! that the descriptor is drained, and [`Source`](crate::reactor::Source) waits for the next edge without touching
//! the poller. Where somebody else's code says `WouldBlock` (a closure given to [`Async::read_with`], the `Read` of a
//! type that we do not know), bytes may still be queued that no edge will announce, so interest is armed again for
//! each wait.
//!
//! Nothing in this layer has a lock or an atomic of its own. Threads it starts on Windows only, to connect.

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
mod trusted;
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
mod uninit;
#[cfg(unix)]
mod unix;
mod waiting;
#[cfg(windows)]
mod windows;

pub use async_handle::Async;
pub use io_safe::IoSafe;
pub use ready::{Readable, ReadableOwned, Writable, WritableOwned};
#[cfg(feature = "hyper")]
pub(crate) use same_type::cast;
pub use timeout::{TimedOut, Timeout, timeout};
pub use timer::Timer;
pub use trusted::{Readiness, Trusted};
