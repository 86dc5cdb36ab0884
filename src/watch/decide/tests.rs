//! The table of rules, row by row; and long random sequences of snapshots, of which rules hold whatever they
//! are.

use super::Step::*;
use super::*;
use crate::executor::{Queues, Waiting};
use crate::pool::Staff;
use crate::sync::Instant;

const TICK: Duration = Duration::from_millis(1);

fn nothing(now: Instant) -> Snapshot {
    Snapshot {
        now,
        tick: TICK,
        is_quiet: false,
        is_needed: true,
        is_abandoned: false,
        reliefs: 0,
        starting_reliefs: 0,
        crew: None,
        tasks: Queues::default(),
        members: Vec::new(),
        queues: Vec::new(),
    }
}

/// A worker that waits for events, or is about to.
fn idle() -> MemberSeen {
    MemberSeen { is_crew: true, ..MemberSeen::default() }
}

/// A worker that is in one task.
fn stuck(doing: Doing, computed: Duration) -> MemberSeen {
    MemberSeen { doing: Some(doing), computed, is_at_work: true, ..idle() }
}

fn blocks() -> MemberSeen {
    stuck(Doing::Blocks, Duration::ZERO)
}

fn computes(computed: Duration) -> MemberSeen {
    stuck(Doing::Computes, computed)
}

fn waits() -> MemberSeen {
    stuck(Doing::Waits, Duration::ZERO)
}

/// A worker that blocks in a park hook.
fn hooked() -> MemberSeen {
    MemberSeen { is_in_hook: true, ..blocks() }
}

fn moves() -> MemberSeen {
    MemberSeen { has_moved: true, ..idle() }
}

fn standby(runner: MemberSeen) -> MemberSeen {
    MemberSeen { is_standby: true, ..replacement(runner) }
}

fn replacement(runner: MemberSeen) -> MemberSeen {
    MemberSeen { is_replacement: true, ..runner }
}

/// A worker that has used so many microseconds since the last look, in so many polls.
fn worked(micros: u64, polls: u64) -> MemberSeen {
    MemberSeen { work: (Duration::from_micros(micros), polls), ..moves() }
}

/// A pool of two workers and these, of which there may be eight.
fn crew(members: impl IntoIterator<Item = MemberSeen>) -> Snapshot {
    let members: Vec<_> = members.into_iter().collect();
    let crew = Staff { threads: 2, max_threads: 8, live: members.len() };
    Snapshot { crew: Some(crew), members, ..nothing(Instant::now()) }
}

impl Snapshot {
    fn abandoned(self) -> Self {
        Self { is_abandoned: true, ..self }
    }

    fn with_crew(mut self, change: impl FnOnce(&mut Staff)) -> Self {
        change(self.crew.as_mut().expect("it has workers"));
        self
    }

    /// Tasks wait in the injector, and none was taken since the last look.
    fn surplus(self) -> Self {
        Self { tasks: Queues { injected: Waiting::Untouched, ..Queues::default() }, ..self }
    }

    /// The same in the slow queue.
    fn slow(self) -> Self {
        Self { tasks: Queues { left: Waiting::Untouched, ..Queues::default() }, ..self }
    }

    fn full(self) -> Self {
        self.with_crew(|crew| crew.max_threads = crew.live)
    }

    fn starting(self, more: usize) -> Self {
        self.with_crew(|crew| crew.live += more)
    }

    fn reliefs(self, reliefs: usize, starting_reliefs: usize) -> Self {
        Self { reliefs, starting_reliefs, ..self }
    }

    fn after(self, memory: Duration) -> Self {
        Self { now: self.now + memory, ..self }
    }
}

/// Returns what is decided at the first look.
fn first(seen: &Snapshot) -> Actions {
    decide(seen, &mut Memory::default())
}

/// Returns what is decided if the same has been seen for so long.
fn lasting(seen: &Snapshot, lasted: Duration) -> Actions {
    let mut memory = Memory::default();
    decide(seen, &mut memory);
    decide(&seen.clone().after(lasted), &mut memory)
}

const LITTLE: Duration = Duration::from_millis(5);

