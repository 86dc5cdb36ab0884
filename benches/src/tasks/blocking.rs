//! What is the cost of running a closure on a thread that may block, and of reading a file there?
//!
//! Hypothesis: one closure at a time costs two hand-overs between threads, so it pays if both sides stay
//! awake for a moment. Many closures at once cost the threads that are started and woken for closures that
//! other threads finish first. A cached file is read at the speed of two copies, into a pipe and out of it,
//! if neither side waits for the other.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::time::Instant;

use futures_lite::{AsyncRead, AsyncReadExt};

use super::cases::{Sample, Scale};
use super::rivals::Rival;

/// Closures submitted at once.
const HEAP: usize = 10_000;

async fn one_by_one<R: Rival>(operations: usize) -> Sample {
    let start = Instant::now();
    for _ in 0..operations {
        R::unblock(|| ()).await;
    }
    Sample { elapsed: start.elapsed(), operations }
}

pub(super) fn one_by_one_in_task<R: Rival>(scale: Scale) -> Sample {
    R::block_on_worker(one_by_one::<R>(scale.of(50_000)))
}

/// The awaiting thread is no worker.
pub(super) fn one_by_one_in_main<R: Rival>(scale: Scale) -> Sample {
    R::block_on(one_by_one::<R>(scale.of(50_000)))
}

async fn heaps<R: Rival>(operations: usize) -> Sample {
    let rounds = operations.div_ceil(HEAP);
    let start = Instant::now();
    for _ in 0..rounds {
        let joins: Vec<_> = (0..HEAP).map(|_| R::unblock(|| ())).collect();
        for join in joins {
            join.await;
        }
    }
    Sample { elapsed: start.elapsed(), operations: rounds * HEAP }
}

pub(super) fn heaps_in_task<R: Rival>(scale: Scale) -> Sample {
    R::block_on_worker(heaps::<R>(scale.of(100_000)))
}

/// Bytes of one read.
const AT_ONCE: usize = 64 << 10;

/// A file that is deleted when it is closed.
fn file_of(bytes: usize) -> io::Result<File> {
    let path = env::temp_dir().join(format!("paceline-bench-{}", std::process::id()));
    let mut file = File::create_new(&path)?;
    let opened = File::open(&path);
    fs::remove_file(&path)?;
    let some = vec![b'x'; 1 << 20];
    for _ in 0..bytes.div_ceil(some.len()) {
        file.write_all(&some)?;
    }
    opened
}

/// Returns the number of bytes read.
pub(super) async fn read_to_end(mut from: impl AsyncRead + Unpin, at_once: usize) -> usize {
    let (mut buf, mut bytes) = (vec![0; at_once], 0);
    while let read @ 1.. = from.read(&mut buf).await.expect("a file can be read") {
        bytes += read;
    }
    bytes
}

pub(super) fn file<R: Rival>(scale: Scale) -> Sample {
    let file = file_of(scale.of(1 << 30)).expect("there is room for a file");
    R::block_on_worker(async move {
        let start = Instant::now();
        let bytes = R::read_file(file, AT_ONCE).await;
        Sample { elapsed: start.elapsed(), operations: bytes / AT_ONCE }
    })
}
