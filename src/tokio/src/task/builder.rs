//! [`Builder`]: spawns tasks with a name. paceline names a task by the line that spawned it, so the name has
//! no effect.

use std::future::Future;
use std::io;

use super::{JoinHandle, LocalSet, spawn, spawn_blocking, spawn_local};
use crate::runtime::Handle;

/// Spawns a task with a name.
#[derive(Debug, Default)]
pub struct Builder<'a> {
    #[expect(dead_code, reason = "only `Debug` shows it")]
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
        Ok(spawn(future))
    }

    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Ok(handle.spawn(future))
    }

    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        Ok(spawn_local(future))
    }

    #[track_caller]
    pub fn spawn_local_on<F>(self, future: F, local_set: &LocalSet) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        Ok(local_set.spawn_local(future))
    }

    #[track_caller]
    pub fn spawn_blocking<F, R>(self, function: F) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        Ok(spawn_blocking(function))
    }

    #[track_caller]
    pub fn spawn_blocking_on<F, R>(self, function: F, handle: &Handle) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        Ok(handle.spawn_blocking(function))
    }
}
