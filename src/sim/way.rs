//! Waiting in a simulation: for the sockets of its network. There are no other sources.

use std::io;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::reactor::marks::Marks;
use crate::reactor::readiness::Happened;
use crate::reactor::sys::raw::RawSource;
use crate::reactor::sys::{self, BATCH, EventWait, Events, Wants, Way};
use crate::reactor::{Direction, Key};
use crate::simulated::{self, SocketCalls, SocketEvents, SocketNumber};
use crate::sync::Instant;

/// The way of a simulation's own reactor. Only the simulation's thread waits here.
#[derive(Debug, Default)]
pub(super) struct SimulatedWay {
    is_interrupted: Mutex<bool>,
    bell: Condvar,
}

impl SimulatedWay {
    pub(super) fn make() -> Box<dyn Way> {
        Box::<Self>::default()
    }
}

/// Calls `call` with the socket of the network that a source stands for, if it does.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn on_source<R>(raw: RawSource, call: impl FnOnce(&dyn SocketCalls, SocketNumber) -> R) -> Option<R> {
    simulated::with_sockets(|sockets| sockets.find(raw).map(|socket| call(sockets, socket))).flatten()
}

/// Returns `None`: only Linux and Android have simulated sockets.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn on_source<R>(_: RawSource, _: impl FnOnce(&dyn SocketCalls, SocketNumber) -> R) -> Option<R> {
    None
}

impl Way for SimulatedWay {
    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    unsafe fn add(&self, raw: RawSource, key: Key) -> io::Result<()> {
        on_source(raw, |sockets, socket| sockets.watch(socket, key.0)).ok_or_else(simulated::unsupported)
    }

    /// Closes the socket: this call is the only notice that its owner is dropped. Always returns an error, so
    /// that an owner who wants to keep the socket gets no closed one.
    fn delete(&self, raw: RawSource, _: Key) -> io::Result<()> {
        on_source(raw, |sockets, socket| sockets.close(socket));
        let what = "a socket of a simulation cannot be taken out of its wrapper";
        Err(io::Error::new(io::ErrorKind::Unsupported, what))
    }

    fn rearm(&self, key: Key, asks: Option<(RawSource, Direction)>, _: Wants<'_>) -> io::Result<()> {
        if let Some((raw, _)) = asks.filter(|(raw, direction)| self.is_ready(*raw, *direction)) {
            on_source(raw, |sockets, socket| sockets.watch(socket, key.0));
        }
        Ok(())
    }

    fn is_ready(&self, raw: RawSource, direction: Direction) -> bool {
        let happened = on_source(raw, |sockets, socket| happened(sockets.readiness(socket)));
        happened.is_none_or(|happened| happened.ready[direction as usize])
    }

    fn ends(&self, raw: RawSource) -> Marks {
        on_source(raw, |sockets, socket| happened(sockets.readiness(socket)).marks).unwrap_or(Marks::ENDS)
    }

    fn announce(&self, _: Option<Instant>, _: Instant, _: &mut Events) -> io::Result<()> {
        Ok(())
    }

    /// Does not block, but for [`EventWait::Forever`] without an event: then waits for an interrupt.
    fn wait(&self, events: &mut Events, wait: EventWait) -> io::Result<()> {
        events.list.clear();
        while events.list.len() < BATCH {
            let Some(Some((key, said))) = simulated::with_sockets(|sockets| sockets.next_event()) else {
                break;
            };
            events.list.push((key, happened(said)));
        }
        let mut is_interrupted = self.is_interrupted.lock().unwrap_or_else(PoisonError::into_inner);
        while wait == EventWait::Forever && events.list.is_empty() && !*is_interrupted {
            is_interrupted = self.bell.wait(is_interrupted).unwrap_or_else(PoisonError::into_inner);
        }
        *is_interrupted = false;
        Ok(())
    }

    fn interrupt(&self) -> io::Result<()> {
        *self.is_interrupted.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_one();
        Ok(())
    }

    fn next_event(&self, now: Instant) -> Option<Instant> {
        simulated::with_sockets(|sockets| sockets.until_next())
            .flatten()
            .and_then(|after| now.checked_add(after))
    }
}

/// Translates what is said of a socket, as for epoll.
fn happened(said: SocketEvents) -> Happened {
    let broken = said.hangup || said.error;
    let cut = broken || said.read_hangup;
    Happened {
        ready: [cut || said.readable, broken || said.writable],
        cut: [cut, broken],
        marks: sys::ends(said.hangup, said.read_hangup).and(Marks::ERROR.if_said(said.error)),
    }
}
