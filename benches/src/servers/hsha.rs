//! Half-Sync/Half-Async, what Leader/Followers replaces: one I/O thread, a queue, N workers.
//!
//! The I/O thread waits on epoll and queues ready connections; a worker takes one, reads, handles, writes and
//! re-arms it. Oneshot keeps a connection with one worker at a time. Every request pays for a hand-over.

use std::collections::VecDeque;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;

use super::{Sharing, floor::write_all, listen};
use crate::handler::Exchange;

struct Connection {
    stream: TcpStream,
    exchange: Mutex<Exchange>,
}

#[derive(Default)]
struct Queue {
    ready: Mutex<VecDeque<Arc<Connection>>>,
    filled: Condvar,
}

impl Queue {
    fn push(&self, connection: Arc<Connection>) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(connection);
        self.filled.notify_one();
    }

    fn pop(&self) -> Arc<Connection> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ready =
            self.filled.wait_while(ready, |ready| ready.is_empty()).unwrap_or_else(PoisonError::into_inner);
        ready.pop_front().expect("waited until there is one")
    }
}

/// Connections by descriptor. A worker that finishes one clears its slot before the descriptor closes.
type Table = Mutex<Vec<Option<Arc<Connection>>>>;

const ONCE: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::ONESHOT);

pub(super) fn serve(port: u16, threads: usize) -> io::Result<()> {
    let listener = listen(port, Sharing::Alone)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let table = Table::default();
    let queue = Queue::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    converse(queue.pop(), &epoll, &table);
                }
            });
        }
        watch(&listener, &epoll, &table, &queue)
    })
}

fn watch(listener: &TcpListener, epoll: &OwnedFd, table: &Table, queue: &Queue) -> io::Result<()> {
    let listener_key = listener.as_raw_fd() as u64;
    epoll::add(epoll, listener, epoll::EventData::new_u64(listener_key), epoll::EventFlags::IN)?;
    let mut events = Vec::with_capacity(256);
    loop {
        events.clear();
        match epoll::wait(epoll, spare_capacity(&mut events), None) {
            Err(Errno::INTR) => continue,
            other => other?,
        };
        for event in &events {
            let key = event.data.u64();
            if key == listener_key {
                accept_all(listener, epoll, table)?;
            } else {
                let table = table.lock().unwrap_or_else(PoisonError::into_inner);
                let connection = table.get(key as usize).cloned().flatten();
                drop(table);
                connection.into_iter().for_each(|connection| queue.push(connection));
            }
        }
    }
}

fn accept_all(listener: &TcpListener, epoll: &OwnedFd, table: &Table) -> io::Result<()> {
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
        let connection = Arc::new(Connection { stream, exchange: Mutex::new(Exchange::new()) });
        let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
        if table.len() <= key {
            table.resize_with(key + 1, || None);
        }
        table[key] = Some(connection.clone());
        epoll::add(epoll, &connection.stream, epoll::EventData::new_u64(key as u64), ONCE)?;
    }
}

fn converse(connection: Arc<Connection>, epoll: &OwnedFd, table: &Table) {
    let key = connection.stream.as_raw_fd();
    if exchange_once(&connection).is_ok() {
        let data = epoll::EventData::new_u64(key as u64);
        if epoll::modify(epoll, &connection.stream, data, ONCE).is_ok() {
            return;
        }
    }
    table.lock().unwrap_or_else(PoisonError::into_inner)[key as usize] = None;
}

fn exchange_once(connection: &Connection) -> io::Result<()> {
    let mut exchange = connection.exchange.lock().unwrap_or_else(PoisonError::into_inner);
    let read = match rustix::io::read(&connection.stream, exchange.space()) {
        Err(Errno::AGAIN) => return Ok(()),
        other => other?,
    };
    let answer = exchange.received(read).map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    write_all(&connection.stream, answer)
}
