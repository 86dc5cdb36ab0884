//! The one lock of a connection.

use std::sync::{Mutex, PoisonError};

use crate::session::Session;
use crate::waiting::Wakes;

/// A session, as its driver, its streams and its connection share it.
#[derive(Debug)]
pub(crate) struct Shared(Mutex<Session>);

impl Shared {
    pub(crate) fn new(session: Session) -> Self {
        Self(Mutex::new(session))
    }

    /// Changes it, and tells those who wait for that when the lock is free again.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut Session, &mut Wakes) -> R) -> R {
        // As long as nobody is woken, this has no memory.
        let mut wakes = Wakes::default();
        let result = self.gather(&mut wakes, change);
        wakes.release();
        result
    }

    /// The same, and the caller tells them.
    pub(crate) fn gather<R>(
        &self,
        wakes: &mut Wakes,
        change: impl FnOnce(&mut Session, &mut Wakes) -> R,
    ) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), wakes)
    }
}
