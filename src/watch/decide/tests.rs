//! The table of rules, row by row; and long random sequences of snapshots, of which rules hold whatever they
//! are.

use super::Step::*;
use super::*;
use crate::executor::Queues;
use crate::pool::Staff;
use crate::sync::Instant;
use crate::watch::observe::StuckSeen;

const TICK: Duration = Duration::from_millis(1);

fn nothing(now: Instant) -> Snapshot {
    Snapshot {
        now,
        tick: TICK,
        is_quiet: false,
        is_needed: true,
        is_abandoned: false,
        is_busy: false,
        reliefs: 0,
        starting_reliefs: 0,
        crew: None,
        has_surplus: false,
        runners: Vec::new(),
        stays: Vec::new(),
        queues: Vec::new(),
    }
}

/// A worker that waits for events, or is about to.
fn idle(id: Id) -> RunnerSeen {
    RunnerSeen {
        id,
        is_crew: true,
        has_moved: false,
        doing: None,
        computed: Duration::ZERO,
        work: (Duration::ZERO, 0),
        holds_permit: false,
        is_at_work: false,
        waits_nested: false,
        is_replacement: false,
    }
}

/// A worker that is in one task.
fn stuck(id: Id, doing: Doing, computed: Duration) -> RunnerSeen {
    RunnerSeen { doing: Some(doing), computed, is_at_work: true, ..idle(id) }
}

fn blocks(id: Id) -> RunnerSeen {
    stuck(id, Doing::Blocks, Duration::ZERO)
}

/// A worker that sleeps in a `block_on` inside of its task.
fn nests(id: Id) -> RunnerSeen {
    RunnerSeen { waits_nested: true, ..blocks(id) }
}

fn computes(id: Id, computed: Duration) -> RunnerSeen {
    stuck(id, Doing::Computes, computed)
}

fn waits(id: Id) -> RunnerSeen {
    stuck(id, Doing::Waits, Duration::ZERO)
}

fn dozes(id: Id) -> RunnerSeen {
    stuck(id, Doing::Dozes, Duration::ZERO)
}

fn moves(id: Id) -> RunnerSeen {
    RunnerSeen { has_moved: true, ..idle(id) }
}

/// A worker that has a permit for what it is in.
fn holds(runner: RunnerSeen) -> RunnerSeen {
    RunnerSeen { holds_permit: true, ..runner }
}

fn replacement(runner: RunnerSeen) -> RunnerSeen {
    RunnerSeen { is_replacement: true, ..runner }
}

/// A worker that has used so many microseconds since the last look, in so many polls.
fn worked(id: Id, micros: u64, polls: u64) -> RunnerSeen {
    RunnerSeen { work: (Duration::from_micros(micros), polls), ..moves(id) }
}

/// A pool of two workers and these, of which there may be eight.
fn crew(runners: impl IntoIterator<Item = RunnerSeen>) -> Snapshot {
    let runners: Vec<_> = runners.into_iter().collect();
    let crew = Staff { threads: 2, max_threads: 8, live: runners.len(), late: 0, limit: usize::MAX };
    Snapshot { crew: Some(crew), runners, ..nothing(Instant::now()) }
}

impl Snapshot {
    fn abandoned(self) -> Self {
        Self { is_abandoned: true, ..self }
    }

    fn with_crew(mut self, change: impl FnOnce(&mut Staff)) -> Self {
        change(self.crew.as_mut().expect("it has workers"));
        self
    }

    fn surplus(self) -> Self {
        Self { has_surplus: true, ..self }
    }

    fn full(self) -> Self {
        self.with_crew(|crew| crew.max_threads = crew.live)
    }

    fn late(self, late: usize) -> Self {
        self.with_crew(|crew| {
            crew.late = late;
            crew.live += late;
        })
    }

