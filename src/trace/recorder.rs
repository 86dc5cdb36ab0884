//! [`FlightRecorder`] and [`Recorder`].

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::task::Wake;
use std::time::Duration;

use super::events::{Action, ThreadTrace, Trace, TraceEvent};
use crate::flight::{Note, RoleNow, Store};
use crate::insight::StallKind;
use crate::pool::Pool;
use crate::probe::Syscall;
use crate::runtime::{Handle, Role, Runtime};

/// The settings of a flight recorder, which records what the threads of a runtime do and keeps the recent
/// part of it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use paceline::trace::FlightRecorder;
///
/// # fn main() -> std::io::Result<()> {
/// let runtime = paceline::Runtime::builder().threads(2).build()?;
/// let recorder =
///     FlightRecorder::new().min_age(Duration::from_secs(2)).max_bytes(1 << 20).start(&runtime);
/// runtime.block_on(runtime.spawn(async {}));
/// assert!(!recorder.snapshot().threads.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FlightRecorder {
    min_age: Duration,
    max_bytes: usize,
}

impl Default for FlightRecorder {
    fn default() -> Self {
        Self { min_age: Duration::from_secs(10), max_bytes: 10 << 20 }
    }
}

impl FlightRecorder {
    /// Creates a recorder that keeps what happened in the last ten seconds, as far as that fits into 10 MiB.
    ///
    /// ```
    /// let recorder = paceline::trace::FlightRecorder::new();
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long events are kept at least, if the memory suffices. Older events may be dropped.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let recorder = paceline::trace::FlightRecorder::new().min_age(Duration::from_secs(60));
    /// ```
    #[must_use]
    pub fn min_age(mut self, age: Duration) -> Self {
        self.min_age = age;
        self
    }

    /// Sets how much memory the events may take. When it is used up, the oldest events are dropped, however
    /// new they are. Each thread in the runtime needs 16 KiB beside it. A [snapshot](Recorder::snapshot)
    /// takes about three times as much while it exists, and writing it for Perfetto ten times.
    ///
    /// An event takes 24 bytes, and a request about six events: 10 MiB are enough for 70 000 requests.
    ///
    /// ```
    /// let recorder = paceline::trace::FlightRecorder::new().max_bytes(100 << 20);
    /// ```
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Begins to record a runtime, until the returned value is dropped. A runtime has one recorder at a time:
    /// the recorder that was started last records.
    ///
    /// Each thread begins when it takes its next turn, so threads that sleep are woken once. A thread that is
    /// in the middle of a poll begins after it. What other threads do is not recorded, such as spawns and
    /// wakes by threads outside of the runtime, and what a `block_on` does before its first wait.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// let recorder = paceline::trace::FlightRecorder::new().start(&runtime);
    /// # drop(recorder);
    /// # Ok(())
    /// # }
    /// ```
    pub fn start(&self, runtime: &Runtime) -> Recorder {
        self.start_on(&runtime.handle())
    }

    /// Begins to record the runtime of a [`Handle`], which may be the default instance, as
    /// [`start`](Self::start) does. If the runtime was dropped, nothing is recorded.
    ///
    /// ```
    /// use paceline::trace::FlightRecorder;
    ///
    /// let recorder = paceline::block_on(async { FlightRecorder::new().start_on(&paceline::Handle::current()) });
    /// ```
    pub fn start_on(&self, handle: &Handle) -> Recorder {
        let pool = handle.pool();
        let is_simulated = pool.as_ref().is_some_and(|pool| pool.reactor.is_simulated());
        let store = Arc::new(Store::new(self.min_age, self.max_bytes, is_simulated));
        if let Some(pool) = &pool {
            pool.reactor.assert_not_inherited();
            pool.recording.start(store.clone());
            wake_all(pool);
        }
        Recorder { store, pool: pool.as_ref().map_or_else(Weak::new, Arc::downgrade) }
    }
}

/// A flight recorder that runs: see [`FlightRecorder::start`]. Dropping it ends the recording.
///
/// In the child of a fork, a recorder of the parent has nothing.
#[must_use = "dropping the recorder ends the recording"]
pub struct Recorder {
    store: Arc<Store>,
    pool: Weak<Pool>,
}

