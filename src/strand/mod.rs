//! [`Strand`]: state that is touched by one operation after the other, wherever they come from.
//!
//! | part | what it is |
//! |---|---|
//! | [`Strand`] | the public type |
//! | [`door`] | who is inside, and what waits to be run there; the only part with `unsafe` |
//! | [`handed`] | operations that the thread inside runs for others |
//! | [`serial`] | spawned futures, whose polls are operations |
//! | [`relay`] | the task that goes on where a thread has done its share |
//!
//! The README beside this file has the states and the argument.

mod door;
mod handed;
mod relay;
mod serial;

use std::fmt;
use std::future::Future;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::task::Waker;

use crate::executor::Task;
use crate::runtime;
use crate::sync::{self, Mutex, MutexGuard};
use crate::waking;
use door::{Door, Inside, Left, Linked, Operation};
use handed::{Posted, With};
use relay::Relay;
use serial::{Serial, Starts};

/// Operations of others that a thread runs before it leaves the rest to a task of the runtime.
const SHARE: usize = 64;

/// State that is only ever touched by one operation at a time, first come first served, without a lock that anybody waits
/// for.
///
/// An operation runs in place, on the calling thread, when nobody is inside. When somebody is, it is handed on to that thread,
/// which runs it before it leaves. So nobody sleeps for a turn: [`with`](Strand::with) awaits the result, and
/// [`post`](Strand::post) does not even that. [`spawn`](Strand::spawn) makes a task whose polls are such operations.
///
/// It is cheap to clone, and all clones are the same strand. The state is dropped with the last of them, after what was
/// queued has run.
///
/// # Examples
///
/// ```
/// use paceline::{Strand, block_on, spawn};
///
/// let log = Strand::new(Vec::new());
/// block_on(async {
///     let log2 = log.clone();
///     let task = spawn(async move { log2.with(|lines| lines.push("from a task")).await });
///     log.post(|lines| lines.push("from here"));
///     task.await;
///     assert_eq!(log.with(|lines| lines.len()).await, 2);
/// });
/// ```
///
/// # Who runs what
///
/// The thread inside runs what others queue meanwhile, up to 64 operations of theirs for each one of its own. If there are
/// more, it leaves the strand open and spawns a task that goes on with them, on the runtime whose thread it is, else on the
/// default instance; whoever comes with an operation of its own before that task is there does so in its place. If the
/// runtime ends before, or is drained, the default instance goes on with the rest.
///
/// So an operation may run on any thread that uses the strand. It should be short. One that blocks delays its own thread,
/// for which the deputy finds a replacement, and all that wait for the strand, for which nobody does. Nobody who posts is
/// held back, so what is posted faster than it runs piles up. And calling [`post`](Strand::post) while holding a lock is
/// dangerous if an operation of anybody's takes the same lock.
///
/// # Used from inside itself
///
/// An operation that posts to its own strand, or polls a `with` of it, has that run after itself. So a future that was
/// [spawned](Strand::spawn) on a strand can await a `with` of the same strand. A `block_on` inside of an operation cannot: it
/// would wait for itself. paceline's [`block_on`](crate::block_on()) panics when it awaits that, alone or in a `zip` or `select`. These
/// hang, for nothing tells them from other waits: somebody else's `block_on`; a combinator that polls the `with` with a waker of its
/// own, as `FuturesUnordered` does; and a `block_on` of anything that comes of a later operation, such as a task that was
/// [spawned](Strand::spawn) on the same strand.
///
/// # Panics
///
/// A panic in an operation poisons nothing: it is raised in whoever awaits it, and the next operation runs. The state is as
/// the panic left it. Nobody awaits a [posted](Strand::post) one: like that of a detached task, its panic ends there.
pub struct Strand<T>(Arc<Shared<T>>);

struct Shared<T> {
    door: Door<T>,
    starts: Mutex<Starts>,
    /// Where it was made: what a stall of its relay names.
    made_at: &'static Location<'static>,
}

/// A panic leaves the state as a panic in a method of it would; who minds, looks.
impl<T> UnwindSafe for Strand<T> {}
impl<T> RefUnwindSafe for Strand<T> {}

