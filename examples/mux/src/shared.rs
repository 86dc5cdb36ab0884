//! The one lock of a connection.

use std::sync::{Mutex, PoisonError};

use crate::session::Session;
use crate::waiting::Wakes;

/// A session, shared by its driver, its streams and its connection.
#[derive(Debug)]
pub(crate) struct Shared(Mutex<Session>);

impl Shared {
    pub(crate) fn new(session: Session) -> Self {
        Self(Mutex::new(session))
    }

    /// Changes the session, and wakes waiting tasks after the lock was released.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut Session, &mut Wakes) -> R) -> R {
        // This has no memory while no task is woken.
        let mut wakes = Wakes::default();
        let result = self.gather(&mut wakes, change);
        wakes.release();
        result
    }

    /// The same, but the caller wakes the tasks.
    pub(crate) fn gather<R>(
        &self,
        wakes: &mut Wakes,
        change: impl FnOnce(&mut Session, &mut Wakes) -> R,
    ) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), wakes)
    }
}