/// Fails if threads that are asleep, idle most of the time, or busy with short polls count as busy with long
/// ones.
#[test]
fn polls_are_long_where_threads_are_busy_and_use_sixteen_microseconds_for_each() {
    let rows = [
        ("no thread was awake at both looks", vec![moves(), idle()], None),
        ("short", vec![worked(1000, 63), idle()], Some(false)),
        ("long", vec![worked(1000, 62), idle()], Some(true)),
        ("idle for three quarters of the time", vec![worked(249, 1)], Some(false)),
        ("idle for less", vec![worked(250, 1)], Some(true)),
        ("two threads together", vec![worked(125, 1), worked(125, 1)], Some(true)),
        ("of one many short polls", vec![worked(250, 1), worked(250, 40)], Some(false)),
        ("not one poll ended", vec![worked(900, 0)], Some(true)),
    ];
    for (name, runners, expected) in rows {
        let seen = crew(runners);
        assert_eq!(first(&seen).has_long_polls, expected, "{name}");
        assert_eq!(first(&Snapshot { is_quiet: true, ..seen }).has_long_polls, Some(false), "{name}, quiet");
    }
    // The last answer holds for a while.
    let (mut memory, asleep) = (Memory::default(), crew([idle(), idle()]));
    let answers = (0..100).map(|_| decide(&asleep, &mut memory).has_long_polls).collect::<Vec<_>>();
    assert_eq!((&answers[..99], answers[99]), (&[None; 99][..], Some(false)));
}

/// Fails for each row of the rules for leadership that is changed or left out.
#[test]
fn leadership_is_given_to_whatever_thread_can_have_it() {
    let two = |doing: fn() -> MemberSeen| crew([doing(), doing()]).abandoned();
    let little: fn() -> MemberSeen = || computes(LITTLE);
    let of_three = |second, third| crew([little(), second, third]).abandoned();
    let one_busy = |doing: fn() -> MemberSeen| of_three(little(), standby(doing()));
    let both_busy = |taker: fn() -> MemberSeen, other: fn() -> MemberSeen| {
        crew([taker(), taker(), standby(little()), standby(other())]).abandoned()
    };
    let without_workers = nothing(Instant::now()).abandoned();
    let occupied = without_workers.clone().reliefs(1, 0);
    let starts = both_busy(little, little).starting(1);
    let rows: Vec<(&str, Snapshot, Vec<Step>)> = vec![
        ("it is led", crew([blocks(), blocks()]), vec![]),
        ("one moves", crew([blocks(), moves()]).abandoned(), vec![Rescue]),
        ("blocked", two(blocks), vec![Rescue, AddTaker, AddRelief]),
        ("blocked, relief starting", two(blocks).reliefs(1, 1), vec![Rescue, AddTaker]),
        ("blocked, relief blocked too", two(blocks).reliefs(1, 0), vec![Rescue, AddTaker, AddRelief]),
        ("one has no core", two(waits), vec![Rescue]),
        ("one of two has no core", crew([blocks(), waits()]).abandoned(), vec![Rescue]),
        ("no core, and one starts", crew([waits()]).starting(1).abandoned(), vec![Rescue, AddRelief]),
        ("compute", two(little), vec![Rescue, AddStandby, AddRelief]),
        ("compute, relief there", two(little).reliefs(1, 0), vec![Rescue, AddStandby]),
        ("compute, no core for the relief", two(little).reliefs(1, 1), vec![Rescue, AddStandby]),
        ("a standby is free", of_three(little(), standby(idle())), vec![Rescue]),
        ("a standby has no core", of_three(little(), standby(waits())), vec![Rescue]),
        ("a worker starts", two(little).starting(1), vec![Rescue, AddRelief]),
        ("in a hook", two(hooked), vec![Rescue, AddRelief]),
        ("in a hook, relief there", two(hooked).reliefs(1, 0), vec![Rescue]),
        (
            "one in a hook, one blocks",
            crew([hooked(), blocks()]).abandoned(),
            vec![Rescue, AddTaker, AddRelief],
        ),
        (
            "one in a hook, one computes",
            crew([hooked(), little()]).abandoned(),
            vec![Rescue, AddStandby, AddRelief],
        ),
        ("the standby computes", one_busy(little), vec![Rescue, AddStandby, AddRelief]),
        ("the standby blocks", one_busy(blocks), vec![Rescue, AddStandby, AddRelief]),
        ("both standbys compute", both_busy(little, little), vec![Rescue]),
        ("one of them blocks", both_busy(little, blocks), vec![Rescue, AddStandby, AddRelief]),
        ("one is short", of_three(blocks(), standby(little())), vec![Rescue, AddTaker, AddRelief]),
        (
            "both standbys compute, and one starts",
            both_busy(little, little).starting(1),
            vec![Rescue, AddRelief],
        ),
        (
            "both standbys compute, one starts, a relief there",
            both_busy(little, little).starting(1).reliefs(1, 0),
            vec![Rescue],
        ),
        ("too many reliefs", two(blocks).reliefs(MAX_RELIEFS, 0), vec![Rescue, AddTaker]),
        ("no workers", without_workers.clone(), vec![Rescue, AddRelief]),
        ("no workers, relief starting", without_workers.clone().reliefs(1, 1), vec![Rescue]),
        ("no workers, relief there", occupied.clone(), vec![Rescue, AddRelief]),
    ];
    for (name, seen, steps) in rows {
        assert_eq!(first(&seen).lead, steps, "{name}");
    }
    // If nothing leads for long, there may be more takers and more standbys.
    assert_eq!(lasting(&both_busy(little, little), LONG - TICK).lead, [Rescue]);
    assert_eq!(lasting(&both_busy(little, little), LONG).lead, [Rescue, AddTaker, AddRelief]);
    let three = [little(), little(), little(), standby(little()), standby(little())];
    assert_eq!(lasting(&crew(three).abandoned(), LONG).lead, [Rescue, AddStandby, AddRelief]);
    // How long the deputy waits for a relief.
    let led = two(little).reliefs(1, 0);
    assert_eq!(lasting(&led, BUSY_BEFORE_RELIEF - TICK).lead, [Rescue, AddStandby]);
    assert_eq!(lasting(&led, BUSY_BEFORE_RELIEF).lead, [Rescue, AddStandby, AddRelief]);
    // A relief that was started just now is given that time, too.
    let mut memory = Memory::default();
    let at = |looks| starts.clone().reliefs(1, 0).after(looks * TICK);
    decide(&at(0), &mut memory);
    assert_eq!(decide(&at(10), &mut memory).lead, [Rescue, AddRelief]);
    assert_eq!(decide(&at(11), &mut memory).lead, [Rescue]);
    assert_eq!(decide(&at(20), &mut memory).lead, [Rescue, AddRelief]);
    // Leadership that was taken meanwhile is not abandoned for long.
    decide(&Snapshot { is_abandoned: false, ..at(21) }, &mut memory);
    assert_eq!(decide(&at(31), &mut memory).lead, [Rescue]);
}

