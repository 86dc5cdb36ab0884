//! Closures that block, on the simulation's own thread: each is a task that runs the closure at a later time.

use std::panic::Location;
use std::time::Duration;

use crate::io::Timer;
use crate::observed::SpawnMeta;
use crate::runtime::Handle;
use crate::simulated::BlockingPiece;

/// Spawns a task that runs the piece after the first duration. A result that may come later is delivered
/// after the second one. If the runtime ends before, the piece is cancelled.
#[track_caller]
pub(super) fn spawn(handle: &Handle, mut piece: Box<dyn BlockingPiece>, [waits, runs]: [Duration; 2]) {
    piece.release_clock();
    let meta = SpawnMeta::unobserved(piece.made_at().unwrap_or(Location::caller()));
    let mut pending = Pending(Some(piece));
    let steps = async move {
        Timer::after(waits).await;
        pending.step();
        if pending.0.is_some() {
            Timer::after(runs).await;
            pending.step();
        }
    };
    handle.spawn_with(steps, meta).detach();
}

/// A piece that waits for its next step.
struct Pending(Option<Box<dyn BlockingPiece>>);

impl Pending {
    fn step(&mut self) {
        self.0 = self.0.take().and_then(BlockingPiece::step);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(piece) = self.0.take() {
            piece.give_up();
        }
    }
}
