//! The deputy: the standby that watches the watchers.
//!
//! Promotion is free by default: a thread that leaves leadership vacant promises to be back after one short poll.
//! The deputy bounds what it costs when that promise is broken. While the pool is active it looks once a tick
//! ([`max_blind`](super::Policy::max_blind)):
//!
//! | what it finds | what it does |
//! |---|---|
//! | leadership vacant, and not taken once since the last look | wakes a parked follower; else adds a thread; else takes the events itself |
//! | a runner in the same poll as at the last look | marks the task slow, lets others take what waits behind it; adds a thread if all runners are stuck and tasks wait |
//! | all threads asleep, several times in a row | lets replacements go, then sleeps itself, without a timeout (LF9) |
//! | nobody in `block_on`, but sources or timers in use | leads, until somebody comes |
//! | nothing in use for a second, in a pool without workers | ends; the next one who needs it starts it again |
//!
//! It starts when there is company to watch, when somebody waits on a thread that will not lead, and when the last
//! thread leaves while something is waited for: a task that it polled, perhaps, of an executor that others run, too.
//!
//! A thread that was asleep and wakes up rouses it. Both sides announce before they look (Dekker): the deputy says
//! that it sleeps, fence, looks whether all are asleep; the thread says that it is awake (in its seat), fence, looks
//! whether the deputy sleeps.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::task::Wake;
use std::time::Duration;

use super::{Pool, Station};
use crate::block_on;
use crate::executor::{Beat, Runner};
use crate::sync::{self, AtomicBool, Counter, Instant, Mutex, thread};

/// Looks in a row at which all threads must be asleep before the deputy sleeps, too.
const QUIET_LOOKS: u32 = 10;
/// How long a deputy without workers stays when nothing is in use.
const LINGER: Duration = Duration::from_secs(1);
/// How long a task must have blocked its thread before it is reported.
const STALL: Duration = Duration::from_millis(10);

/// A task that blocks its thread: see [`Builder::on_stall`](crate::Builder::on_stall).
///
/// Its [`Display`](std::fmt::Display) is a sentence: "the task spawned at src/main.rs:9:5 has blocked paceline-1 for
/// 10.9ms".
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// Where the task was spawned.
    pub spawned_at: &'static Location<'static>,
    /// For how long it has blocked its thread so far.
    pub blocked_for: Duration,
    /// The name of the thread, if it has one.
    pub thread: Option<String>,
    /// The thread.
    pub thread_id: thread::ThreadId,
}

impl std::fmt::Display for Stall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let thread = self.thread.as_deref().unwrap_or("a thread without a name");
        write!(f, "the task spawned at {} has blocked {thread} for {:?}", self.spawned_at, self.blocked_for)
    }
}

/// What to call when a task blocks its thread.
pub(crate) type StallHook = Arc<dyn Fn(&Stall) + Send + Sync>;

/// The deputy's office: what others need to reach it.
#[derive(Debug, Default)]
pub(crate) struct Deputy {
    on_duty: AtomicBool,
    asleep: AtomicBool,
    dismissed: AtomicBool,
    help_wanted: AtomicBool,
    thread: Mutex<Option<thread::Thread>>,
    leads: AtomicBool,
    /// Set while it leads: its root future is to be woken.
    leading: Mutex<Option<Arc<Station>>>,
    /// Times that leadership was vacant for a whole tick.
    pub(crate) rescues: Counter,
    pub(crate) stalls: Counter,
}

impl Deputy {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Starts the deputy, unless it is on duty.
    pub(crate) fn ensure(&self, pool: &Arc<Pool>) {
        // ORDER: pairs with the fence in `serve` before it looks whether it may end.
        sync::full_fence();
        if self.on_duty.load(Relaxed) || self.on_duty.swap(true, Relaxed) {
            return self.rouse_if_asleep();
        }
        let weak = Arc::downgrade(pool);
        let started = thread::Builder::new().name("paceline-deputy".into()).spawn(move || serve(&weak));
        match started {
            Ok(handle) => *sync::lock(&self.thread) = Some(handle.thread().clone()),
            // No thread to be had: the pool works without, as long as nobody blocks. The next one tries again.
            Err(_) => self.on_duty.store(false, Relaxed),
        }
    }

    /// Somebody woke up.
    #[inline]
    pub(crate) fn rouse_if_asleep(&self) {
        // ORDER: pairs with the fence in `doze`.
        sync::full_fence();
        if self.asleep.load(Relaxed) {
            self.rouse();
        }
    }