    /// With so many permits.
    fn scarce(self, limit: usize) -> Self {
        self.with_crew(|crew| crew.limit = limit)
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
        ("no thread was awake at both looks", vec![moves(0), idle(1)], None),
        ("short", vec![worked(0, 1000, 63), idle(1)], Some(false)),
        ("long", vec![worked(0, 1000, 62), idle(1)], Some(true)),
        ("idle for three quarters of the time", vec![worked(0, 249, 1)], Some(false)),
        ("idle for less", vec![worked(0, 250, 1)], Some(true)),
        ("two threads together", vec![worked(0, 125, 1), worked(1, 125, 1)], Some(true)),
        ("of one many short polls", vec![worked(0, 250, 1), worked(1, 250, 40)], Some(false)),
        ("not one poll ended", vec![worked(0, 900, 0)], Some(true)),
    ];
    for (name, runners, expected) in rows {
        let seen = crew(runners);
        assert_eq!(first(&seen).has_long_polls, expected, "{name}");
        assert_eq!(first(&Snapshot { is_quiet: true, ..seen }).has_long_polls, Some(false), "{name}, quiet");
    }
    // The last answer holds for a while.
    let (mut memory, asleep) = (Memory::default(), crew([idle(0), idle(1)]));
    let answers = (0..100).map(|_| decide(&asleep, &mut memory).has_long_polls).collect::<Vec<_>>();
    assert_eq!((&answers[..99], answers[99]), (&[None; 99][..], Some(false)));
}

/// Fails for each row of the rules for leadership that is changed or left out.
#[test]
fn leadership_is_given_to_whatever_thread_can_have_it() {
    let two = |doing: fn(Id) -> RunnerSeen| crew([doing(0), doing(1)]).abandoned();
    let little = |id| computes(id, LITTLE);
    let long = |id| computes(id, LONG_POLL);
    let of_three = |second, third| crew([long(0), second, third]).abandoned();
    let without_workers = nothing(Instant::now()).abandoned();
    let busy = Snapshot { is_busy: true, ..without_workers.clone() };
    let rows: Vec<(&str, Snapshot, Vec<Step>)> = vec![
        ("it is led", crew([blocks(0), blocks(1)]), vec![]),
        ("one moves", crew([blocks(0), moves(1)]).abandoned(), vec![Rescue, LookUp(vec![1])]),
        ("blocked", two(blocks), vec![Rescue, AddWorker, AddRelief]),
        ("blocked, relief starting", two(blocks).reliefs(1, 1), vec![Rescue, AddWorker]),
        ("blocked, relief blocked too", two(blocks).reliefs(1, 0), vec![Rescue, AddWorker, AddRelief]),
        ("one has no core", two(waits), vec![Rescue]),
        ("one of two has no core", crew([blocks(0), waits(1)]).abandoned(), vec![Rescue]),
        ("no core, and one is late", crew([waits(0)]).late(1).abandoned(), vec![Rescue, AddRelief]),
        ("compute", two(little), vec![Rescue, AddWorker, AddRelief]),
        ("compute, relief there", two(little).reliefs(1, 0), vec![Rescue, AddWorker]),
        ("compute, no core for the relief", two(little).reliefs(1, 1), vec![Rescue, AddWorker]),
        ("the spare one computes, too", of_three(little(1), little(2)), vec![Rescue]),
        ("one blocks beside a spare one", of_three(blocks(1), little(2)), vec![Rescue, AddWorker, AddRelief]),
        ("all compute for long", of_three(long(1), long(2)), vec![Rescue, AddWorker, AddRelief]),
        ("all but one compute for long", of_three(little(1), long(2)), vec![Rescue]),
        ("compute, and one late", two(little).late(1), vec![Rescue, AddRelief]),
        (
            "too many, and one late",
            crew([little(0), little(1), little(2)]).abandoned().late(1),
            vec![Rescue, AddRelief],
        ),
        (
            "too many, one late, a relief there",
            crew([little(0), little(1), little(2)]).abandoned().late(1).reliefs(1, 0),
            vec![Rescue],
        ),
        ("no workers", without_workers.clone(), vec![Rescue, AddRelief]),
        ("no workers, relief starting", without_workers.reliefs(1, 1), vec![Rescue]),
        ("no workers, one runs", busy.clone(), vec![Rescue]),
    ];
    for (name, seen, steps) in rows {
        assert_eq!(first(&seen).lead, steps, "{name}");
    }
    // How long the deputy waits for a thread that runs, and for a relief.
    assert_eq!(lasting(&busy, BUSY_BEFORE_RELIEF).lead, [Rescue, AddRelief]);
    let led = two(little).reliefs(1, 0);
    assert_eq!(lasting(&led, BUSY_BEFORE_RELIEF - TICK).lead, [Rescue, AddWorker]);
    assert_eq!(lasting(&led, BUSY_BEFORE_RELIEF).lead, [Rescue, AddWorker, AddRelief]);
    // A relief that was started just now is given that time, too.
    let mut memory = Memory::default();
    let (late, at) = (busy.clone(), |looks| busy.clone().after(looks * TICK));
    decide(&late, &mut memory);
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
    let little = |id| computes(id, LITTLE);
    let long = |id| computes(id, LONG_POLL);
    let unneeded = |seen| Snapshot { is_needed: false, ..seen };
    let rows: Vec<(&str, Snapshot, bool)> = vec![
        ("nothing waits", crew([blocks(0), blocks(1)]), false),
        ("one is not stuck", crew([blocks(0), idle(1)]).surplus(), false),
        ("blocked", crew([blocks(0), blocks(1)]).surplus(), true),
        ("late to start", crew([]).late(2).surplus(), true),
        ("blocked, and one without a core", crew([blocks(0), waits(1)]).surplus(), false),
        ("compute", crew([little(0), little(1)]).surplus(), true),
        ("compute, and no events", unneeded(crew([little(0), little(1)]).surplus()), false),
        ("compute, beside a spare one", crew([little(0), little(1), idle(2)]).surplus().scarce(2), false),
        ("one computes for long", crew([little(0), long(1)]).surplus(), true),
        ("compute for long", crew([long(0), long(1)]).surplus(), true),
        ("compute for long, and no events", unneeded(crew([long(0), long(1)]).surplus()), true),
        ("one blocks beside a spare one", crew([little(0), blocks(1), idle(2)]).surplus().scarce(2), false),
        ("two block beside a spare one", crew([blocks(0), blocks(1), idle(2)]).surplus().scarce(2), false),
        (
            "two block, and the spare one computes",
            crew([blocks(0), blocks(1), little(2)]).surplus().scarce(2),
            true,
        ),
        ("one starts", crew([blocks(0), blocks(1)]).surplus().with_crew(|crew| crew.live = 3), false),
        ("one is late", crew([blocks(0), blocks(1)]).surplus().late(1), true),
    ];
    for (name, seen, is_wanted) in rows {
        assert_eq!(first(&seen).is_worker_wanted, is_wanted, "{name}");
    }
    // By the clock on the wall, ten times as late.
    let waiting = crew([waits(0), waits(1)]).surplus();
    assert!(!lasting(&waiting, 10 * LONG_POLL - TICK).is_worker_wanted);
    assert!(lasting(&waiting, 10 * LONG_POLL).is_worker_wanted);
    // From when on tasks wait.
    let mut memory = Memory::default();
    decide(&waiting, &mut memory);
    decide(&crew([waits(0), waits(1)]).after(LONG_POLL), &mut memory);
    assert!(!decide(&waiting.clone().after(10 * LONG_POLL), &mut memory).is_worker_wanted);
}

