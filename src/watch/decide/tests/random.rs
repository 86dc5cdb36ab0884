//! Random pools, look by look: workers block, compute and come back, and do what was decided. Whatever
//! happens, the rules keep their promises.

use std::collections::BTreeSet;

use super::*;

/// Sequences, and looks of each.
const SEQUENCES: u64 = 20_000;
const LOOKS: usize = 12;

/// A generator of random numbers (xorshift), seeded with the number of the sequence.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % sides
    }

    /// True once in so many times.
    fn draw_one_in(&mut self, sides: usize) -> bool {
        self.below(sides) == 0
    }
}

struct World {
    dice: Dice,
    now: Instant,
    /// No task computes for long, and the whole sequence is short.
    is_calm: bool,
    /// `None` in a pool without workers.
    threads: Option<usize>,
    max_threads: usize,
    runners: Vec<MemberSeen>,
    /// Threads that have been started: whether as standbys.
    starting: Vec<bool>,
    reliefs: usize,
    starting_reliefs: usize,
    is_abandoned: bool,
    tasks: Queues,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let threads = (!dice.draw_one_in(8)).then(|| 1 + dice.below(3));
        let workers = threads.unwrap_or_else(|| dice.below(3));
        let runners = (0..workers).map(|_| MemberSeen { is_crew: threads.is_some(), ..idle() }).collect();
        Self {
            now: Instant::now(),
            is_calm: dice.draw_one_in(2),
            threads,
            max_threads: workers + dice.below(6),
            runners,
            starting: Vec::new(),
            reliefs: 0,
            starting_reliefs: 0,
            is_abandoned: false,
            tasks: Queues::default(),
            dice,
        }
    }

    fn live(&self) -> usize {
        self.runners.len() + self.starting.len()
    }

    /// Time goes by, and threads do what they like.
    fn go_on(&mut self) {
        let steps = if self.is_calm { [1, 2, 4] } else { [1, 10, 300] };
        let passed = steps[self.dice.below(3)] * TICK;
        self.now += passed;
        for at in 0..self.runners.len() {
            let runner = &mut self.runners[at];
            if self.dice.draw_one_in(3) {
                let same = MemberSeen {
                    is_crew: runner.is_crew,
                    is_replacement: runner.is_replacement,
                    is_standby: runner.is_standby,
                    ..idle()
                };
                let at_work = MemberSeen { is_at_work: true, ..same.clone() };
                *runner = match self.dice.below(8) {
                    0 => MemberSeen { has_moved: true, ..same },
                    1 => MemberSeen { doing: Some(Doing::Blocks), ..at_work },
                    2 => MemberSeen { doing: Some(Doing::Blocks), is_below: true, ..at_work },
                    3 | 4 => MemberSeen { doing: Some(Doing::Computes), ..at_work },
                    5 => MemberSeen { doing: Some(Doing::Waits), ..at_work },
                    6 => MemberSeen { doing: Some(Doing::Blocks), is_in_hook: true, ..at_work },
                    _ => same,
                };
            } else if runner.doing == Some(Doing::Computes) {
                runner.has_moved = false;
                runner.computed += if self.is_calm { TICK } else { passed };
            }
        }
        if self.dice.draw_one_in(2) && !self.starting.is_empty() {
            let is_standby = self.starting.remove(0);
            self.runners.push(MemberSeen { is_standby, ..replacement(idle()) });
        }
        if self.starting_reliefs > 0 && self.dice.draw_one_in(2) {
            self.starting_reliefs -= 1;
        }
        if self.dice.draw_one_in(4) {
            self.is_abandoned = self.dice.draw_one_in(2);
            let mut waiting =
                || [Waiting::None, Waiting::None, Waiting::Some, Waiting::Untouched][self.dice.below(4)];
            self.tasks = Queues { injected: waiting(), left: waiting(), ..Queues::default() };
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        let crew =
            self.threads.map(|threads| Staff { threads, max_threads: self.max_threads, live: self.live() });
        let dice = &mut self.dice;
        let members = self.runners.iter().map(|runner| {
            let is_task = runner.doing.is_some() && runner.is_at_work;
            MemberSeen { blocked: LITTLE, is_task, ..runner.clone() }
        });
        let members = members.collect();
        let queues = (0..2).map(|_| Queues {
            is_any_idle: dice.draw_one_in(2),
            has_stuck: self.tasks.has_tasks() && dice.draw_one_in(4),
            ..self.tasks.clone()
        });
        let queues = queues.collect();
        Snapshot {
            now: self.now,
            is_needed: self.is_abandoned || dice.draw_one_in(2),
            is_abandoned: self.is_abandoned,
            reliefs: self.reliefs,
            starting_reliefs: self.starting_reliefs,
            crew,
            tasks: self.tasks.clone(),
            members,
            queues,
            ..nothing(self.now)
        }
    }

    /// Takes a step, which may fail.
    fn take(&mut self, step: &Step) -> bool {
        match step {
            Rescue => {
                let follower = self.runners.iter().any(|runner| runner.doing.is_none());
                if !follower || self.dice.draw_one_in(2) {
                    return false;
                }
                self.is_abandoned = false;
            }
            AddTaker | AddStandby => {
                if self.live() >= self.max_threads || self.dice.draw_one_in(16) {
                    return false;
                }
                self.starting.push(*step == AddStandby);
            }
            EndStandby(id) => self.runners[*id].is_standby = false,
            AddRelief => {
                self.reliefs += 1;
                self.starting_reliefs += 1;
            }
            DismissReliefs => (self.reliefs, self.starting_reliefs) = (0, 0),
            WakeStandby(_) | HandOver(_) | WakeRunner(_) => {}
        }
        true
    }
}

