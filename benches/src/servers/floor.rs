//! The floor: a plain epoll loop without any runtime.
//!
//! A request costs here what the kernel and the handler cost; the difference to a rival is the price of its
//! runtime. With edge-triggered events the kernel does not check each descriptor twice. Reads and writes are
//! the standard library's, as in every rival.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, epoll, poll};

use super::listen;
use crate::handler::Exchange;

struct Connection {
    stream: TcpStream,
    exchange: Exchange,
}

/// Runs one thread with one epoll, forever. A connection's key is its descriptor.
pub(super) fn serve(port: u16) -> io::Result<()> {
    let listener = listen(port)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let listener_key = listener.as_raw_fd() as u64;
    epoll::add(&epoll, &listener, epoll::EventData::new_u64(listener_key), epoll::EventFlags::IN)?;
    let mut connections: Vec<Option<Box<Connection>>> = Vec::new();
    let mut events = Vec::with_capacity(256);
    loop {
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        for event in &events {
            let key = event.data.u64();
            if key == listener_key {
                accept_all(&listener, &epoll, &mut connections)?;
            } else if let Some(slot) = connections.get_mut(key as usize) {
                let finished = slot.as_mut().is_some_and(|connection| converse(connection).is_err());
                if finished {
                    *slot = None;
                }
            }
        }
    }
}

fn accept_all(
    listener: &TcpListener,
    epoll: &impl AsFd,
    connections: &mut Vec<Option<Box<Connection>>>,
) -> io::Result<()> {
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => {
                super::accept_failed(&error);
                return Ok(());
            }
        };
        stream.set_nonblocking(true)?;
        let key = stream.as_raw_fd() as usize;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(epoll, &stream, epoll::EventData::new_u64(key as u64), flags)?;
        if connections.len() <= key {
            connections.resize_with(key + 1, || None);
        }
        connections[key] = Some(Box::new(Connection { stream, exchange: Exchange::new() }));
    }
}

/// Reads and writes once, and again only if the read filled the buffer, as more bytes may be there without an
/// event.
fn converse(connection: &mut Connection) -> io::Result<()> {
    loop {
        let space = connection.exchange.space();
        let room = space.len();
        let read = match (&connection.stream).read(space) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            other => other?,
        };
        let answer =
            connection.exchange.received(read).map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        write_all(&connection.stream, answer)?;
        if read < room {
            return Ok(());
        }
    }
}

/// Blocks the thread while a client does not read: the clients of the floor always read.
fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match (&mut &*stream).write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(stream, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
