//! Pausing the clock of the current runtime, for tests.

use super::Duration;
use super::pausable::Pausable;
use crate::{context, task};

#[track_caller]
pub fn pause() {
    let runtime = runtime();
    match runtime.clock().pausable() {
        Some(clock) if !clock.pause() => panic!("time is already frozen"),
        Some(_) => {}
        None => panic!("{NOT_PAUSABLE}"),
    }
}

#[track_caller]
pub fn resume() {
    let runtime = runtime();
    assert!(runtime.clock().pausable().is_some_and(Pausable::resume), "time is not frozen");
}

/// A task continues after the tasks that become due by this; the future of `block_on` continues before them.
pub async fn advance(duration: Duration) {
    let runtime = runtime();
    let clock = runtime.clock().pausable();
    assert!(clock.is_some_and(|clock| clock.advance(duration)), "time is not frozen");
    let fires = Fires(clock);
    if context::task_id().is_some() {
        drop(fires);
        task::yield_now().await;
    } else {
        task::yield_now().await;
        drop(fires);
    }
}

/// Wakes due tasks when it is dropped.
struct Fires<'a>(Option<&'a Pausable>);

impl Drop for Fires<'_> {
    fn drop(&mut self) {
        if let Some(clock) = self.0 {
            clock.fire();
        }
    }
}

/// The panic if the clock of a runtime with several threads should be paused.
pub(super) const NOT_PAUSABLE: &str = "`time::pause()` requires the `current_thread` Tokio runtime. This is the default Runtime used by `#[tokio::test].";

#[track_caller]
fn runtime() -> crate::runtime::Handle {
    match context::current() {
        Some(runtime) => runtime,
        None => panic!("time cannot be frozen from outside the Tokio runtime"),
    }
}
