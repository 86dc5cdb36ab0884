//! The system calls that differ by platform: which of the files below are compiled is decided here and in `unix`.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use unix::{
    accept_tcp, accept_unix, connect_tcp, connect_unix, is_bad_handle, set_nonblocking, unix_address,
};
#[cfg(windows)]
pub(super) use windows::{accept_tcp, connect_tcp, is_bad_handle, set_nonblocking};