/// So many workers compute as the crew has, and one is free, whichever that is.
#[test]
fn as_many_may_take_tasks_as_there_are_workers_while_one_is_spare() {
    let little = |id| computes(id, LITTLE);
    let held = |id| holds(computes(id, LITTLE));
    let none = usize::MAX;
    let rows: Vec<(&str, Snapshot, usize)> = vec![
        ("one computes beside a free one", crew([little(0), idle(1), idle(2)]), none),
        ("no spare one", crew([little(0), little(1)]), none),
        ("the spare one is about to start", crew([little(0), little(1)]).abandoned(), 0),
        // Otherwise it would take a task that waits, and compute, too.
        ("the spare one is late to start", crew([little(0), little(1)]).late(1), 0),
        ("one has no core, the spare one is about to start", crew([little(0), waits(1)]).abandoned(), 0),
        ("one has no core for what it took before", crew([little(0), waits(1), idle(2)]), 0),
        ("one dozes in what it took before", crew([little(0), dozes(1), idle(2)]), 0),
        ("all compute, and took what they do before", crew([little(0), little(1), idle(2)]), 0),
        ("one has come for the next task since", crew([little(0), held(1), idle(2)]), 1),
        ("all have", crew([held(0), held(1), idle(2)]), 2),
        ("the spare one computes what an event woke", crew([held(0), held(1), little(2)]), 1),
        ("one blocks with a permit", crew([held(0), held(1), little(2), holds(blocks(3)), idle(4)]), 2),
        ("one blocks without", crew([held(0), held(1), blocks(2), idle(3)]), 2),
        ("all but one block", crew([held(0), holds(blocks(1)), idle(2)]), none),
        ("one waits for a core", crew([held(0), holds(waits(1)), idle(2)]), 2),
        ("it is stopped", crew([held(0), held(1), idle(2)]).with_crew(|crew| crew.max_threads = 0), none),
    ];
    for (name, seen, limit) in rows {
        assert_eq!(first(&seen).limit, (limit != none).then_some(limit), "{name}");
        assert_eq!(first(&seen.clone().scarce(limit)).limit, None, "{name}: as it is already");
        assert_eq!(first(&seen.scarce(7)).limit, Some(limit), "{name}");
    }
}

