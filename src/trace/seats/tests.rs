use std::time::Duration;

use super::*;
use crate::trace::sketch::{self, Sketch};

/// Returns the moves as time, thread and seat.
fn moves(sketch: &Sketch) -> Vec<(u128, usize, usize)> {
    let timeline = Timeline::new(&sketch.trace);
    let moves = assign(&sketch.trace, &timeline);
    moves
        .iter()
        .map(|change| (timeline.marks[change.mark].at.as_micros(), change.thread, change.seat))
        .collect()
}

#[test]
fn a_thread_keeps_its_seat_while_it_sleeps() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.role(0, 1, Role::Processes).role(0, 2, Role::Follows).role(0, 5, Role::Processes);
    sketch.role(1, 3, Role::Leads).event(1, 4, Action::Sleeps).event(1, 6, Action::Events(1));
    assert_eq!(moves(&sketch), [(1, 0, 0), (3, 1, 1)]);
}

#[test]
fn a_thread_has_a_seat_from_the_moment_at_which_it_enters() {
    let mut sketch = Sketch::new(&["follows", "b", "outside"]);
    sketch.role(0, 1, Role::Follows).role(1, 2, Role::Processes).wake(2, 3, 7);
    assert_eq!(moves(&sketch), [(1, 0, 0), (2, 1, 1)]);
}

#[test]
fn a_thread_outside_gives_its_seat_up_and_takes_it_again_if_it_is_free() {
    let mut sketch = Sketch::new(&["a", "b", "c"]);
    sketch.role(0, 1, Role::Processes).role(1, 2, Role::Processes);
    sketch.role(0, 3, Role::Outside).role(1, 4, Role::Outside).role(1, 5, Role::Processes);
    sketch.role(2, 6, Role::Processes).role(0, 7, Role::Processes);
    assert_eq!(moves(&sketch), [(1, 0, 0), (2, 1, 1), (5, 1, 1), (6, 2, 0), (7, 0, 2)]);
}

/// Two threads have seats. The first one is stalled from 10 on, which is reported at 20, and goes on at 50.
fn with_stall() -> Sketch {
    let mut sketch = Sketch::new(&["stalled", "other", "third", "deputy"]);
    sketch.role(0, 1, Role::Processes).role(1, 2, Role::Processes).role(1, 3, Role::Follows);
    sketch.poll(0, 10, 7).stall(3, 20, 0, 10).stall(3, 40, 0, 30);
    sketch.poll_ends(0, 50).role(0, 51, Role::Follows);
    sketch
}

#[test]
fn a_replacement_takes_the_seat_of_the_stalled_thread_which_moves_with_its_whole_poll() {
    let mut sketch = with_stall();
    sketch.role(2, 30, Role::Leads);
    assert_eq!(moves(&sketch), [(1, 0, 0), (2, 1, 1), (10, 0, 2), (30, 2, 0)]);
}

#[test]
fn a_thread_that_enters_after_the_stall_replaces_no_other() {
    let mut sketch = with_stall();
    sketch.role(2, 55, Role::Leads);
    assert_eq!(moves(&sketch), [(1, 0, 0), (2, 1, 1), (55, 2, 2)]);
}

#[test]
fn a_thread_with_dropped_events_replaces_no_other() {
    let mut sketch = with_stall();
    sketch.role(2, 30, Role::Leads);
    sketch.trace.threads[2].dropped = 1;
    assert_eq!(moves(&sketch), [(1, 0, 0), (2, 1, 1), (30, 2, 2)]);
}

#[test]
fn a_thread_that_entered_before_the_stall_replaces_no_other() {
    let mut sketch = with_stall();
    sketch.role(1, 30, Role::Leads);
    assert_eq!(moves(&sketch), [(1, 0, 0), (2, 1, 1)]);
}

#[test]
fn a_stalled_thread_returns_to_its_first_seat_when_that_is_free() {
    let mut sketch = with_stall();
    sketch.role(2, 30, Role::Leads).role(2, 60, Role::Outside);
    // The seat that it had meanwhile is free for the next thread.
    sketch.role(0, 70, Role::Processes).role(3, 80, Role::Processes);
    assert_eq!(moves(&sketch)[3..], [(30, 2, 0), (70, 0, 0), (80, 3, 2)]);
}