    /// Somebody entered the pool: a deputy that leads goes back to watching.
    pub(super) fn make_way(&self) {
        sync::full_fence();
        if self.leads.load(Relaxed) {
            self.rouse();
        }
        self.rouse_if_asleep();
    }

    /// Has the deputy look now, whatever it does.
    #[cold]
    pub(crate) fn rouse(&self) {
        if let Some(thread) = &*sync::lock(&self.thread) {
            thread.unpark();
        }
        let leading = sync::lock(&self.leading).clone();
        leading.into_iter().for_each(Wake::wake);
    }

    /// A task that will block is about to run and nobody is parked: add a thread now, not at the next tick.
    pub(super) fn help_wanted(&self) {
        self.help_wanted.store(true, Relaxed);
        self.rouse();
    }

    /// Ends the deputy's duty, for good.
    pub(crate) fn dismiss(&self) {
        self.dismissed.store(true, Relaxed);
        self.rouse();
    }

    /// Sleeps until roused, unless `still_quiet` says that there is no time for that.
    fn doze(&self, limit: Option<Duration>, still_quiet: impl Fn() -> bool) {
        self.asleep.store(true, Relaxed);
        // ORDER: pairs with the fence in `rouse_if_asleep`.
        sync::full_fence();
        if still_quiet() {
            match limit {
                None => thread::park(),
                Some(limit) => thread::park_timeout(limit),
            }
        }
        self.asleep.store(false, Relaxed);
    }
}

/// The deputy's thread.
fn serve(pool: &Weak<Pool>) {
    let mut log = Log::default();
    let mut quiet_looks = 0;
    let mut unneeded_since: Option<Instant> = None;
    loop {
        let Some(pool) = pool.upgrade() else { return };
        let deputy = &pool.deputy;
        if deputy.dismissed.swap(false, Relaxed) {
            // Whoever waits in this pool without its workers gets another deputy.
            deputy.on_duty.store(false, Relaxed);
            return;
        }
        let stations = pool.stations();
        if stations.is_empty() && pool.reactor.is_needed() {
            unneeded_since = None;
            // A waker that panics has said so by its panic message; the others still need somebody to lead.
            let _ = catch_unwind(AssertUnwindSafe(|| lead(&pool)));
            continue;
        }
        let temporary = pool.crew().is_none_or(|crew| crew.is_stopped())
            && stations.len() < 2
            && !pool.reactor.is_needed();
        if !temporary {
            unneeded_since = None;
        } else if unneeded_since.get_or_insert_with(Instant::now).elapsed() > LINGER {
            deputy.on_duty.store(false, Relaxed);
            // Who came in between found us on duty and relied on it.
            sync::full_fence();
            let needed = pool.stations().len() > 1 || pool.reactor.is_needed();
            if !needed || deputy.on_duty.swap(true, Relaxed) {
                return;
            }
        }
        let limit = temporary.then_some(LINGER);
        // A task that waits while all threads sleep waits for a thread that does not: they are stuck.
        let waits = || pool.crew().is_some_and(|crew| crew.has_surplus());
        let asleep =
            |stations: &[Arc<Station>]| stations.iter().all(|station| station.is_quiet()) && !waits();
        if asleep(&stations) && !deputy.help_wanted.load(Relaxed) {
            quiet_looks += 1;
            if quiet_looks > QUIET_LOOKS {
                if pool.crew().is_some_and(|crew| crew.is_overstaffed()) {
                    stations.iter().for_each(Station::release);
                }
                let quiet = || asleep(&pool.stations()) && !deputy.dismissed.load(Relaxed);
                deputy.doze(limit, || quiet() && !(pool.stations().is_empty() && pool.reactor.is_needed()));
                quiet_looks = 0;
                log.forget();
            }
        } else {
            quiet_looks = 0;
        }
        thread::park_timeout(pool.policy.max_blind);
        log.look(&pool);
    }
}

/// Nobody is in `block_on`: the deputy leads until somebody comes, or nothing is in use any more.
fn lead(pool: &Arc<Pool>) {
    let station = Arc::new(Station::new());
    *sync::lock(&pool.deputy.leading) = Some(station.clone());
    pool.deputy.leads.store(true, Relaxed);
    // ORDER: pairs with the fence in `make_way`; `done` looks who is there when the root future is polled first.
    sync::full_fence();
    let done = |station: &Arc<Station>| {
        let others = pool.stations().iter().any(|other| !Arc::ptr_eq(other, station));
        others || !pool.reactor.is_needed() || pool.deputy.dismissed.load(Relaxed)
    };
    let root = std::future::poll_fn({
        let station = station.clone();
        move |_| if done(&station) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    });
    /// Ends the turn, whatever a waker does meanwhile.
    struct Leading<'a>(&'a Pool);
    impl Drop for Leading<'_> {
        fn drop(&mut self) {
            self.0.reactor.watch_for_empty(false);
            self.0.deputy.leads.store(false, Relaxed);
            *sync::lock(&self.0.deputy.leading) = None;
        }
    }
    let _leading = Leading(pool);
    pool.reactor.watch_for_empty(true);
    block_on::drive(Some(pool), station, root);
}

