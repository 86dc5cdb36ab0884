//! Feature `tracing`: a panic of a subscriber changes nothing for tasks. Panics are caught in each call, so a
//! future is dropped in its place, a wake arrives, and the process goes on.

use std::future::Future;
use std::marker::PhantomPinned;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::Duration;

use paceline::{Runtime, Timer};
use tracing::{Event, Metadata, Subscriber, span};

/// Whether the subscriber panics.
static PANICS: AtomicBool = AtomicBool::new(false);
static DROPPED: AtomicBool = AtomicBool::new(false);

/// Panics in each call, when it is told to.
struct Panicking;

fn panic_perhaps() {
    if PANICS.load(SeqCst) {
        panic!("a subscriber panics on purpose");
    }
}

impl Subscriber for Panicking {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        panic_perhaps();
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {
        panic_perhaps();
    }

    fn enter(&self, _: &span::Id) {
        panic_perhaps();
    }

    fn exit(&self, _: &span::Id) {
        panic_perhaps();
    }

    fn try_close(&self, _: span::Id) -> bool {
        panic_perhaps();
        true
    }
}

/// A future that must be dropped before its memory is used for something else.
struct Pinned(PhantomPinned);

impl Future for Pinned {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        // The drop of the future enters its span.
        PANICS.store(true, SeqCst);
        Poll::Ready(())
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        DROPPED.store(true, SeqCst);
    }
}

/// One test, because the subscriber is that of the process.
#[test]
fn a_panic_of_a_subscriber_changes_nothing_for_tasks() {
    tracing::subscriber::set_global_default(Panicking).unwrap();
    paceline::block_on(Pinned(PhantomPinned));
    assert!(DROPPED.load(SeqCst), "a pinned future is dropped");

    // A task that was spawned before is woken, polled and dropped all the same; and so is a later one.
    for panics_at_spawn in [false, true] {
        let runtime = Runtime::builder().threads(1).build().unwrap();
        PANICS.store(panics_at_spawn, SeqCst);
        let waits = runtime.spawn(async {
            Timer::after(Duration::from_millis(20)).await;
            7
        });
        PANICS.store(true, SeqCst);
        assert_eq!(runtime.block_on(waits), 7);
        PANICS.store(false, SeqCst);
    }
}
