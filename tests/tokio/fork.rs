//! A child of `fork` does not wait for its parent's hidden runtime, and the parent is not affected.

use std::time::Duration;

use paceline::{Runtime, Timer, block_on, spawn};
use rustix::process::Signal;

use crate::context::all_of_tokio;
use crate::forked_children::{end_of, in_child, split};
use crate::setups::is_child;

fn all_is_well() {
    block_on(async {
        spawn(all_of_tokio()).await;
        all_of_tokio().await;
    });
}

/// The child may do everything there that needs no wait; a wait for tokio is a wait for its parent's runtime,
/// and the abort says so.
#[test]
fn a_child_that_waits_for_its_parents_hidden_runtime_is_aborted() {
    let test = "fork::a_child_that_waits_for_its_parents_hidden_runtime_is_aborted";
    if !is_child(test, "ulimit -c 0") {
        return;
    }
    let child = block_on(async {
        all_of_tokio().await;
        let child = split();
        if child.is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        child
    });
    let status = end_of(child.expect("the child does not get here"));
    assert_eq!(status.terminating_signal(), Some(Signal::ABORT.as_raw()), "{status:?}");
    all_is_well();
}

/// A runtime that a child builds works, although the hidden runtime does not. Fails if a thread waits for
/// that when it enters its context.
#[test]
fn a_child_may_build_a_runtime() {
    if is_child("fork::a_child_may_build_a_runtime", ":") {
        all_is_well();
        in_child(|| {
            let runtime = Runtime::builder().threads(1).build().unwrap();
            runtime.block_on(async { spawn(Timer::after(Duration::from_millis(1))).await });
        });
        all_is_well();
    }
}