#[test]
fn a_stalled_thread_moves_to_no_seat_that_was_taken_when_its_poll_began() {
    let mut sketch = with_stall();
    // Seat 1 becomes free while the poll lasts. It is not free for the whole poll.
    sketch.role(1, 15, Role::Outside).role(2, 30, Role::Leads);
    assert_eq!(moves(&sketch)[2..], [(10, 0, 2), (30, 2, 0)]);
}

#[test]
fn a_stall_outside_of_a_poll_counts_from_the_last_change() {
    let mut sketch = Sketch::new(&["stalled", "replacement", "deputy"]);
    sketch.role(0, 1, Role::Processes).poll(0, 2, 7).poll_ends(0, 10).wake(0, 11, 7);
    sketch.stall(2, 20, 0, 10).role(1, 30, Role::Leads);
    assert_eq!(moves(&sketch), [(1, 0, 0), (10, 0, 1), (30, 1, 0)]);
}

#[test]
fn a_replacement_may_come_before_the_report() {
    let mut sketch = with_stall();
    sketch.role(2, 15, Role::Leads);
    assert_eq!(moves(&sketch), [(1, 0, 0), (2, 1, 1), (10, 0, 2), (15, 2, 0)]);
}

#[test]
fn a_thread_that_moved_for_its_replacement_keeps_the_new_seat_when_another_thread_comes() {
    let mut sketch = with_stall();
    sketch.role(2, 30, Role::Leads).role(3, 41, Role::Processes);
    assert_eq!(moves(&sketch)[2..], [(10, 0, 2), (30, 2, 0), (41, 3, 3)]);
}

#[test]
fn a_thread_that_sleeps_is_not_stalled() {
    let mut sketch = Sketch::new(&["asleep", "new", "deputy"]);
    sketch.role(0, 1, Role::Leads).event(0, 2, Action::Sleeps).stall(2, 3, 0, 1).role(1, 4, Role::Processes);
    assert_eq!(moves(&sketch), [(1, 0, 0), (4, 1, 1)]);
}

#[test]
fn a_leader_that_has_events_returns_to_its_first_seat() {
    let mut sketch = with_stall();
    sketch.role(2, 30, Role::Leads).role(0, 55, Role::Leads).event(0, 56, Action::Sleeps);
    sketch.role(2, 60, Role::Outside).event(0, 70, Action::Events(1));
    assert_eq!(moves(&sketch)[3..], [(30, 2, 0), (70, 0, 0)]);
}

#[test]
fn a_thread_that_wakes_inside_of_a_poll_keeps_its_seat() {
    let mut sketch = Sketch::new(&["stalled", "replacement", "deputy"]);
    sketch.role(0, 1, Role::Processes).poll(0, 10, 7).stall(2, 20, 0, 10);
    sketch.role(1, 30, Role::Leads).role(1, 40, Role::Outside);
    // The task calls `block_on`.
    sketch.role(0, 50, Role::Follows).role(0, 60, Role::Processes);
    assert_eq!(moves(&sketch), [(1, 0, 0), (10, 0, 1), (30, 1, 0)]);
}

#[test]
fn no_two_threads_have_the_same_seat_and_each_thread_that_is_awake_has_one() {
    for seed in 0..2_000 {
        let trace = sketch::at_random(seed);
        let timeline = Timeline::new(&trace);
        let mut moves = assign(&trace, &timeline).into_iter().peekable();
        let mut seats = vec![None; trace.threads.len()];
        for (index, mark) in timeline.marks.iter().enumerate() {
            while let Some(change) = moves.next_if(|change| change.mark == index) {
                seats[change.thread] = Some(change.seat);
            }
            if mark.action == Action::Role(Role::Outside) {
                seats[mark.thread] = None;
            }
            assert!(!mark.is_awake || seats[mark.thread].is_some(), "{seed}: {index} {mark:?}");
            let mut taken: Vec<_> = seats.iter().flatten().collect();
            taken.sort();
            assert!(taken.windows(2).all(|two| two[0] != two[1]), "{seed}: {index} {seats:?}");
        }
        assert_eq!(moves.next(), None);
        assert!(timeline.end > Duration::ZERO);
    }
}