/// What the deputy remembers from one look to the next.
#[derive(Debug, Default)]
struct Log {
    looks: u64,
    taken: Option<u64>,
    runners: HashMap<*const Runner, Entry>,
}

#[derive(Debug)]
struct Entry {
    beat: Beat,
    since: Instant,
    /// When it is reported next.
    report_at: Duration,
    /// The number of the last look that found the runner.
    seen: u64,
}

impl Log {
    fn forget(&mut self) {
        self.taken = None;
        self.runners.clear();
    }

    fn look(&mut self, pool: &Arc<Pool>) {
        self.look_at_leadership(pool);
        let wanted = pool.deputy.help_wanted.swap(false, Relaxed);
        let short_of_hands = self.look_at_runners(pool);
        if short_of_hands || wanted && pool.leadership.is_vacant() && !pool.leadership.rescue() {
            add_thread(pool);
        }
    }

    fn look_at_leadership(&mut self, pool: &Arc<Pool>) {
        let taken = pool.leadership.taken.get();
        let blind = pool.leadership.is_vacant() && self.taken.replace(taken) == Some(taken);
        if !blind || !pool.reactor.is_needed() {
            return;
        }
        pool.deputy.rescues.add_shared(1);
        if !pool.leadership.rescue() && !add_thread(pool) {
            let _ = catch_unwind(AssertUnwindSafe(|| block_on::take_turn(pool)));
        }
    }

    /// True if tasks wait and nobody is left to run them.
    fn look_at_runners(&mut self, pool: &Arc<Pool>) -> bool {
        let (mut stuck, mut waiting) = (0, false);
        let now = Instant::now();
        self.looks += 1;
        for station in pool.stations() {
            let hosted = sync::lock(&station.runners).clone();
            for runner in hosted {
                // Another executor's runner that idles is no help to the crew's tasks.
                let of_crew = pool.crew().is_some_and(|crew| runner.is_of(&**crew.state()));
                let beat = runner.beat();
                let key = Arc::as_ptr(&runner);
                let fresh = || Entry { beat, since: now, report_at: STALL, seen: 0 };
                let entry = self.runners.entry(key).or_insert_with(fresh);
                let first = std::mem::replace(&mut entry.seen, self.looks) == 0;
                if entry.beat != beat {
                    *entry = Entry { seen: self.looks, ..fresh() };
                } else if !first && beat.is_in_task() {
                    stuck += usize::from(of_crew);
                    waiting |= runner.release_tasks(beat) && of_crew;
                    entry.report(pool, &station, &runner, now);
                } else if !first && !station.is_quiet() {
                    // It is not the runner's task that keeps the thread, but the future that `run` drives, or one beside.
                    waiting |= runner.hand_over() && of_crew;
                }
            }
        }
        let looks = self.looks;
        self.runners.retain(|_, entry| entry.seen == looks);
        let waiting = waiting || pool.crew().is_some_and(|crew| crew.has_surplus());
        // Threads that are only starting are no help yet, but no reason for more of them either.
        waiting && pool.crew().is_some_and(|crew| stuck >= crew.live())
    }
}

impl Entry {
    /// Reports a stall when it has lasted long enough, and again whenever it has become ten times as long.
    fn report(&mut self, pool: &Arc<Pool>, station: &Station, runner: &Runner, now: Instant) {
        let blocked_for = now - self.since + pool.policy.max_blind;
        if blocked_for < self.report_at {
            return;
        }
        if self.report_at == STALL {
            pool.deputy.stalls.add_shared(1);
        }
        self.report_at = blocked_for * 10;
        let hook = pool.crew().and_then(|crew| crew.stall_hook());
        if let (Some(hook), Some(spawned_at)) = (hook, runner.place()) {
            let thread = station.thread.name().map(Into::into);
            let stall = Stall { spawned_at, blocked_for, thread, thread_id: station.thread.id() };
            // A hook that panics loses its own report, not the deputy.
            let _ = catch_unwind(AssertUnwindSafe(|| pool.visit(|| hook(&stall))));
        }
    }
}

fn add_thread(pool: &Arc<Pool>) -> bool {
    pool.crew().is_some_and(|crew| crew.add_thread(pool))
}