impl Recorder {
    /// Returns what was recorded and not dropped. The threads go on meanwhile, and the recording as well,
    /// unless a later recorder has taken the place of this one.
    ///
    /// This works on any thread, also while all threads of the runtime are blocked.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use paceline::Timer;
    /// use paceline::trace::{Action, FlightRecorder};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().current_thread().build()?;
    /// let recorder = FlightRecorder::new().start(&runtime);
    /// runtime.block_on(async {
    ///     // The thread begins to record when it has waited.
    ///     Timer::after(Duration::from_millis(1)).await;
    ///     runtime.spawn(async {}).await;
    /// });
    /// let trace = recorder.snapshot();
    /// let events = trace.threads.iter().flat_map(|thread| &thread.events);
    /// let polls = events.filter(|event| matches!(event.action, Action::PollBegins { .. })).count();
    /// assert_eq!(polls, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn snapshot(&self) -> Trace {
        let (taken_at, notes) = self.store.snapshot();
        let taken_at = Duration::from_nanos(taken_at);
        let places: HashMap<u64, usize> =
            notes.iter().enumerate().map(|(at, thread)| (thread.about.number, at)).collect();
        let threads = notes.into_iter().map(|thread| ThreadTrace {
            name: thread.about.name,
            thread_id: thread.about.id,
            os_id: thread.about.os_id,
            events: events(&thread.notes, &places),
            dropped: thread.dropped,
        });
        Trace { threads: threads.collect(), started_at: self.store.started_at, taken_at }
    }
}

/// Wakes the threads of the pool: each looks for a recorder at its next turn, and so does the deputy.
fn wake_all(pool: &Pool) {
    pool.stations().iter().for_each(Wake::wake_by_ref);
    pool.deputy.notify();
}

/// Returns the events for the notes of a thread. `places` has the index of each thread by its number.
fn events(notes: &[(u64, Note)], places: &HashMap<u64, usize>) -> Vec<TraceEvent> {
    let mut notes = notes.iter().peekable();
    let mut events = Vec::with_capacity(notes.len());
    while let Some(&(at, note)) = notes.next() {
        let action = match note {
            Note::Role(role) => Action::Role(match role {
                RoleNow::Leads => Role::Leads,
                RoleNow::Follows => Role::Follows,
                RoleNow::Processes => Role::Processes,
                RoleNow::Outside => Role::Outside,
            }),
            Note::Sleeps => Action::Sleeps,
            Note::Events(number) => Action::Events(u32::try_from(number).unwrap_or(u32::MAX)),
            Note::Promotes(thread, reason) => {
                Action::Promotes { thread: places.get(&thread).copied(), reason }
            }
            Note::Steals(thread, events) => Action::Steals {
                thread: places.get(&thread).copied(),
                events: u32::try_from(events).unwrap_or(u32::MAX),
            },
            Note::Spawns(task, spawned_at) => Action::Spawns { task, spawned_at },
            Note::Wakes(task) => Action::Wakes { task },
            Note::PollBegins(task, spawned_at, from) => Action::PollBegins { task, spawned_at, from },
            Note::PollEnds => Action::PollEnds,
            Note::Ends(task) => Action::Ends { task },
            Note::TimerFires => Action::TimerFires,
            Note::Stalls(thread, spawned_at) => {
                // The last note of a snapshot may lack its detail.
                let Some(&&(_, Note::StallDetail(kind, lasted))) = notes.peek() else { continue };
                Action::Stalls {
                    thread: places.get(&thread).copied(),
                    spawned_at,
                    kind: stall_kind(kind),
                    lasted: Duration::from_nanos(lasted),
                }
            }
            // The note before it has used it, or was dropped.
            Note::StallDetail(..) => continue,
        };
        events.push(TraceEvent { at: Duration::from_nanos(at), action });
    }
    events
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            // Threads that sleep would keep the memory of the recorder.
            if !pool.reactor.is_inherited() {
                pool.recording.stop(&self.store);
                wake_all(&pool);
            }
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

/// Returns the kind for which [`StallKind::code`] has returned this number.
fn stall_kind(code: u64) -> StallKind {
    match code {
        1 => StallKind::Blocked(None),
        2 => StallKind::Computing,
        3 => StallKind::Unknown,
        call => StallKind::Blocked(Some(Syscall::new((call >> 2) as u32))),
    }
}