/// Fails for each row of the rules for tasks that wait which is changed or left out.
#[test]
fn tasks_that_wait_get_a_worker_where_all_are_stuck() {
    let little = || computes(LITTLE);
    let beside = |second, third| crew([little(), second, standby(third)]);
    let none = || vec![];
    let touched = |seen: Snapshot| {
        let tasks = Queues { injected: Waiting::Some, left: Waiting::Some, ..Queues::default() };
        Snapshot { tasks, ..seen }
    };
    let rows: Vec<(&str, Snapshot, Vec<Step>)> = vec![
        ("nothing waits", crew([blocks(), blocks()]), none()),
        ("one is not stuck", crew([blocks(), idle()]).surplus(), none()),
        ("blocked", crew([blocks(), blocks()]).surplus(), vec![AddTaker]),
        ("blocked, beside slow tasks", crew([blocks(), blocks()]).slow(), vec![AddTaker]),
        ("blocked, and one was taken", touched(crew([blocks(), blocks()])), vec![AddTaker]),
        ("blocked, and one without a core", crew([blocks(), waits()]).surplus(), none()),
        ("in a hook", crew([hooked(), hooked()]).surplus(), none()),
        ("one in a hook, one blocks", crew([hooked(), blocks()]).surplus(), vec![AddTaker]),
        ("... and the replacement in a hook", crew([hooked(), blocks(), hooked()]).surplus(), none()),
        ("compute", crew([little(), little()]).surplus(), vec![AddStandby]),
        ("compute, and one was taken", touched(crew([little(), little()])), none()),
        ("compute, beside slow tasks", crew([little(), little()]).slow(), none()),
        ("compute, beside a standby", beside(little(), idle()).surplus(), vec![WakeStandby(2)]),
        ("compute, beside a standby, and one was taken", touched(beside(little(), idle())), none()),
        ("compute, beside a standby and slow tasks", beside(little(), idle()).slow(), none()),
        ("compute, and so does the standby", beside(little(), little()).surplus(), vec![AddStandby]),
        (
            "compute, and so do both standbys",
            crew([little(), little(), standby(little()), standby(little())]).surplus(),
            none(),
        ),
        ("one has no core, beside a standby", beside(waits(), idle()).surplus(), vec![WakeStandby(2)]),
        ("one blocks beside a standby", beside(blocks(), idle()).surplus(), vec![AddTaker]),
        ("... and there may be no more", beside(blocks(), idle()).surplus().full(), vec![EndStandby(2)]),
        ("... and the standby computes", beside(blocks(), little()).surplus().full(), vec![AddTaker]),
        ("one starts", crew([blocks(), blocks()]).surplus().starting(1), none()),
    ];
    for (name, seen, steps) in rows {
        assert_eq!(first(&seen).queues, steps, "{name}");
    }
    // One more taker comes after a while, if none was taken from one of the queues.
    let in_hooks = crew([hooked(), hooked()]);
    for waiting in [crew([waits(), little()]).slow(), beside(little(), idle()).slow(), in_hooks.surplus()] {
        assert_eq!(lasting(&waiting, LONG - TICK).queues, []);
        assert_eq!(lasting(&waiting, LONG).queues, [AddTaker]);
        let mut memory = Memory::default();
        decide(&waiting, &mut memory);
        decide(&touched(waiting.clone()).after(LONG / 2), &mut memory);
        assert_eq!(decide(&waiting.clone().after(LONG), &mut memory).queues, []);
    }
    assert_eq!(lasting(&crew([little(), little()]).slow().full(), LONG).queues, []);
    // Where there may be no more workers, a free standby becomes a taker.
    let standby_is_last = beside(little(), idle()).slow().full();
    assert_eq!(lasting(&standby_is_last, LONG - TICK).queues, []);
    assert_eq!(lasting(&standby_is_last, LONG).queues, [EndStandby(2)]);
    // No worker lives, because the system had no thread: one is started for the tasks that wait.
    assert_eq!(first(&touched(crew([]))).queues, [AddTaker]);
}

