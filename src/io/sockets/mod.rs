//! The sockets of the standard library. Every operation here is a system call of ours, whose `WouldBlock` is the
//! kernel's word, and waits for an edge; the one exception, `send_to` of a Unix datagram socket, says why.

mod tcp;
mod udp;
#[cfg(unix)]
mod unix_datagram;
#[cfg(unix)]
mod unix_stream;