/// After all workers have computed, permits stay scarce until the spare worker is gone. The deputy releases
/// the spare worker when the workers have not all computed for two seconds, or after one in a quiet pool.
/// Fails if the limit goes before the worker: all would take the tasks of the next burst, and no thread would
/// lead.
#[test]
fn permits_are_needed_until_the_spare_worker_is_gone() {
    let computing = crew([holds(computes(0, LITTLE)), holds(computes(1, LITTLE)), replacement(idle(2))]);
    for (is_quiet, busy) in [(false, SURPLUS_STAYS), (true, TICK)] {
        let mut memory = Memory::default();
        let at = |runners: Vec<RunnerSeen>, after| {
            let seen = crew(runners).scarce(2);
            Snapshot { is_quiet, now: computing.now, ..seen }.after(after)
        };
        let free = |after| at(vec![idle(0), idle(1), replacement(idle(2))], after);
        assert_eq!(decide(&computing, &mut memory).limit, Some(2));
        assert!(!memory.may_sleep());
        for after in [busy, busy + SURPLUS_STAYS - TICK] {
            let actions = decide(&free(after), &mut memory);
            assert_eq!((actions.limit, actions.released, memory.may_sleep()), (None, vec![], false));
        }
        let actions = decide(&free(busy + SURPLUS_STAYS), &mut memory);
        assert_eq!((actions.limit, actions.released, memory.may_sleep()), (None, vec![2], false));
        let gone = at(vec![idle(0), idle(1)], busy + SURPLUS_STAYS + TICK);
        assert_eq!(decide(&gone, &mut memory).limit, Some(usize::MAX));
        assert!(memory.may_sleep());
    }
}

/// Fails if permits are limited for a worker that cannot be added: each worker would wait for a permit after
/// each task.
#[test]
fn no_permits_are_needed_where_no_spare_worker_can_come() {
    let all = crew([computes(0, LITTLE), computes(1, LITTLE)]).abandoned().surplus();
    let actions = first(&all.clone().full());
    assert_eq!((actions.lead, actions.limit), (vec![Rescue, AddWorker, AddRelief], None));
    assert_eq!(first(&all).limit, Some(0));
}

/// Each extra worker doubles the time that is long, and is given up after a second in which not all computed.
#[test]
fn each_extra_worker_doubles_what_is_long() {
    let mut memory = Memory::default();
    let start = Instant::now();
    let busy = |threads: usize, computed: Duration, looks: u32| {
        let all = (0..threads).map(|id| holds(computes(id, computed))).chain([idle(threads)]);
        let seen = crew(all).surplus().scarce(threads).with_crew(|crew| crew.max_threads = 100);
        Snapshot { now: start + looks * TICK, ..seen }
    };
    let almost = |long: Duration| long - Duration::from_nanos(1);
    for (look, (threads, long)) in
        [(2, LONG_POLL), (3, 2 * LONG_POLL), (4, 4 * LONG_POLL)].into_iter().enumerate()
    {
        let look = look as u32 + 1;
        assert_eq!(decide(&busy(threads, almost(long), look), &mut memory).limit, None, "{threads}");
        let actions = decide(&busy(threads, long, look), &mut memory);
        // The spare one takes what waits. If it computes, too, the next one comes.
        assert_eq!((memory.extra, actions.is_worker_wanted), (threads - 1, false), "{threads}");
        let all = busy(threads + 1, long, look).with_crew(|crew| {
            crew.live = threads + 1;
            crew.limit = usize::MAX;
        });
        let actions = decide(&all, &mut memory);
        assert_eq!((actions.is_worker_wanted, actions.limit), (true, Some(threads + 1)), "{threads}");
    }
    assert_eq!(memory.extra, 3);
    for (seconds, extra) in [(2, 2), (3, 1), (4, 0), (5, 0)] {
        let free = Snapshot { now: start + seconds * SURPLUS_STAYS, ..crew([idle(0), idle(1)]) };
        decide(&free, &mut memory);
        assert_eq!(memory.extra, extra);
    }
    assert!(memory.scarce_since.is_none());
}