impl<T> Clone for Strand<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Send + 'static> Strand<T> {
    /// A strand with this state.
    ///
    /// ```
    /// let strand = paceline::Strand::new(0);
    /// strand.post(|n| *n += 1);
    /// assert_eq!(paceline::block_on(strand.with(|n| *n)), 1);
    /// ```
    #[track_caller]
    pub fn new(state: T) -> Self {
        Self(Arc::new(Shared {
            door: Door::new(state),
            starts: Mutex::new(Starts::new()),
            made_at: Location::caller(),
        }))
    }

    /// Runs an operation on the state and gives its result.
    ///
    /// Operations run in the order in which these futures are polled for the first time.
    ///
    /// ```
    /// use std::collections::HashMap;
    ///
    /// let accounts = paceline::Strand::new(HashMap::from([("a", 10), ("b", 0)]));
    /// let moved = accounts.with(|accounts| {
    ///     *accounts.get_mut("a")? -= 3;
    ///     *accounts.get_mut("b")? += 3;
    ///     accounts.get("b").copied()
    /// });
    /// assert_eq!(paceline::block_on(moved), Some(3));
    /// ```
    ///
    /// # Panics
    ///
    /// If the operation does. If it is awaited by a [`block_on`](crate::block_on()) inside of an operation of the same strand,
    /// which would wait for itself.
    ///
    /// # Cancel safety
    ///
    /// An operation that has not begun when the future is dropped never runs. One that has runs to its end, and its result is
    /// dropped.
    pub async fn with<R, F>(&self, operation: F) -> R
    where
        F: FnOnce(&mut T) -> R + Send + 'static,
        R: Send + 'static,
    {
        match self.run_in_place(operation) {
            Ok(output) => output,
            Err(operation) => With::new(self, operation).await,
        }
    }

    #[inline]
    fn run_in_place<R, F: FnOnce(&mut T) -> R>(&self, operation: F) -> Result<R, F> {
        match self.0.door.enter() {
            Some(inside) => Ok(Visit::of(self, inside).run(operation)),
            None => Err(operation),
        }
    }

    /// Has an operation run, and does not wait for it: when this returns it has run on this thread, or somebody else's runs it
    /// soon.
    ///
    /// ```
    /// let strand = paceline::Strand::new(String::new());
    /// strand.post(|text| text.push_str("hello"));
    /// assert_eq!(paceline::block_on(strand.with(|text| text.len())), 5);
    /// ```
    ///
    /// # Panics
    ///
    /// Never. If the operation does, nobody learns of it but the panic hook, as with a detached task.
    pub fn post(&self, operation: impl FnOnce(&mut T) + Send + 'static) {
        match self.0.door.enter() {
            Some(inside) => waking::call(|| Visit::of(self, inside).run(operation)),
            None => self.submit(Linked::new(Posted::new(operation))),
        }
    }

    /// Spawns a future whose polls are operations of the strand: no two such futures are polled at the same time, nor is
    /// one while an operation runs, nor is it dropped then. They start in the order in which they were spawned.
    ///
    /// The task is one of the runtime's, as of [`spawn`](crate::spawn): dropping the [`Task`] cancels it. The thread that
    /// wakes it polls it, unless somebody is inside: then that thread does, and what such a poll makes (a timer, a source, a
    /// task) is of the runtime whose thread that is. A future that is cancelled is dropped by who is inside, too, which may
    /// be a moment after [`Task::cancel`] has returned.
    ///
    /// ```
    /// use paceline::{Strand, block_on};
    ///
    /// block_on(async {
    ///     let strand = Strand::new(Vec::new());
    ///     let tasks: Vec<_> = (0..3)
    ///         .map(|number| {
    ///             let strand2 = strand.clone();
    ///             strand.spawn(async move { strand2.with(move |seen| seen.push(number)).await })
    ///         })
    ///         .collect();
    ///     for task in tasks {
    ///         task.await;
    ///     }
    ///     assert_eq!(strand.with(|seen| seen.clone()).await, [0, 1, 2]);
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// As [`spawn`](crate::spawn) does. A panic of the future's is raised in whoever awaits the task.
    #[track_caller]
    pub fn spawn<R: Send + 'static>(&self, future: impl Future<Output = R> + Send + 'static) -> Task<R> {
        runtime::spawn(Serial::new(self.clone(), future))
    }

    /// Runs an operation here, or leaves it to who is inside.
    fn submit<O: Operation<T> + 'static>(&self, operation: Arc<Linked<T, O>>) {
        if let Some(inside) = self.0.door.queue(operation) {
            self.sees_to(inside, SHARE);
        }
    }

    /// Runs what waits, `limit` of it at most, and leaves the rest to a relay.
    #[cold]
    fn sees_to(&self, inside: Inside<'_, T>, limit: usize) {
        if inside.drain(limit) == Left::Open {
            // Where no runtime can be started the relay is dropped, and that does it as well.
            waking::call(|| runtime::spawn_from(Relay::new(self), self.0.made_at).detach());
        }
    }

    /// The same by the default instance.
    fn sends(&self, relay: Relay<T>) {
        waking::call(|| runtime::spawn_by_default(relay, self.0.made_at).detach());
    }

    fn door(&self) -> &Door<T> {
        &self.0.door
    }

    fn assert_not_inside(&self, waker: &Waker) {
        assert!(
            !self.0.door.would_wait_for_itself(waker),
            "`block_on` inside of an operation of a strand awaits another operation of the same strand (made at {}), which would \
             never run: await it when the operation is over, or use `Strand::post`",
            self.0.made_at
        );
    }
}

impl<T> Strand<T> {
    fn starts(&self) -> MutexGuard<'_, Starts> {
        sync::lock(&self.0.starts)
    }

    #[cfg(all(test, paceline_loom))]
    fn handles(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

/// An operation in place.
struct Visit<'a, T: Send + 'static> {
    strand: &'a Strand<T>,
    /// Until it is over.
    inside: Option<Inside<'a, T>>,
}

impl<'a, T: Send + 'static> Visit<'a, T> {
    #[inline]
    fn of(strand: &'a Strand<T>, inside: Inside<'a, T>) -> Self {
        Self { strand, inside: Some(inside) }
    }

    #[inline]
    fn run<R>(mut self, operation: impl FnOnce(&mut T) -> R) -> R {
        let inside = self.inside.as_mut().expect("it is taken once");
        let output = inside.with(operation);
        if let Some(Err(inside)) = self.inside.take().map(Inside::leave) {
            self.strand.sees_to(inside, SHARE);
        }
        output
    }
}

/// The operation panicked. What others queued is run by somebody who does not.
impl<T: Send + 'static> Drop for Visit<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(Err(inside)) = self.inside.take().map(Inside::leave) {
            self.strand.sees_to(inside, 0);
        }
    }
}

impl<T> fmt::Debug for Strand<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Strand")
            .field("door", &self.0.door)
            .field("made_at", &self.0.made_at)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, paceline_loom))]
mod models;
