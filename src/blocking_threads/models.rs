//! Loom models of threads that end while work is submitted. The second without work may be over at any moment
//! of a model. Work that no thread takes shows as a deadlock.

use std::panic::Location;

use super::*;
use crate::sync::models::{Latch, model};

/// Work that opens a latch.
struct Opens(Arc<Latch>);

impl Errand for Opens {
    fn run(self: Arc<Self>) -> After {
        self.0.open();
        After::Done
    }

    fn begin(self: Arc<Self>) -> bool {
        unreachable!("no simulation runs")
    }

    fn deliver(self: Arc<Self>) {}

    fn give_up(&self) {
        unreachable!("a thread can be started, and the pool is not closed");
    }

    fn title(&self) -> Title {
        Title(None, Location::caller())
    }

    fn is_settled(&self) -> bool {
        false
    }
}

/// Makes threads with a limit of one that never stay awake, because that would read the clock.
fn lone() -> Arc<Threads> {
    Arc::new(Threads { spin: Duration::ZERO, ..Threads::new(1, None) })
}

fn submit(threads: &Arc<Threads>) -> Arc<Latch> {
    let latch = Latch::new();
    threads.submit(Work::Errand(Arc::new(Opens(latch.clone())), None)).expect("a thread can be started");
    latch
}

/// The second piece is submitted before the only thread looks again, while its seat is on the idle list,
/// while it ends, or after it has ended. Fails if a thread does not look at the queue before its seat goes on
/// the list, if a called thread ends, or if the seat of a thread that ends stays on the list.
#[test]
fn work_that_comes_as_the_last_thread_goes_is_taken() {
    model(|| {
        let threads = lone();
        submit(&threads).wait();
        submit(&threads).wait();
    });
}

/// The same for two pieces at once. One submitter calls the thread, or starts one, and the other relies
/// on that.
#[test]
fn of_two_pieces_that_come_as_the_last_thread_goes_both_are_taken() {
    model(|| {
        let threads = lone();
        submit(&threads).wait();
        let other = threads.clone();
        let other = loom::thread::spawn(move || submit(&other).wait());
        submit(&threads).wait();
        other.join().expect("it only waits");
    });
}

/// The threads are closed before the only thread has taken the first piece, while it runs, or before it takes
/// the second. A third piece comes later. Fails if a thread ends before the queue is empty.
#[test]
fn a_queue_that_is_to_be_finished_is_taken_after_the_end() {
    model(|| {
        let threads =
            Arc::new(Threads { spin: Duration::ZERO, finishes_queue: true, ..Threads::new(1, None) });
        let pieces = [submit(&threads), submit(&threads)];
        threads.close();
        pieces.iter().for_each(|piece| piece.wait());
        submit(&threads).wait();
    });
}
