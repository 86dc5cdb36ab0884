use super::*;
use crate::trace::sketch::{self, Sketch};

/// Returns the actions of a thread.
fn actions(timeline: &Timeline, thread: usize) -> Vec<Action> {
    timeline.marks.iter().filter(|mark| mark.thread == thread).map(|mark| mark.action).collect()
}

/// Returns the index of the only mark with this action, and that mark.
fn find(timeline: &Timeline, is_it: impl Fn(&Action) -> bool) -> (usize, &Mark) {
    let mut found = timeline.marks.iter().enumerate().filter(|(_, mark)| is_it(&mark.action));
    let it = found.next().unwrap();
    assert!(found.next().is_none());
    it
}

#[test]
fn within_one_tick_leadership_ends_before_it_begins() {
    let mut sketch = Sketch::new(&["first", "between", "last"]);
    sketch.role(1, 1, Role::Processes).role(2, 1, Role::Leads).wake(2, 2, 7).role(2, 2, Role::Follows);
    // All three at the same time: the last one stops, the middle one leads for no time, the first one begins.
    sketch.role(0, 2, Role::Leads).role(1, 2, Role::Leads).role(1, 2, Role::Follows);
    let timeline = Timeline::new(&sketch.trace);
    let leaders: Vec<_> = timeline.marks.iter().map(|mark| mark.counts.leaders).collect();
    assert_eq!(leaders, [0, 1, 1, 0, 1, 0, 1]);
    let threads: Vec<_> = timeline.marks.iter().map(|mark| mark.thread).collect();
    assert_eq!(threads, [1, 2, 2, 2, 1, 1, 0]);
}

#[test]
fn two_leaders_are_counted_as_two() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.role(0, 1, Role::Leads).role(1, 2, Role::Leads).role(0, 3, Role::Follows);
    let timeline = Timeline::new(&sketch.trace);
    assert_eq!(timeline.marks.iter().map(|mark| mark.counts.leaders).max(), Some(2));
}

#[test]
fn what_is_open_at_the_end_is_closed_and_what_has_no_beginning_is_left_out() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.poll_ends(0, 1).poll(0, 2, 1).poll(0, 3, 2);
    sketch.event(1, 1, Action::Sleeps).role(1, 4, Role::Processes).role(1, 5, Role::Leads);
    sketch.event(1, 6, Action::Sleeps);
    let timeline = Timeline::new(&sketch.trace);
    let (spawned_at, other) = (sketch::place(1), sketch::place(2));
    let from = crate::trace::FoundIn::Queue;
    let polls = [
        Action::Role(Role::Processes),
        Action::PollBegins { task: 1, spawned_at, from },
        Action::PollBegins { task: 2, spawned_at: other, from },
        Action::PollEnds,
        Action::PollEnds,
    ];
    assert_eq!(actions(&timeline, 0), polls);
    let roles = [
        Action::Role(Role::Leads),
        Action::Sleeps,
        Action::Events(0),
        Action::Role(Role::Processes),
        Action::Role(Role::Leads),
        Action::Sleeps,
        Action::Events(0),
    ];
    assert_eq!(actions(&timeline, 1), roles);
    assert_eq!(timeline.end, Duration::from_micros(6));
}

#[test]
fn an_event_after_the_snapshot_is_left_out() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.role(0, 1, Role::Leads).role(1, 9, Role::Leads).poll(1, 10, 7);
    sketch.trace.taken_at = Duration::from_micros(5);
    let timeline = Timeline::new(&sketch.trace);
    assert_eq!(actions(&timeline, 0), [Action::Role(Role::Leads)]);
    assert_eq!(actions(&timeline, 1), []);
}

#[test]
fn the_end_wakes_no_thread() {
    let mut sketch = Sketch::new(&["a"]);
    sketch.role(0, 1, Role::Leads).event(0, 2, Action::Sleeps);
    let timeline = Timeline::new(&sketch.trace);
    let last = timeline.marks.last().unwrap();
    assert_eq!((last.action, last.is_awake, last.counts.awake), (Action::Events(0), false, 0));
}

#[test]
fn a_poll_has_all_wakes_since_the_poll_before_it() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.role(0, 0, Role::Processes).wake(0, 1, 7).wake(0, 2, 7).wake(0, 3, 8);
    sketch.role(1, 0, Role::Processes).poll(1, 4, 7).wake(1, 5, 7).poll_ends(1, 6).poll(1, 7, 7);
    let timeline = Timeline::new(&sketch.trace);
    let wakes = |at: u64| {
        let poll = timeline.marks.iter().find(|mark| mark.at == Duration::from_micros(at)).unwrap();
        let times = poll.causes.iter().map(|cause| timeline.marks[*cause].at.as_micros());
        times.collect::<Vec<_>>()
    };
    assert_eq!((wakes(4), wakes(7)), (vec![1, 2], vec![5]));
}

