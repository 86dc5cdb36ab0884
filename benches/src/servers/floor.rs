//! The floor: plain epoll loops without any runtime.
//!
//! A request costs here what the kernel and the handler cost; the difference to a rival is the price of its
//! runtime. With edge-triggered events the kernel does not check each descriptor twice, so that variant is
//! the floor; the level-triggered variant is there for comparison. Reads and writes are the standard
//! library's, as in every rival.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, epoll, poll};

use super::{Sharing, listen};
use crate::handler::Exchange;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trigger {
    Edge,
    Level,
}

pub(super) fn one(port: u16, trigger: Trigger) -> io::Result<()> {
    run(listen(port, Sharing::Alone)?, trigger)
}

pub(super) fn one_per_thread(port: u16, threads: usize) -> io::Result<()> {
    let listeners = (0..threads).map(|_| listen(port, Sharing::ReusePort)).collect::<io::Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let loops: Vec<_> =
            listeners.into_iter().map(|listener| scope.spawn(|| run(listener, Trigger::Edge))).collect();
        loops.into_iter().try_for_each(|thread| thread.join().expect("the loop does not panic"))
    })
}

struct Connection {
    stream: TcpStream,
    exchange: Exchange,
}

/// Runs one thread with one epoll, forever. A connection's key is its descriptor.
fn run(listener: TcpListener, trigger: Trigger) -> io::Result<()> {
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
                accept_all(&listener, &epoll, trigger, &mut connections)?;
            } else if let Some(slot) = connections.get_mut(key as usize) {
                let finished = slot.as_mut().is_some_and(|connection| converse(connection, trigger).is_err());
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
    trigger: Trigger,
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
        let flags = match trigger {
            Trigger::Edge => epoll::EventFlags::IN | epoll::EventFlags::ET,
            Trigger::Level => epoll::EventFlags::IN,
        };
        epoll::add(epoll, &stream, epoll::EventData::new_u64(key as u64), flags)?;
        if connections.len() <= key {
            connections.resize_with(key + 1, || None);
        }
        connections[key] = Some(Box::new(Connection { stream, exchange: Exchange::new() }));
    }
}

/// Reads and writes once; with edges, again only if the read filled the buffer, as more bytes may be there
/// without an event.
fn converse(connection: &mut Connection, trigger: Trigger) -> io::Result<()> {
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
        if trigger == Trigger::Level || read < room {
            return Ok(());
        }
    }
}

/// Blocks the thread while a client does not read: the clients of the floor always read.
pub(super) fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
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
