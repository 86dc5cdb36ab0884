//! The system calls that differ by platform. This file and `unix` decide which of the files are compiled.

#[cfg_attr(any(target_os = "linux", target_os = "android"), path = "streams_direct.rs")]
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), path = "streams_plain.rs")]
mod streams;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(any(feature = "hyper", feature = "tokio-io"))]
pub(super) use streams::read_uninit;
pub(super) use streams::{read_stream, read_vectored, write_stream, write_vectored};
#[cfg(unix)]
pub(super) use unix::{
    accept_tcp, accept_unix, connect_tcp, connect_unix, is_bad_handle, set_nonblocking, unix_address,
};
#[cfg(windows)]
pub(super) use windows::{accept_tcp, connect_tcp, is_bad_handle, set_nonblocking};
