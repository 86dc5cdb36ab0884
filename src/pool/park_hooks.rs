//! [`ParkHooks`]: the calls of `on_thread_park` and `on_thread_unpark` for one thread.

use std::sync::Arc;

use super::{Pool, Station};

/// Calls the hooks of a thread that is about to sleep, and that is awake again.
///
/// Hooks are user code, so the thread calls none while it leads (LF2, LF3). A leader that is about to sleep
/// notes that the call [is due](Self::note_park), gives leadership up, makes [the call](Self::park_if_due),
/// and looks once more for work before it sleeps.
#[derive(Debug)]
pub(super) struct ParkHooks<'a> {
    pool: &'a Arc<Pool>,
    station: &'a Station,
    state: ParkState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParkState {
    /// There are no hooks to call.
    None,
    /// The thread is awake.
    Awake,
    /// The park hook has to be called before the thread may sleep.
    ParkIsDue,
    /// The park hook was called: the thread sleeps, or will unless it finds work.
    Parked,
}

impl<'a> ParkHooks<'a> {
    /// Creates the state for one `block_on`. Hooks are called on workers; in a runtime without workers, on
    /// every thread that calls `block_on` there. A relief calls none: it leads because those threads are
    /// stuck, perhaps in these very hooks.
    pub(super) fn new(pool: &'a Arc<Pool>, station: &'a Station) -> Self {
        let counts = |is_unmanned: bool| !station.is_relief() && (is_unmanned || !station.is_called());
        let has_hooks = pool.crew().is_some_and(|crew| crew.has_park_hooks() && counts(crew.is_unmanned()));
        Self { pool, station, state: if has_hooks { ParkState::Awake } else { ParkState::None } }
    }

    /// Notes that the thread is about to sleep, and returns whether the park hook has to be called first;
    /// false if it was called, or if there is none.
    #[inline]
    pub(super) fn note_park(&mut self) -> bool {
        if self.state == ParkState::Awake {
            self.state = ParkState::ParkIsDue;
        }
        self.state == ParkState::ParkIsDue
    }

    /// Calls the park hook if that is due. The thread must not lead.
    #[inline]
    pub(super) fn park_if_due(&mut self) {
        if self.state == ParkState::ParkIsDue {
            self.state = ParkState::Parked;
            self.call(true);
        }
    }

    /// Calls the unpark hook if the park hook was called, and cancels a park hook that is due: the thread has
    /// work to do. The thread must not lead.
    #[inline]
    pub(super) fn unpark(&mut self) {
        match self.state {
            ParkState::None | ParkState::Awake => {}
            ParkState::ParkIsDue => self.state = ParkState::Awake,
            ParkState::Parked => {
                self.state = ParkState::Awake;
                self.call(false);
            }
        }
    }

    /// Calls one of the hooks. The flag tells the deputy that a thread that blocks meanwhile blocks in a
    /// hook.
    fn call(&self, parks: bool) {
        self.station.in_hook.set(true);
        if let Some(crew) = self.pool.crew() {
            crew.call_park_hook(self.pool, parks);
        }
        self.station.in_hook.set(false);
    }
}