/// A row of the worked table: the scene, what [`Workforce`] counts in it, and what is decided.
type Row = (&'static str, Snapshot, [usize; 4], Vec<Step>, Vec<Step>);

/// The worked table in the documentation of the module.
#[test]
fn the_worked_table() {
    let little = || computes(LITTLE);
    let rows: [Row; 6] = [
        ("one blocks, one sleeps", crew([blocks(), idle()]), [2, 1, 1, 0], vec![AddTaker], vec![]),
        ("both block", crew([blocks(), blocks()]), [2, 0, 0, 0], vec![AddTaker], vec![AddTaker]),
        ("both compute", crew([little(), little()]), [2, 2, 2, 0], vec![AddStandby], vec![AddStandby]),
        (
            "both compute beside a standby that sleeps",
            crew([little(), little(), standby(idle())]),
            [3, 3, 2, 1],
            vec![],
            vec![WakeStandby(2)],
        ),
        (
            "both compute, and the standby too",
            crew([little(), little(), standby(little())]),
            [3, 3, 2, 1],
            vec![AddStandby],
            vec![AddStandby],
        ),
        (
            "one blocks and one computes beside a standby",
            crew([blocks(), little(), standby(idle())]),
            [3, 2, 1, 1],
            vec![AddTaker],
            vec![AddTaker],
        ),
    ];
    for (name, seen, counted, lead, queues) in rows {
        let seen = seen.surplus().abandoned();
        let workforce = Workforce::of(&seen);
        let counts =
            [workforce.live, workforce.live - workforce.blocked, workforce.takers(), workforce.standbys];
        assert_eq!(counts, counted, "{name}");
        let actions = first(&seen);
        let starts =
            |steps: &[Step]| steps.iter().filter(|it| it.starts_worker()).cloned().collect::<Vec<_>>();
        assert_eq!((actions.lead.first(), starts(&actions.lead)), (Some(&Rescue), lead), "{name}");
        assert_eq!(actions.queues, queues, "{name}");
    }
}

/// Standbys stay for a second after all takers have computed, and the deputy looks until they are gone.
#[test]
fn a_standby_stays_for_a_second_and_is_released_after_another_one() {
    let computing = crew([computes(LITTLE), computes(LITTLE), standby(idle())]);
    for (is_quiet, busy) in [(false, SURPLUS_STAYS), (true, TICK)] {
        let mut memory = Memory::default();
        let at = |runners: Vec<MemberSeen>, after| {
            Snapshot { is_quiet, now: computing.now, ..crew(runners) }.after(after)
        };
        let free = |after| at(vec![idle(), idle(), standby(idle())], after);
        decide(&computing, &mut memory);
        assert!(!memory.may_sleep());
        for after in [busy, busy + SURPLUS_STAYS - TICK] {
            assert_eq!(decide(&free(after), &mut memory).released, []);
            assert!(!memory.may_sleep());
        }
        assert_eq!(decide(&free(busy + SURPLUS_STAYS), &mut memory).released, [2]);
        decide(&at(vec![idle(), idle()], busy + SURPLUS_STAYS + TICK), &mut memory);
        assert!(memory.may_sleep());
    }
}

/// Takers that are too many go first: without a standby no thread leads while they compute. Fails, too, if so
/// many go that too few are left.
#[test]
fn takers_that_are_too_many_go_before_standbys() {
    let busy = || computes(LITTLE);
    let back = [busy(), busy(), standby(idle()), replacement(busy()), replacement(idle())];
    assert_eq!(lasting(&crew(back), SURPLUS_STAYS).released, [3]);
    let two_standbys = [blocks(), busy(), replacement(busy()), standby(busy()), standby(idle())];
    assert_eq!(lasting(&crew(two_standbys), SURPLUS_STAYS).released, [3]);
}

/// Each extra taker doubles the time that is long, and is given up after a second in which not all computed.
#[test]
fn each_extra_taker_doubles_what_is_long() {
    let mut memory = Memory::default();
    let start = Instant::now();
    let mut now = start;
    for extra in 0..3 {
        let all = (0..2 + extra).map(|_| computes(LITTLE)).chain([standby(idle())]);
        let seen = crew(all).slow().with_crew(|crew| crew.max_threads = 100);
        let long = LONG * (1 << extra);
        let mut steps = |passed| decide(&Snapshot { now: now + passed, ..seen.clone() }, &mut memory).queues;
        assert_eq!(
            [steps(Duration::ZERO), steps(long - TICK), steps(long)],
            [vec![], vec![], vec![AddTaker]]
        );
        assert_eq!(memory.extra, extra + 1);
        now += long;
    }
    for (seconds, extra) in [(1, 3), (2, 2), (3, 1), (4, 0), (5, 0)] {
        let free = Snapshot { now: now + seconds * SURPLUS_STAYS - TICK, ..crew([idle(), idle()]) };
        decide(&free, &mut memory);
        assert_eq!(memory.extra, extra);
    }
    assert!(memory.busy_since.is_none());
}

#[test]
fn tasks_move_to_threads_that_are_free() {
    let none = Queues { injected: Waiting::Untouched, ..Queues::default() };
    let steps = |queues: Queues| first(&Snapshot { queues: vec![queues], ..crew([idle()]) }).queues;
    assert_eq!(steps(none.clone()), []);
    assert_eq!(steps(Queues { has_stuck: true, ..none.clone() }), [HandOver(0)]);
    let idle = Queues { is_any_idle: true, ..none };
    assert_eq!(steps(idle.clone()), [WakeRunner(0)]);
    assert_eq!(steps(Queues { injected: Waiting::Some, ..idle.clone() }), []);
    let slow = |left| Queues { injected: Waiting::None, left, ..idle.clone() };
    assert_eq!([steps(slow(Waiting::Untouched)), steps(slow(Waiting::Some))], [vec![WakeRunner(0)], vec![]]);
}

#[test]
fn threads_that_are_too_many_for_a_second_go() {
    let most = || crew([idle(), idle(), replacement(idle()), replacement(idle()), replacement(idle())]);
    assert_eq!(first(&most()).released, []);
    assert_eq!(lasting(&most(), SURPLUS_STAYS - TICK).released, []);
    assert_eq!(lasting(&most(), SURPLUS_STAYS).released, [2]);
    let quiet = Snapshot { is_quiet: true, ..most() };
    assert_eq!(lasting(&quiet, SURPLUS_STAYS).released, [2, 3, 4]);
    // At most one each second.
    let mut memory = Memory::default();
    let always = most();
    let mut released =
        |look: u32| decide(&always.clone().after(look * 10 * TICK), &mut memory).released.len();
    let looks: usize = (0..400).map(&mut released).sum();
    assert_eq!(looks, 3);
    // The second begins when there are too many.
    decide(&always.clone().with_crew(|crew| crew.live = 2).after(4500 * TICK), &mut memory);
    assert_eq!(decide(&always.clone().after(5500 * TICK), &mut memory).released, []);
    // Replacements of threads that block are excused, and so is a standby while others compute.
    let excused = crew([blocks(), computes(LITTLE), replacement(idle()), replacement(idle())]);
    assert_eq!(lasting(&excused, SURPLUS_STAYS).released, []);
}

#[test]
fn a_stay_is_marked_and_reported() {
    let stay = MemberSeen { blocked: LITTLE, is_task: true, ..blocks() };
    let with = |stay: &MemberSeen| crew([stay.clone(), waits()]);
    let doing = |doing| {
        let actions = first(&with(&MemberSeen { doing: Some(doing), ..stay.clone() }));
        (actions.marks, actions.stalls.contains(&0))
    };
    assert_eq!(doing(Doing::Blocks), (vec![(0, Caught::Blocking)], true));
    assert_eq!(doing(Doing::Computes), (vec![], true), "it has used less than a tick");
    let computes = MemberSeen { is_task: true, ..computes(TICK) };
    assert_eq!(first(&with(&computes)).marks, [(0, Caught::Computing)]);
    assert_eq!(doing(Doing::Waits), (vec![], true));
    assert_eq!(doing(Doing::Dozes), (vec![], true));
    let future = first(&with(&MemberSeen { is_task: false, ..stay.clone() }));
    assert_eq!((future.marks, future.stalls.contains(&0)), (vec![], true));
    // Beside a worker without a core it may sleep in a lock of that worker's, for a while.
    let is_listed = |stay: &MemberSeen| lasting(&with(stay), TICK).stalls.contains(&0);
    assert!(!is_listed(&stay) && is_listed(&MemberSeen { blocked: INNOCENT, ..stay.clone() }));
    assert!(is_listed(&MemberSeen { doing: Some(Doing::Computes), ..stay }));
}

/// Each look starts one worker at most.
#[test]
fn steps_are_taken_until_one_succeeds() {
    let actions = || Actions {
        lead: vec![Rescue, AddTaker, AddRelief],
        queues: vec![DismissReliefs, HandOver(0), WakeRunner(1), AddTaker],
        ..Actions::default()
    };
    let taken = |actions: Actions, fails: &[Step]| {
        let mut taken = Vec::new();
        actions.perform(|step| {
            taken.push(step.clone());
            !fails.contains(step)
        });
        taken
    };
    let all = [Rescue, AddTaker, AddRelief, DismissReliefs, HandOver(0), WakeRunner(1), AddTaker];
    let without = |skipped: &[usize]| -> Vec<Step> {
        let left = all.iter().enumerate().filter(|(at, _)| !skipped.contains(at));
        left.map(|(_, step)| step.clone()).collect()
    };
    assert_eq!(taken(actions(), &[]), without(&[1, 2]));
    assert_eq!(taken(actions(), &[Rescue]), without(&[2, 6]));
    assert_eq!(taken(actions(), &[Rescue, AddTaker]), all);
}

#[test]
fn a_leader_that_is_about_to_block_is_made_up_for_once() {
    let mut memory = Memory::default();
    decide(&crew([blocks(), idle()]), &mut memory);
    assert!(memory.count_blocked(2, 2) && memory.count_blocked(4, 2) && !memory.count_blocked(6, 2));
    decide(&Snapshot { is_quiet: true, ..crew([idle()]) }, &mut memory);
    assert!(memory.count_blocked(2, 2) && !memory.count_blocked(4, 2));
}

mod random;
