//! The runtime of a simulation: a thread in a simulation of `paceline::sim` is in that runtime, unless it is
//! in another one.
//!
//! It counts as one with several workers, because its clock cannot be paused, and `block_in_place` works. Its
//! tasks, timers and closures are those of the simulation's own paceline runtime.

use std::sync::Arc;

use super::extras::Settings;
use super::hooks::Hooks;
use super::shared::Config;
use super::{Handle, RuntimeFlavor, Shared};

/// Returns the runtime of the simulation that the calling thread is in. The first call makes it.
pub(crate) fn of_simulation() -> Option<Handle> {
    paceline::sim::local(make).map(|handle| Handle::clone(&handle))
}

/// Until the result is dropped, the thread sees the clocks of the system: for waits for other threads.
pub(super) use paceline::sim::system_clocks;

fn make() -> Handle {
    const WORKERS: usize = 1;
    let config = Config {
        flavor: RuntimeFlavor::MultiThread,
        workers: WORKERS,
        name: None,
        is_local: false,
        has_io: true,
        has_time: cfg!(feature = "time"),
        hooks: Hooks::default(),
        starts_paused: false,
    };
    let extras = Settings::default().start(WORKERS).expect("it starts nothing without settings");
    let shared = Shared::new(config, extras);
    shared.bind(paceline::Handle::current());
    Handle::of(Arc::new(shared))
}
