//! The chat: each member receives the messages of all others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use async_tungstenite::tungstenite::{Error, Message};
use futures::channel::mpsc::{Receiver, Sender, channel};
use futures::select;
use paceline::prelude::*;

use crate::Socket;

/// The longest message. Each message reaches all members, so an echo may be longer.
const WORDS: usize = 64 << 10;
/// How many messages, and bytes, may wait for a member. Beyond that the member is too slow, and is
/// disconnected.
const INBOX: usize = 256;
const INBOX_BYTES: usize = 1 << 20;

/// The members. A clone is the same room.
#[derive(Clone, Default)]
pub(crate) struct Room(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    /// The last number that was given: numbers of members that left are not reused.
    last: u64,
    members: Vec<Member>,
}

/// A member, as the others see it: the channel for messages to it.
struct Member {
    number: u64,
    inbox: Sender<Message>,
    bytes: Arc<AtomicUsize>,
}

/// A member's own side: the messages to it. The member leaves when this is dropped.
struct Seat {
    room: Room,
    number: u64,
    inbox: Receiver<Message>,
    /// How many bytes wait in the inbox.
    bytes: Arc<AtomicUsize>,
}

impl Room {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self) -> Seat {
        let (sender, inbox) = channel(INBOX);
        let bytes = Arc::<AtomicUsize>::default();
        let mut inside = self.inside();
        inside.last += 1;
        let number = inside.last;
        inside.members.push(Member { number, inbox: sender, bytes: bytes.clone() });
        Seat { room: self.clone(), number, inbox, bytes }
    }

    /// Sends a message to all other members. Members that are too slow are removed.
    fn say(&self, from: u64, message: &Message) {
        self.inside().members.retain_mut(|member| member.number == from || member.takes(message));
    }
}

impl Member {
    fn takes(&mut self, message: &Message) -> bool {
        // Counted first, so that the receiver never removes uncounted bytes.
        let before = self.bytes.fetch_add(message.len(), Ordering::Relaxed);
        before + message.len() <= INBOX_BYTES && self.inbox.try_send(message.clone()).is_ok()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.room.inside().members.retain(|member| member.number != self.number);
    }
}

/// Serves one member, until it leaves or is disconnected.
pub(crate) async fn talk(socket: &mut Socket, room: &Room) -> Result<CloseCode, Error> {
    let mut seat = room.enter();
    loop {
        select! {
            said = socket.next() => match said.transpose()? {
                Some(Message::Text(words)) if words.len() <= WORDS => {
                    room.say(seat.number, &Message::text(format!("{}: {words}", seat.number)));
                }
                Some(Message::Text(_)) => return Ok(CloseCode::Size),
                Some(_) => {}
                None => return Ok(CloseCode::Normal),
            },
            heard = seat.inbox.next() => match heard {
                Some(message) => {
                    seat.bytes.fetch_sub(message.len(), Ordering::Relaxed);
                    socket.send(message).await?;
                }
                None => return Ok(CloseCode::Policy),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_leaves_is_removed_and_its_number_is_not_reused() {
        let room = Room::default();
        let first = room.enter();
        for number in 2..100 {
            assert_eq!(room.enter().number, number);
        }
        assert_eq!(room.inside().members.len(), 1);
        drop(first);
        assert_eq!(room.enter().number, 100);
    }

    /// Returns how many messages wait for a member that reads nothing, after a hundred times the limit was
    /// sent.
    fn waiting(len: usize) -> usize {
        let room = Room::default();
        let (mut deaf, speaker) = (room.enter(), room.enter());
        for _ in 0..100 * INBOX {
            room.say(speaker.number, &Message::text("w".repeat(len)));
        }
        assert_eq!(room.inside().members.len(), 1, "it is shown out");
        let mut waiting = 0;
        while deaf.inbox.try_recv().is_ok() {
            waiting += 1;
        }
        waiting
    }

    #[test]
    fn no_more_than_so_much_waits_for_a_member() {
        // The sender has a place of its own.
        assert_eq!(waiting(0), INBOX + 1);
        assert_eq!(waiting(WORDS), INBOX_BYTES / WORDS);
    }
}
