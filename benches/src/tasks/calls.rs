//! What does a call of `block_on` cost that does not have to wait?
//!
//! Hypothesis: a thread that keeps what it needs from the last call allocates nothing and takes no lock, so
//! calls from many threads do not hinder each other but for the count of references to the runtime.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use super::cases::{Sample, Scale};
use super::rivals::Rival;

fn from_threads<R: Rival>(threads: usize, operations: usize) -> Sample {
    let each = operations.div_ceil(threads);
    let call = || (0..each).for_each(|number| assert_eq!(R::block_on(async { black_box(number) }), number));
    // The first call may start the runtime.
    R::block_on(async {});
    let start = Instant::now();
    thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(call)));
    Sample { elapsed: start.elapsed(), operations: each * threads }
}

pub(super) fn from_one<R: Rival>(scale: Scale) -> Sample {
    from_threads::<R>(1, scale.of(1_000_000))
}

pub(super) fn from_eight<R: Rival>(scale: Scale) -> Sample {
    from_threads::<R>(8, scale.of(1_000_000))
}
