//! Pausing the clock of the runtime in which this is called, for tests.

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

pub async fn advance(duration: Duration) {
    {
        let runtime = runtime();
        let has_advanced = runtime.clock().pausable().is_some_and(|clock| clock.advance(duration));
        assert!(has_advanced, "time is not frozen");
    }
    task::yield_now().await;
}

/// What is said where the clock of a runtime with several threads is to be paused.
pub(super) const NOT_PAUSABLE: &str = "`time::pause()` requires the `current_thread` Tokio runtime. This is the default Runtime used by `#[tokio::test].";

#[track_caller]
fn runtime() -> crate::runtime::Handle {
    match context::current() {
        Some(runtime) => runtime,
        None => panic!("time cannot be frozen from outside the Tokio runtime"),
    }
}
