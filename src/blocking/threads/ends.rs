//! The end of the threads, as that of their runtime sees it.

use std::mem;

use super::{Piece, Threads};
use crate::blocking::shared::Title;
use crate::pool::{AtWork, Backstage, Who};
use crate::sync::{self, thread};

impl Backstage for Threads {
    fn left(&self, keeper: &thread::Thread) -> usize {
        let mut inner = sync::lock(&self.inner);
        inner.keeper = Some(keeper.clone());
        inner.open
    }

    fn close(&self) -> usize {
        let mut inner = sync::lock(&self.inner);
        self.closed.set(true);
        inner.keeper = None;
        let waits = mem::take(&mut inner.queue);
        inner.open -= waits.iter().filter(|work| work.is_open()).count();
        inner.cancelled += waits.iter().filter(|work| work.is_open() && !work.is_settled()).count();
        inner.doomed.extend(waits);
        let idle = mem::take(&mut inner.idle);
        inner.coming += idle.len();
        let cancelled = inner.cancelled;
        drop(inner);
        idle.iter().for_each(|seat| seat.call());
        cancelled
    }

    fn laden(&self) -> usize {
        sync::lock(&self.inner).doomed.len()
    }

    fn clear(&self) {
        // One by one: what blocks whoever drops it keeps nobody else from dropping the rest.
        let next = || sync::lock(&self.inner).doomed.pop_front();
        while let Some(work) = next() {
            work.cancel();
        }
    }

    fn at_work(&self) -> Vec<AtWork> {
        let pieces: Vec<_> = {
            let inner = sync::lock(&self.inner);
            let who = |piece: &Piece| inner.crew.iter().find(|(other, _)| *other == piece.thread);
            let of_a_job = |piece: &Piece| {
                Some((who(piece)?.1.clone(), piece.number, piece.title.clone()?, piece.is_lost))
            };
            inner.pieces.iter().filter_map(of_a_job).collect()
        };
        let named = |(who, number, title, is_lost): (Who, u64, Title, bool)| AtWork {
            who,
            number,
            name: title.to_string(),
            is_lost,
        };
        pieces.into_iter().map(named).collect()
    }
}
