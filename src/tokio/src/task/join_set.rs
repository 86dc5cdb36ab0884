//! [`JoinSet`]: tasks whose outputs come in the order in which they are ready. Each task has a waker that
//! puts it on a list of ready ones, so that the others are not checked.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::{Future, poll_fn};
use std::mem;
use std::panic;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::{AbortHandle, Id, JoinError, JoinHandle, LocalSet, spawn_blocking, spawn_local, unconstrained};
use crate::runtime::Handle;

/// Tasks that are awaited together. Dropping it aborts them.
pub struct JoinSet<T> {
    entries: BTreeMap<Id, Entry<T>>,
    woken: Arc<Woken>,
}

struct Entry<T> {
    handle: JoinHandle<T>,
    call: Arc<Call>,
}

/// The entries to check, and the waiting task.
#[derive(Default)]
struct Woken {
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    ids: VecDeque<Id>,
    waker: Option<Waker>,
}

/// An entry's waker.
struct Call {
    id: Id,
    /// Whether the entry is on the list.
    is_listed: AtomicBool,
    woken: Arc<Woken>,
}

impl Woken {
    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_listed.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut list = self.woken.lock();
        list.ids.push_back(self.id);
        let waker = list.waker.take();
        drop(list);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> JoinSet<T> {
    pub fn new() -> Self {
        Self { entries: BTreeMap::new(), woken: Arc::default() }
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the next entry to check. Returns `None` and registers the waker if there is none.
    fn next(&mut self, waker: Option<&Waker>) -> Option<Id> {
        let mut list = self.woken.lock();
        while let Some(id) = list.ids.pop_front() {
            if let Some(entry) = self.entries.get(&id) {
                // From here on a wake lists the entry again.
                entry.call.is_listed.store(false, Ordering::Release);
                return Some(id);
            }
        }
        let before = match (waker, &list.waker) {
            (None, _) => None,
            (Some(waker), Some(known)) if known.will_wake(waker) => None,
            (Some(waker), _) => list.waker.replace(waker.clone()),
        };
        // The drop of a waker may run any code.
        drop(list);
        drop(before);
        None
    }

    /// Checks whether the task is over, with the entry's own waker.
    fn look<P>(&mut self, id: Id, poll: P) -> Poll<Result<(Id, T), JoinError>>
    where
        P: FnOnce(&mut JoinHandle<T>, &mut Context<'_>) -> Poll<Result<T, JoinError>>,
    {
        let Some(entry) = self.entries.get_mut(&id) else { return Poll::Pending };
        let waker = Waker::from(entry.call.clone());
        let result = poll(&mut entry.handle, &mut Context::from_waker(&waker));
        if result.is_ready() {
            self.entries.remove(&id);
        }
        result.map_ok(|output| (id, output))
    }
}

impl<T: 'static> JoinSet<T> {
    #[track_caller]
    pub fn spawn<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.insert(super::spawn(task))
    }

    #[track_caller]
    pub fn spawn_on<F>(&mut self, task: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        self.insert(handle.spawn(task))
    }

    #[track_caller]
    pub fn spawn_local<F>(&mut self, task: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.insert(spawn_local(task))
    }

    #[track_caller]
    pub fn spawn_local_on<F>(&mut self, task: F, local_set: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.insert(local_set.spawn_local(task))
    }

    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, f: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.insert(spawn_blocking(f))
    }

