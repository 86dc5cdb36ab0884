//! A child of `fork` has a hidden runtime of its own; its parent is not affected.

use std::time::Duration;

use paceline::{Timer, block_on, spawn};
use rustix::process::Signal;

use crate::context::all_of_tokio;
use crate::forked_children::{end_of, in_child, leave, split};
use crate::setups::is_child;

fn all_is_well() {
    block_on(async {
        spawn(all_of_tokio()).await;
        all_of_tokio().await;
    });
}

/// Fails if the child waits for its parent's runtime: `Origin` in `Hidden`.
#[test]
fn a_child_has_a_hidden_runtime_of_its_own() {
    if is_child("fork::a_child_has_a_hidden_runtime_of_its_own", ":") {
        all_is_well();
        in_child(|| {
            all_is_well();
            in_child(all_is_well);
            all_is_well();
        });
        all_is_well();
    }
}

/// The forking thread is in its parent's runtime. Fails if the child stays in it: `Origin` in `ENTERED`.
#[test]
fn a_child_of_a_task_or_block_on_has_one_too() {
    if !is_child("fork::a_child_of_a_task_or_block_on_has_one_too", "ulimit -c 0") {
        return;
    }
    let forks = || async {
        Timer::after(Duration::from_millis(1)).await;
        let Some(child) = split() else {
            let well = std::panic::catch_unwind(all_is_well).is_ok();
            leave(well)
        };
        end_of(child).exit_status()
    };
    assert_eq!(block_on(forks()), Some(0));
    assert_eq!(block_on(spawn(forks())), Some(0));
    all_is_well();
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
