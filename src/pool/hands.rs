//! [`Hands`]: who of a crew is there to run tasks, as the deputy finds it; and who is to come.
//!
//! **How many threads there may be.** Those that block do not count: as many others as the crew has workers are to be there, and
//! no more where they wait for cores. Where they compute there may be one more, the *reserve*, which takes no surplus and so
//! is free for what events wake ([`Runner::is_reserve`]). A reserve becomes a worker as any other where one of these blocks, or
//! where it computes for long itself; and one of those that are left over from that becomes the reserve.
//!
//! *Long* is a tenth of a second of processor time, and twice as long with each thread that there is too many: tasks that take
//! so long get as many threads as it takes to finish one in that time, and not one for each of them.

use std::sync::Arc;
use std::task::Wake;
use std::time::Duration;

use super::crew::Staff;
use super::stall::STALL;
use super::witness::Doing;
use super::{Crew, Pool, Station};
use crate::executor::Runner;
use crate::sync::Instant;

/// Processor time that one poll may use before somebody is added who does what its thread does not come to.
const LONG: Duration = Duration::from_millis(100);

/// What a look found among the workers, and other threads that host a runner.
#[derive(Debug, Default)]
pub(super) struct Hands {
    /// Somebody got further since the last look, whose thread is awake.
    pub(super) any_moves: bool,
    /// Runners of the crew that are stuck in a task, but the reserve.
    pub(super) stuck: usize,
    /// Threads of the crew that block.
    pub(super) blocked: usize,
    /// Somebody of the crew computes.
    pub(super) computes: bool,
    /// One of the workers has no core, and comes to whatever is left as soon as it has one. The others may sleep until then: in a
    /// lock that it has, be it the allocator's.
    pub(super) waits: bool,
    /// What those that are stuck and do not block have computed at least, each in the poll it is in; but the reserve.
    computed: Option<Duration>,
    /// The same of the reserve, if there is one. Nothing, if it is not stuck.
    pub(super) reserve: Option<Duration>,
    /// Workers that take longer to start than they should; all of them.
    late: usize,
    live: usize,
    /// How many there are to be.
    usual: usize,
}

impl Hands {
    /// Those of a crew that nobody has looked at yet.
    pub(super) fn of(crew: &Crew, now: Instant) -> Self {
        let Staff { live, late, reserve } = crew.staff(now, STALL);
        Self {
            live,
            late,
            reserve: reserve.then_some(Duration::ZERO),
            usual: crew.threads(),
            ..Self::default()
        }
    }

    /// One of the crew's runners: what its thread is at, if it got no further, and how long it has computed at that.
    pub(super) fn count(&mut self, station: &Station, runner: &Runner, stuck: Option<(Doing, Duration)>) {
        let is_reserve = runner.is_reserve();
        if is_reserve {
            self.reserve = Some(stuck.map_or(Duration::ZERO, |(_, computed)| computed));
        }
        let Some((doing, computed)) = stuck else { return };
        self.blocked += usize::from(doing == Doing::Blocks);
        self.computes |= doing == Doing::Computes;
        // It polls a task, or calls a waker.
        let is_at_work = runner.beat().is_in_task() || station.pulse() % 2 == 1;
        if !is_reserve && is_at_work {
            self.stuck += 1;
            self.waits |= doing == Doing::Waits;
            if doing != Doing::Blocks {
                self.computed = Some(self.computed.map_or(computed, |least| least.min(computed)));
            }
        }
    }

    /// How many threads of the crew run, or would if they had a core and something to do.
    fn able(&self) -> usize {
        self.live.saturating_sub(self.blocked + self.late)
    }

    /// The same without the reserve, which is no help to tasks that wait.
    fn able_workers(&self) -> usize {
        self.able().saturating_sub(usize::from(self.reserve.is_some()))
    }

    /// Whether there are fewer of them than there are to be, and none who is on its way.
    pub(super) fn is_short(&self) -> bool {
        self.able() < self.usual && !self.waits
    }

    /// The same without the reserve.
    pub(super) fn is_short_of_workers(&self) -> bool {
        self.able_workers() < self.usual && !self.waits
    }

    /// Whether all workers are stuck. Threads that are only starting are no help yet, but no reason for more of them either: not
    /// at once.
    pub(super) fn are_all_stuck(&self) -> bool {
        self.stuck + self.late >= self.live.saturating_sub(usize::from(self.reserve.is_some()))
    }

    /// Whether there are more than there are to be, the reserve among them. Who is late to start may only wait for a core, too.
    pub(super) fn is_one_too_many(&self) -> bool {
        self.able() + self.late > self.usual
    }

    pub(super) fn has_reserve(&self) -> bool {
        self.reserve.is_some()
    }

