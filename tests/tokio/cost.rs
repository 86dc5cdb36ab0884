//! The cost of the hidden runtime for programs that do not use it.

use std::time::Duration;

use paceline::{Timer, block_on, spawn, unblock};

use crate::context::all_of_tokio;
use crate::idle_threads::{assert_all_rest, switches};
use crate::setups::{eventually, is_child};

/// An idle process makes no system calls, even after it has used tokio, and only one thread was added.
///
/// Measures two seconds in which no thread may run; no exact test says that.
#[test]
#[ignore = "timed: no thread runs for two seconds"]
fn an_idle_process_that_has_used_tokio_does_nothing() {
    if !is_child("cost::an_idle_process_that_has_used_tokio_does_nothing", ":") {
        return;
    }
    let is_hidden = |(name, _): &(&String, &u64)| name.ends_with("paceline-tokio");
    block_on(async {
        spawn(Timer::after(Duration::from_millis(1))).await;
        unblock(|| ()).await;
    });
    // The thread sets its name when it starts to run.
    eventually("there is one hidden thread", || switches().iter().filter(is_hidden).count() == 1);
    block_on(spawn(all_of_tokio()));
    assert_all_rest();
    block_on(spawn(all_of_tokio()));
}
