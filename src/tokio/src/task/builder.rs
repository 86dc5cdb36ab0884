//! [`Builder`]: spawns tasks with a name, for subscribers of `tracing`. paceline's own reports name a task by
//! the line that spawned it.

use std::future::Future;
use std::io;
use std::panic::Location;

use super::local::spawn_local_as;
use super::{JoinHandle, LocalSet, SpawnMeta, TaskKind};
use crate::context;
use crate::runtime::Handle;

/// Spawns a task with a name.
#[derive(Debug, Default)]
pub struct Builder<'a> {
    name: Option<&'a str>,
}

impl<'a> Builder<'a> {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn name(&self, name: &'a str) -> Self {
        Self { name: Some(name) }
    }

    #[track_caller]
    pub fn spawn<F>(self, future: F) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.spawn_on(future, &context::expect())
    }

    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Ok(handle.spawn_as(future, SpawnMeta::new(TaskKind::Task, Location::caller()).named(self.name)))
    }

    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        Ok(spawn_local_as(future, self.name))
    }

    #[track_caller]
    pub fn spawn_local_on<F>(self, future: F, local_set: &LocalSet) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        Ok(local_set.local().spawn(future, self.name))
    }

    #[track_caller]
    pub fn spawn_blocking<F, R>(self, function: F) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_blocking_on(function, &context::expect())
    }

    #[track_caller]
    pub fn spawn_blocking_on<F, R>(self, function: F, handle: &Handle) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        if handle.shared.blocking.is_closed() {
            return Err(io::Error::other("blocking pool shutting down"));
        }
        handle.try_spawn_blocking(function, self.name)
    }
}
