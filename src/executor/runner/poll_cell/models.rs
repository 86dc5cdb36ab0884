//! Loom models of a poll's words.

use super::*;
use crate::sync::Arc;
use crate::sync::models::model;
use loom::thread;

/// Returns the two tasks of a model: each an address, and its place.
fn two_tasks() -> [(NonNull<()>, &'static Location<'static>); 2] {
    let address = |at: usize| NonNull::new(ptr::without_provenance_mut(at)).unwrap();
    [(address(16), Location::caller()), (address(32), Location::caller())]
}

/// Two tasks are polled one after the other, while another thread looks. Fails if the observer gets the place
/// of one task with the address of the other: without the fence of `task_poll`, or with relaxed stores in
/// `begin` and `set_place`.
#[test]
fn an_observer_never_mixes_two_polls() {
    model(|| {
        let cell = Arc::new(PollCell::new());
        let tasks = two_tasks();
        let observer = {
            let cell = cell.clone();
            thread::spawn(move || cell.task_poll())
        };
        for (task, place) in tasks {
            cell.begin(task);
            cell.set_place(place);
            cell.end();
        }
        if let Some(TaskPoll { task, spawned_at: Some(seen), .. }) = observer.join().unwrap() {
            let place = tasks.iter().find(|known| known.0.as_ptr().addr() == task).map(|known| known.1);
            assert!(place.is_some_and(|place| ptr::eq(place, seen)), "{seen} is not of the task {task}");
        }
    });
}

/// A task is polled, one is dropped, and one is polled, while the deputy marks a stage that it has seen.
/// Fails if a poll has the mark of another stage.
#[test]
fn a_mark_never_meets_another_poll() {
    model(|| {
        let cell = Arc::new(PollCell::new());
        let [(first, _), (second, _)] = two_tasks();
        let deputy = {
            let cell = cell.clone();
            thread::spawn(move || {
                let stage = cell.stage();
                if stage.is_at_work() {
                    cell.catch(stage, Caught::Blocking);
                }
                stage
            })
        };
        let mut caught = Vec::new();
        for (task, is_polled) in [(first, true), (second, false), (first, true)] {
            cell.begin(task);
            if is_polled && cell.caught().is_some() {
                caught.push(cell.stage());
            }
            cell.end();
        }
        let marked = deputy.join().unwrap();
        assert!(caught.iter().all(|stage| *stage == marked), "{caught:?}, {marked:?}");
    });
}
