//! Unix sockets, and pipes.

mod addr;
pub(super) mod datagram;
pub(super) mod listener;
pub mod pipe;
pub(super) mod socket;
mod split;
pub(super) mod stream;
mod ucred;

pub use addr::SocketAddr;
pub use split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use ucred::UCred;

#[allow(non_camel_case_types, reason = "that of the C library")]
pub type uid_t = u32;
#[allow(non_camel_case_types, reason = "that of the C library")]
pub type gid_t = u32;
#[allow(non_camel_case_types, reason = "that of the C library")]
pub type pid_t = i32;
