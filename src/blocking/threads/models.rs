//! Loom models of threads that go while work comes. A second without work may be over at any moment of a model; work that nobody
//! takes shows as a deadlock.

use std::panic::Location;

use super::*;
use crate::blocking::shared::Errand;
use crate::pool::ClockHeld;
use crate::sync::models::{Latch, model};

/// Work that opens a latch.
struct Opens(Arc<Latch>);

impl Errand for Opens {
    fn run(self: Arc<Self>) -> After {
        self.0.open();
        After::Done
    }

    fn give_up(&self) {
        unreachable!("a thread can be started, and nobody closes the pool");
    }

    fn title(&self) -> Title {
        Title(None, Location::caller())
    }

    fn is_settled(&self) -> bool {
        false
    }
}

/// One thread at most. It stays awake for no moment, which the clock would tell.
fn lone() -> Arc<Threads> {
    Arc::new(Threads { spin: Duration::ZERO, ..Threads::new(1, None) })
}

fn submit(threads: &Arc<Threads>) -> Arc<Latch> {
    let latch = Latch::new();
    threads
        .submit(Work::Errand(Arc::new(Opens(latch.clone())), ClockHeld::here()))
        .expect("a thread can be started");
    latch
}

/// L13: the second piece comes before the only thread looks again, while it is on the list of idle ones, while it goes, or when it
/// has gone. Fails if a thread does not look at the queue before it goes on the list, if one that was called goes, or if one that
/// goes stays on the list.
#[test]
fn l13_work_that_comes_as_the_last_thread_goes_is_taken() {
    model(|| {
        let threads = lone();
        submit(&threads).wait();
        submit(&threads).wait();
    });
}

/// L13: the same for two that come at once: one of them calls the thread, or starts one, and the other relies on that.
#[test]
fn l13_of_two_pieces_that_come_as_the_last_thread_goes_both_are_taken() {
    model(|| {
        let threads = lone();
        submit(&threads).wait();
        let other = threads.clone();
        let other = loom::thread::spawn(move || submit(&other).wait());
        submit(&threads).wait();
        other.join().expect("it only waits");
    });
}