    #[track_caller]
    pub fn spawn_blocking_on<F>(&mut self, f: F, handle: &Handle) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        self.insert(handle.spawn_blocking(f))
    }

    fn insert(&mut self, mut handle: JoinHandle<T>) -> AbortHandle {
        let (id, aborts) = (handle.id(), handle.abort_handle());
        let call = Arc::new(Call { id, is_listed: AtomicBool::new(false), woken: self.woken.clone() });
        handle.set_waker(&Waker::from(call.clone()));
        self.entries.insert(id, Entry { handle, call });
        aborts
    }

    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|cx| self.poll_join_next(cx)).await
    }

    pub async fn join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        poll_fn(|cx| self.poll_join_next_with_id(cx)).await
    }

    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.try_join_next_with_id().map(|result| result.map(|(_, output)| output))
    }

    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        loop {
            let id = self.next(None)?;
            // No budget here: this function cannot ask its caller to try again later.
            let look = |handle: &mut JoinHandle<T>, cx: &mut Context<'_>| {
                Pin::new(&mut unconstrained(handle)).poll(cx)
            };
            if let Poll::Ready(result) = self.look(id, look) {
                return Some(result);
            }
        }
    }

    pub async fn shutdown(&mut self) {
        self.abort_all();
        while self.join_next().await.is_some() {}
    }

    pub async fn join_all(mut self) -> Vec<T> {
        let mut outputs = Vec::with_capacity(self.len());
        while let Some(result) = self.join_next().await {
            match result {
                Ok(output) => outputs.push(output),
                Err(error) if error.is_panic() => panic::resume_unwind(error.into_panic()),
                Err(error) => panic!("{error}"),
            }
        }
        outputs
    }

    pub fn abort_all(&mut self) {
        self.entries.values().for_each(|entry| entry.handle.abort());
    }

    pub fn detach_all(&mut self) {
        self.entries.clear();
    }

    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        self.poll_join_next_with_id(cx).map(|next| next.map(|result| result.map(|(_, output)| output)))
    }

    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        let Some(id) = self.next(Some(cx.waker())) else {
            return if self.is_empty() { Poll::Ready(None) } else { Poll::Pending };
        };
        let result = self.look(id, |handle, cx| Pin::new(handle).poll(cx));
        if result.is_pending() {
            // A listed task is over, so this poll has used up its budget, and the entry is on the list again.
            cx.waker().wake_by_ref();
        }
        result.map(Some)
    }
}

#[cfg(all(tokio_unstable, feature = "tracing"))]
impl<T> JoinSet<T> {
    /// Spawns the next task with a name.
    pub fn build_task(&mut self) -> Builder<'_, T> {
        Builder { builder: super::Builder::new(), joins: self }
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        mem::take(&mut self.entries).into_values().for_each(|entry| entry.handle.abort());
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet").field("len", &self.len()).finish()
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, F> FromIterator<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = F>>(tasks: I) -> Self {
        let mut set = Self::new();
        set.extend(tasks);
        set
    }
}

impl<T, F> Extend<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    fn extend<I: IntoIterator<Item = F>>(&mut self, tasks: I) {
        // No closure, because that cannot be `#[track_caller]`.
        for task in tasks {
            self.spawn(task);
        }
    }
}

/// Spawns a task with a name into a set.
#[cfg(all(tokio_unstable, feature = "tracing"))]
#[must_use = "builders do nothing unless used to spawn a task"]
pub struct Builder<'a, T> {
    joins: &'a mut JoinSet<T>,
    builder: super::Builder<'a>,
}

#[cfg(all(tokio_unstable, feature = "tracing"))]
impl<'a, T: 'static> Builder<'a, T> {
    pub fn name(self, name: &'a str) -> Self {
        Self { builder: self.builder.name(name), ..self }
    }

    #[track_caller]
    pub fn spawn<F>(self, future: F) -> std::io::Result<AbortHandle>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        Ok(self.joins.insert(self.builder.spawn(future)?))
    }

    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> std::io::Result<AbortHandle>
    where
        F: Future<Output = T> + Send + 'static,
        T: Send,
    {
        Ok(self.joins.insert(self.builder.spawn_on(future, handle)?))
    }

    #[track_caller]
    pub fn spawn_blocking<F>(self, f: F) -> std::io::Result<AbortHandle>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        Ok(self.joins.insert(self.builder.spawn_blocking(f)?))
    }

    #[track_caller]
    pub fn spawn_blocking_on<F>(self, f: F, handle: &Handle) -> std::io::Result<AbortHandle>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send,
    {
        Ok(self.joins.insert(self.builder.spawn_blocking_on(f, handle)?))
    }

    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> std::io::Result<AbortHandle>
    where
        F: Future<Output = T> + 'static,
    {
        Ok(self.joins.insert(self.builder.spawn_local(future)?))
    }

    #[track_caller]
    pub fn spawn_local_on<F>(self, future: F, local_set: &LocalSet) -> std::io::Result<AbortHandle>
    where
        F: Future<Output = T> + 'static,
    {
        Ok(self.joins.insert(self.builder.spawn_local_on(future, local_set)?))
    }
}

#[cfg(all(tokio_unstable, feature = "tracing"))]
impl<T> fmt::Debug for Builder<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("join_set::Builder")
            .field("joins", self.joins)
            .field("builder", &self.builder)
            .finish()
    }
}