#[test]
fn a_promotion_leads_to_the_next_time_at_which_that_thread_leads() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.role(0, 0, Role::Processes).promote(0, 1, 1).role(1, 0, Role::Follows).role(1, 5, Role::Leads);
    sketch.role(1, 6, Role::Follows).role(1, 7, Role::Leads);
    let timeline = Timeline::new(&sketch.trace);
    let (promotion, _) = find(&timeline, |action| matches!(action, Action::Promotes { .. }));
    let leads = timeline.marks.iter().filter(|mark| mark.action == Action::Role(Role::Leads));
    assert_eq!(leads.map(|mark| &*mark.causes).collect::<Vec<_>>(), [&[promotion][..], &[]]);
}

#[test]
fn a_wake_whose_poll_may_be_missing_is_no_cause() {
    let mut sketch = Sketch::new(&["a", "b"]);
    sketch.role(0, 0, Role::Processes).wake(0, 1, 7).wake(0, 3, 8);
    sketch.role(1, 2, Role::Processes).poll(1, 4, 7).poll(1, 5, 8);
    let causes = |sketch: &Sketch| {
        let timeline = Timeline::new(&sketch.trace);
        let polls = timeline.marks.iter().filter(|mark| matches!(mark.action, Action::PollBegins { .. }));
        polls.map(|mark| mark.causes.len()).collect::<Vec<_>>()
    };
    assert_eq!(causes(&sketch), [1, 1]);
    // The poll of task 7 for that wake may have been among them.
    sketch.trace.threads[1].dropped = 1;
    assert_eq!(causes(&sketch), [0, 1]);
}

#[test]
fn tasks_are_ready_from_wake_to_poll_and_a_leader_that_sleeps_is_not_awake() {
    let mut sketch = Sketch::new(&["a"]);
    sketch.role(0, 0, Role::Leads).event(0, 1, Action::Sleeps).event(0, 2, Action::Events(1));
    sketch.spawn(0, 3, 1).wake(0, 4, 1).wake(0, 5, 2).wake(0, 6, 3).poll(0, 7, 1);
    sketch.event(0, 8, Action::Ends { task: 2 });
    let timeline = Timeline::new(&sketch.trace);
    let counts: Vec<_> = timeline.marks.iter().map(|mark| (mark.counts.ready, mark.counts.awake)).collect();
    assert_eq!(counts[..9], [(0, 1), (0, 0), (0, 1), (1, 1), (1, 1), (2, 1), (3, 1), (2, 1), (1, 1)]);
}

#[test]
fn the_rules_hold_for_random_events() {
    for seed in 0..500 {
        let trace = sketch::at_random(seed);
        let timeline = Timeline::new(&trace);
        assert!(timeline.marks.is_sorted_by_key(|mark| mark.at));
        assert!(timeline.marks.last().is_some_and(|mark| mark.at <= timeline.end));
        for thread in 0..trace.threads.len() {
            let actions = actions(&timeline, thread);
            assert!(matches!(actions[0], Action::Role(_)), "{seed}: {actions:?}");
            let (mut polls, mut sleeps) = (0_usize, false);
            for action in actions {
                match action {
                    Action::PollBegins { .. } => polls += 1,
                    Action::PollEnds => polls = polls.checked_sub(1).unwrap(),
                    Action::Sleeps => assert!(!std::mem::replace(&mut sleeps, true)),
                    Action::Events(_) => sleeps = false,
                    Action::Role(_) => assert!(!sleeps),
                    _ => {}
                }
            }
            assert_eq!((polls, sleeps), (0, false), "{seed}: thread {thread}");
        }
        for mark in &timeline.marks {
            for cause in &mark.causes {
                assert!(timeline.marks[*cause].at <= mark.at, "{seed}");
            }
        }
    }
}

#[test]
fn the_same_role_again_is_no_mark() {
    let mut sketch = Sketch::new(&["a"]);
    sketch.role(0, 1, Role::Leads).event(0, 2, Action::Sleeps).role(0, 3, Role::Leads);
    sketch.event(0, 4, Action::Events(1));
    let marks = [Action::Role(Role::Leads), Action::Sleeps, Action::Events(1)];
    assert_eq!(actions(&Timeline::new(&sketch.trace), 0), marks);
}

#[test]
fn before_its_first_role_a_thread_is_outside_unless_events_were_dropped() {
    let mut sketch = Sketch::new(&["a", "deputy"]);
    sketch.wake(0, 1, 7).role(0, 2, Role::Follows).stall(1, 3, 0, 1);
    let first_role = |sketch: &Sketch, thread| actions(&Timeline::new(&sketch.trace), thread)[0];
    assert_eq!(first_role(&sketch, 0), Action::Role(Role::Outside));
    sketch.trace.threads.iter_mut().for_each(|thread| thread.dropped = 1);
    assert_eq!(first_role(&sketch, 0), Action::Role(Role::Processes));
    assert_eq!(first_role(&sketch, 1), Action::Role(Role::Outside));
}