/// The name of what is reached.
fn name(step: &Step) -> &'static str {
    match step {
        DismissReliefs => "dismiss",
        Rescue => "rescue",
        WakeStandby(_) => "wake standby",
        AddTaker => "add taker",
        AddStandby => "add standby",
        EndStandby(_) => "end standby",
        AddRelief => "add relief",
        HandOver(_) => "hand over",
        WakeRunner(_) => "wake runner",
    }
}

/// Whether a thread comes to lead that is not stuck for good, as far as is known.
fn is_thread_on_its_way(seen: &Snapshot, extra: usize) -> bool {
    let comes = |runner: &MemberSeen| runner.doing.is_none_or(|doing| doing == Doing::Waits);
    let starting = seen.crew.as_ref().is_some_and(|crew| crew.live > seen.members.len());
    // Both standbys compute: one of them comes after its task, unless all compute for long.
    let workforce = Workforce { extra, ..Workforce::of(seen) };
    let are_standbys_busy = seen.crew.is_some() && workforce.standbys >= STANDBYS + extra;
    starting || are_standbys_busy || seen.reliefs > 0 || seen.members.iter().any(comes)
}

/// Asserts the rules that hold for every look.
fn check(seen: &Snapshot, actions: &Actions, taken: &[(Step, bool)], extra: usize) {
    let context = || format!("{seen:#?}\n{actions:#?}\n{taken:#?}");
    let added = taken.iter().filter(|(step, done)| *done && step.starts_worker()).count();
    assert!(added <= 1, "more than one worker at a look: {}", context());
    assert!(added == 0 || actions.released.is_empty(), "one comes and one goes: {}", context());
    if let Some(crew) = seen.crew.as_ref().filter(|_| added == 1) {
        assert!(crew.live < crew.max_threads, "{}", context());
        let blocks = |runner: &MemberSeen| runner.doing == Some(Doing::Blocks) && !runner.is_in_hook;
        let blocked = seen.members.iter().filter(|it| blocks(it)).count();
        let standbys: Vec<_> = seen.members.iter().filter(|it| it.is_standby && !blocks(it)).collect();
        if taken.iter().any(|(step, done)| *done && *step == AddStandby) {
            let are_busy = standbys.iter().all(|it| it.doing == Some(Doing::Computes) || it.is_hooked());
            assert!(standbys.len() < STANDBYS + extra && are_busy, "too many: {}", context());
        } else {
            let takers = crew.live - blocked - standbys.len();
            assert!(takers < crew.threads + extra, "too many: {}", context());
        }
        assert!(seen.is_abandoned || seen.tasks.has_tasks(), "without need: {}", context());
    }
    let relief = taken.iter().any(|(step, _)| *step == AddRelief);
    assert!(!relief || seen.is_abandoned && seen.starting_reliefs == 0, "{}", context());
    if seen.is_abandoned {
        assert_eq!(actions.lead.first(), Some(&Rescue), "{}", context());
        let done = taken.iter().any(|(step, done)| *done && actions.lead.contains(step));
        assert!(done || is_thread_on_its_way(seen, extra), "events wait: {}", context());
    }
}