/// Fails if each thread that is added for a hook that blocks its start, and calls it, too, is a reason for
/// the next one.
#[test]
fn late_workers_are_made_up_for_up_to_the_number_of_workers() {
    let all = crew([]).late(4).abandoned().surplus();
    let one_less = all.clone().with_crew(|crew| crew.live -= 1);
    assert_eq!(first(&one_less).lead, [Rescue, AddWorker, AddRelief]);
    assert_eq!(first(&all).lead, [Rescue, AddRelief]);
    assert!(!first(&all).is_worker_wanted);
    let mut memory = Memory::default();
    decide(&all, &mut memory);
    assert!(memory.overstaffed.is_none());
    decide(&all.with_crew(|crew| crew.live = 5), &mut memory);
    assert!(memory.overstaffed.is_some());
}

#[test]
fn tasks_move_to_threads_that_are_free() {
    let none = Queues {
        has_surplus: true,
        is_untouched: true,
        is_any_idle: false,
        is_permit_free: true,
        has_stuck: false,
    };
    let with = |queues: &Queues| Snapshot { queues: vec![queues.clone()], ..crew([idle(0)]) };
    let steps = |queues: Queues| first(&with(&queues)).queues;
    assert_eq!(steps(none.clone()), []);
    assert_eq!(steps(Queues { has_stuck: true, ..none.clone() }), [HandOver(0)]);
    assert_eq!(steps(Queues { is_any_idle: true, ..none.clone() }), [WakeRunner(0)]);
    assert_eq!(steps(Queues { is_any_idle: true, is_untouched: false, ..none.clone() }), []);
    // Without a permit it sifts, and not at each look; until a task is taken.
    let sifting = Queues { is_permit_free: false, ..none };
    let mut memory = Memory::default();
    let mut sifts = |looks: u32| {
        (0..looks).filter(|_| decide(&with(&sifting), &mut memory).queues == [WakeRunner(0)]).count()
    };
    assert_eq!([sifts(1), sifts(7), sifts(1), sifts(7), sifts(80)], [1, 0, 1, 0, 10]);
    memory.forget_last_look();
    assert_eq!(decide(&with(&sifting), &mut memory).queues, [WakeRunner(0)]);
    let mut touched = Memory { pause: 8, ..Memory::default() };
    let taken = Queues { is_untouched: false, ..sifting.clone() };
    assert_eq!(decide(&with(&taken), &mut touched).queues, []);
    assert_eq!(decide(&with(&sifting), &mut touched).queues, [WakeRunner(0)]);
}

/// Workers that sleep in a nested `block_on` do not count against `max_threads`, up to a bound.
#[test]
fn as_many_workers_are_exempt_as_wait_in_a_nested_block_on() {
    let exempt = |runners: Vec<RunnerSeen>| first(&crew(runners).surplus().full()).exempt;
    assert_eq!(exempt(vec![blocks(0), blocks(1)]), 0);
    assert_eq!(exempt(vec![nests(0), blocks(1), nests(2)]), 2);
    // Not if the thread computes there.
    assert_eq!(exempt(vec![RunnerSeen { waits_nested: false, ..nests(0) }]), 0);
    assert_eq!(exempt((0..MAX_NESTED + 3).map(nests).collect()), MAX_NESTED);
    // A spare worker is started only if the crew may grow.
    let grows = |runners: Vec<RunnerSeen>| Workforce::of(&crew(runners).full()).may_grow;
    assert!(!grows(vec![blocks(0), blocks(1)]) && grows(vec![nests(0), blocks(1)]));
    assert!(!Workforce::of(&crew([nests(0)]).with_crew(|crew| crew.max_threads = 0)).may_grow);
}