    /// Whether somebody takes longer to start than it should.
    pub(super) fn is_late(&self) -> bool {
        self.late > 0
    }

    /// How many there may be on top of those that there are to be: for those that block, and the reserve.
    pub(super) fn excused(&self) -> usize {
        self.blocked + self.late + usize::from(self.computes)
    }

    /// Whether the reserve computes for so long that it has become one of those beside which there is to be one.
    pub(super) fn is_reserve_lost(&self) -> bool {
        self.reserve.is_some_and(|computed| self.is_long(computed))
    }

    /// Whether all workers compute for so long that somebody is to come to the tasks that wait.
    pub(super) fn are_workers_lost(&self) -> bool {
        self.computed.is_some_and(|computed| self.is_long(computed))
    }

    /// Whether who has computed so much in one poll has done so for long.
    pub(super) fn is_long(&self, computed: Duration) -> bool {
        let too_many = self.able_workers().saturating_sub(self.usual);
        computed >= LONG * (1 << too_many.min(16))
    }

    /// The reserve is a worker as any other from now on. False if there is none.
    pub(super) fn draft(&mut self, pool: &Pool, stations: &[Arc<Station>]) -> bool {
        self.reserve = None;
        let reserve = crew_runners(pool, stations).find(|(_, runner)| runner.is_reserve());
        reserve.iter().for_each(|(station, runner)| draft(station, runner));
        reserve.is_some()
    }

    /// Adds a thread, which is one of those that were found from now on.
    pub(super) fn get_one_more(&mut self, pool: &Arc<Pool>, is_reserve: bool) -> bool {
        let added = add_thread(pool, is_reserve);
        self.live += usize::from(added);
        if added && is_reserve {
            self.reserve = Some(Duration::ZERO);
        }
        added
    }
}

/// The reserve is a worker as any other from now on.
pub(super) fn draft(station: &Arc<Station>, runner: &Runner) {
    runner.set_reserve(false);
    station.wake_by_ref();
}

/// The runners of the crew, and where they are.
pub(super) fn crew_runners<'a>(
    pool: &'a Pool,
    stations: &'a [Arc<Station>],
) -> impl Iterator<Item = (&'a Arc<Station>, Arc<Runner>)> {
    stations.iter().filter_map(|station| {
        let crew = pool.crew()?;
        let runners = station.runners.lock();
        let its_own = runners.iter().find(|hosted| crew.runs(&hosted.state))?;
        Some((station, its_own.runner.clone()))
    })
}

pub(super) fn add_thread(pool: &Arc<Pool>, is_reserve: bool) -> bool {
    pool.crew().is_some_and(|crew| crew.add_thread(pool, is_reserve))
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    /// Two workers, and these: all stuck, and what each has computed.
    fn hands(live: usize, blocked: usize, computed: Duration, reserve: Option<Duration>) -> Hands {
        let stuck = live - usize::from(reserve.is_some());
        Hands { live, stuck, blocked, computed: Some(computed), reserve, usual: 2, ..Hands::default() }
    }

    #[test]
    fn who_blocks_does_not_count_and_who_computes_does() {
        assert!(!hands(2, 0, LONG, None).is_short());
        let one_blocks = hands(2, 1, LONG, None);
        assert!(one_blocks.is_short() && one_blocks.is_short_of_workers() && one_blocks.are_all_stuck());
        // A reserve leads, but leaves tasks alone.
        let beside_reserve = hands(3, 1, LONG, Some(Duration::ZERO));
        assert!(!beside_reserve.is_short() && beside_reserve.is_short_of_workers());
        assert!(beside_reserve.are_all_stuck() && !beside_reserve.is_one_too_many());
        assert!(!Hands { stuck: 1, ..hands(2, 0, LONG, None) }.are_all_stuck());
        let other_waits = Hands { waits: true, ..one_blocks };
        assert!(!other_waits.is_short() && !other_waits.is_short_of_workers());
    }

    #[test]
    fn each_thread_too_many_doubles_what_is_long() {
        for (live, long) in [(2, LONG), (3, 2 * LONG), (4, 4 * LONG), (7, 32 * LONG)] {
            let almost = long - Duration::from_nanos(1);
            assert!(hands(live, 0, long, None).are_workers_lost(), "{live}");
            assert!(!hands(live, 0, almost, None).are_workers_lost(), "{live}");
            // The reserve is not too many, and neither are those that block.
            let beside = hands(live + 4, 3, long, Some(almost));
            assert!(beside.are_workers_lost() && !beside.is_reserve_lost(), "{live}");
            assert!(hands(live + 4, 3, almost, Some(long)).is_reserve_lost(), "{live}");
        }
        assert!(!Hands::default().are_workers_lost() && !Hands::default().is_reserve_lost());
    }
}