/// Fails if any rule breaks a promise, or an action is never decided.
#[test]
#[cfg_attr(miri, ignore = "takes hours there, and has no unsafe code")]
fn whatever_is_seen_the_rules_keep_their_promises() {
    let mut reached = BTreeSet::new();
    for seed in 0..SEQUENCES {
        let (mut world, mut memory, mut unserved) = (World::new(seed), Memory::default(), 0);
        for _ in 0..LOOKS {
            world.go_on();
            let seen = world.snapshot();
            let before = memory.extra;
            let actions = decide(&seen, &mut memory);
            let mut taken = Vec::new();
            actions.perform(|step| {
                let done = world.take(step);
                taken.push((step.clone(), done));
                done
            });
            check(&seen, &actions, &taken, memory.extra);
            // Tasks wait, and each worker blocks.
            let is_lost =
                |it: &MemberSeen| it.doing == Some(Doing::Blocks) && it.is_at_work && !it.is_in_hook;
            let crew =
                seen.crew.as_ref().filter(|crew| seen.tasks.has_tasks() && crew.live < crew.max_threads);
            let takes_none = |it: &MemberSeen| it.is_standby && it.doing != Some(Doing::Waits);
            let all_lost = seen.members.iter().all(|it| is_lost(it) || takes_none(it));
            let all_lost = all_lost && world.starting.len() <= 1;
            let tried = memory.extra > before || taken.iter().any(|(step, _)| *step == AddTaker);
            let starts = crew.is_some_and(|crew| crew.live > seen.members.len());
            unserved = if crew.is_some() && all_lost && !starts && !tried { unserved + 1 } else { 0 };
            assert!(unserved < 2, "tasks wait: {seen:#?}\n{actions:#?}");
            reached.extend(taken.iter().map(|(step, _)| name(step)));
            reached.extend((!actions.marks.is_empty()).then_some("mark"));
            reached.extend((!actions.stalls.is_empty()).then_some("stall"));
            reached.extend((!actions.released.is_empty()).then_some("release"));
            reached.extend((memory.extra > before).then_some("extra"));
        }
        all_is_well(world, memory, seed);
    }
    assert_eq!(reached.len(), 13, "{reached:?}");
}

/// All come back, and nothing waits: nothing is done but to let threads go, until there are as many as there
/// are to be.
fn all_is_well(mut world: World, mut memory: Memory, seed: u64) {
    let back = |it: &MemberSeen| {
        let it = it.clone();
        MemberSeen { has_moved: true, doing: None, is_below: false, is_in_hook: false, ..it }
    };
    world.runners.iter_mut().for_each(|it| *it = back(it));
    (world.is_abandoned, world.tasks) = (false, Queues::default());
    world.starting.clear();
    for look in 0..60 {
        let crew = world.snapshot().crew;
        let crew = crew.map(|crew| Staff { live: world.runners.len(), ..crew });
        let members = world.runners.clone();
        let seen = Snapshot { crew, members, ..nothing(world.now + look * SURPLUS_STAYS) };
        let actions = decide(&seen, &mut memory);
        actions.perform(|step| unreachable!("{seed}: {step:?} for nothing: {seen:#?}"));
        let expected = Actions {
            released: actions.released.clone(),
            has_long_polls: actions.has_long_polls,
            ..Actions::default()
        };
        assert_eq!(actions, expected);
        let beyond = world.runners.len().saturating_sub(world.max_threads);
        assert!(actions.released.len() <= beyond.max(1));
        let mut ids = 0..;
        world.runners.retain(|_| !actions.released.contains(&ids.next().expect("it has no end")));
    }
    assert_eq!(memory.extra, 0, "{seed}");
}