/// A replacement that blocks is not released, and workers beyond `max_threads` are all released at once.
#[test]
fn replacements_beyond_the_limit_go_together() {
    let most = |runners: [RunnerSeen; 5]| crew(runners).with_crew(|crew| crew.max_threads = 3);
    let free = [idle(0), idle(1), replacement(idle(2)), replacement(idle(3)), replacement(idle(4))];
    assert_eq!(lasting(&most(free.clone()), SURPLUS_STAYS).released, [2, 3]);
    let mut one_blocks = free;
    one_blocks[2] = replacement(blocks(2));
    assert_eq!(lasting(&most(one_blocks), SURPLUS_STAYS).released, [3, 4]);
}

#[test]
fn threads_that_are_too_many_for_a_second_go() {
    let most = || crew([idle(0), idle(1), replacement(idle(2)), replacement(idle(3)), replacement(idle(4))]);
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
    // Replacements of threads that block are excused, and so is a spare worker while others compute.
    let excused = crew([blocks(0), computes(1, LITTLE), replacement(idle(2)), replacement(idle(3))]);
    assert_eq!(lasting(&excused, SURPLUS_STAYS).released, []);
}

#[test]
fn a_stay_is_marked_and_reported() {
    let stay = StuckSeen { doing: Doing::Blocks, blocked: LITTLE, is_task: true, is_known: true };
    let with = |stay: &StuckSeen| Snapshot { stays: vec![stay.clone()], ..crew([waits(0)]) };
    let doing = |doing| {
        let actions = first(&with(&StuckSeen { doing, ..stay.clone() }));
        (actions.marks, actions.stalls)
    };
    assert_eq!(doing(Doing::Blocks), (vec![(0, Caught::Blocking)], vec![0]));
    assert_eq!(doing(Doing::Computes), (vec![(0, Caught::Computing)], vec![0]));
    assert_eq!(doing(Doing::Waits), (vec![], vec![0]));
    assert_eq!(doing(Doing::Dozes), (vec![], vec![0]));
    let future = first(&with(&StuckSeen { is_task: false, ..stay.clone() }));
    assert_eq!((future.marks, future.stalls), (vec![], vec![0]));
    let unknown = first(&with(&StuckSeen { is_known: false, ..stay.clone() }));
    assert_eq!((unknown.marks.len(), unknown.stalls), (1, vec![]));
    // Beside a worker without a core it may sleep in a lock of that worker's, for a while.
    assert_eq!(lasting(&with(&stay), TICK).stalls, []);
    assert_eq!(lasting(&with(&StuckSeen { blocked: INNOCENT, ..stay.clone() }), TICK).stalls, [0]);
    assert_eq!(lasting(&with(&StuckSeen { doing: Doing::Computes, ..stay }), TICK).stalls, [0]);
}

/// Each look starts one worker at most.
#[test]
fn steps_are_taken_until_one_succeeds() {
    let actions = || Actions {
        first: vec![DismissReliefs],
        lead: vec![Rescue, AddWorker, AddRelief],
        queues: vec![HandOver(0), WakeRunner(1)],
        is_worker_wanted: true,
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
    let all = [DismissReliefs, Rescue, AddWorker, AddRelief, HandOver(0), WakeRunner(1), AddWorker];
    let without = |skipped: &[usize]| -> Vec<Step> {
        let left = all.iter().enumerate().filter(|(at, _)| !skipped.contains(at));
        left.map(|(_, step)| step.clone()).collect()
    };
    assert_eq!(taken(actions(), &[]), without(&[2, 3]));
    assert_eq!(taken(actions(), &[Rescue]), without(&[3, 6]));
    assert_eq!(taken(actions(), &[Rescue, AddWorker]), all);
}

#[test]
fn a_leader_that_is_about_to_block_is_made_up_for_once() {
    let mut memory = Memory::default();
    decide(&crew([blocks(0), idle(1)]), &mut memory);
    assert!(memory.count_blocked(2, 2) && memory.count_blocked(4, 2) && !memory.count_blocked(6, 2));
    decide(&Snapshot { is_quiet: true, ..crew([idle(0)]) }, &mut memory);
    assert!(memory.count_blocked(2, 2) && !memory.count_blocked(4, 2));
}

mod random;
