//! [`Strand`]: a state that one operation after the other uses, whichever threads they come from.
//!
//! | part | what it is |
//! |---|---|
//! | [`Strand`] | the public type |
//! | [`door`] | which thread is inside, and which operations wait; the only part with `unsafe` |
//! | [`request`] | operations that the thread inside runs for other threads |
//! | [`serial`] | spawned futures, whose polls are operations |
//! | [`relay`] | the task that continues the operations where a thread has done its share |
//!
//! The README beside this file has the states and the argument.

mod door;
mod relay;
mod request;
mod serial;

use std::fmt;
use std::future::Future;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::task::Waker;

use crate::executor::Task;
use crate::observed::{SpawnMeta, TaskKind};
use crate::runtime;
use crate::sync::{self, Mutex, MutexGuard};
use crate::waking;
use door::{Door, DoorExit, Inside, Linked, Operation};
use relay::Relay;
use request::{Post, With};
use serial::{Serial, Starts};

/// Operations of other threads that a thread runs before it leaves the rest to a task of the runtime.
const SHARE: usize = 64;

/// A state that only one operation at a time uses, first come first served, without a lock that a thread
/// waits for.
///
/// An operation runs in place, on the calling thread, if no other thread is inside. Otherwise it is handed to
/// the thread inside, which runs it before it leaves. So no thread sleeps for its turn:
/// [`with`](Strand::with) awaits the result, and [`post`](Strand::post) does not wait at all.
/// [`spawn`](Strand::spawn) makes a task whose polls are such operations.
///
/// A strand is cheap to clone, and all clones are the same strand. The state is dropped with the last clone,
/// after the queued operations have run.
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
/// # Which thread runs which operation
///
/// The thread inside runs the operations that others queue meanwhile, up to 64 of theirs for each of its own.
/// If there are more, it leaves the strand open and spawns a task that continues with them, on its own
/// runtime, else on the default instance. A thread that brings an operation of its own before that task runs
/// continues in its place. If the runtime ends before, or is drained, the default instance continues. If no
/// thread runs that runtime (one of the [current thread](crate::Builder::current_thread) that was only
/// [entered](crate::Handle::enter)), the rest waits for the next operation from any thread.
///
/// So an operation may run on any thread that uses the strand, and it should be short. An operation that
/// blocks delays its own thread, for which the deputy finds a replacement, and all operations that wait for
/// the strand, for which there is none. A caller of [`post`](Strand::post) is never held back, so operations
/// pile up if they are posted faster than they run. Calling `post` while holding a lock is dangerous if any
/// operation of the strand takes the same lock.
///
/// # Used from inside itself
///
/// An operation that posts to its own strand, or polls a `with` of it, has that operation run after itself.
/// So a future that was [spawned](Strand::spawn) on a strand can await a `with` of the same strand. A
/// `block_on` inside an operation cannot: it would wait for itself. paceline's
/// [`block_on`](crate::block_on()) panics if it awaits such a `with`, alone or in a `zip` or `select`. The
/// following cases hang, because nothing tells them from other waits: the `block_on` of another crate; a
/// combinator that polls the `with` with a waker of its own, as `FuturesUnordered` does; and a `block_on` of
/// anything that depends on a later operation, such as a task that was [spawned](Strand::spawn) on the same
/// strand.
///
/// # Panics
///
/// A panic in an operation poisons nothing: it resumes in the task that awaits the operation, and the next
/// operation runs. The state stays as the panic left it. A panic in a [posted](Strand::post) operation ends
/// there, as in a detached task.
pub struct Strand<T>(Arc<StrandState<T>>);

struct StrandState<T> {
    door: Door<T>,
    starts: Mutex<Starts>,
    /// Where the strand was made: the report of a stall of its relay names this place.
    made_at: &'static Location<'static>,
}

/// A panic leaves the state as a panic in a method of it would; callers that care check it.
impl<T> UnwindSafe for Strand<T> {}
impl<T> RefUnwindSafe for Strand<T> {}

impl<T> Clone for Strand<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Send + 'static> Strand<T> {
    /// Makes a strand with this state.
    ///
    /// ```
    /// let strand = paceline::Strand::new(0);
    /// strand.post(|n| *n += 1);
    /// assert_eq!(paceline::block_on(strand.with(|n| *n)), 1);
    /// ```
    #[track_caller]
    pub fn new(state: T) -> Self {
        Self(Arc::new(StrandState {
            door: Door::new(state),
            starts: Mutex::new(Starts::new()),
            made_at: Location::caller(),
        }))
    }

    /// Runs an operation on the state and returns its result.
    ///
    /// Operations run in the order in which the futures that `with` returns are polled for the first time.
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
    /// Panics if the operation panics, or if a [`block_on`](crate::block_on()) inside an operation of the
    /// same strand awaits this, which would wait for itself.
    ///
    /// # Cancel safety
    ///
    /// An operation that has not begun when the future is dropped never runs. An operation that has begun
    /// runs to its end, and its result is dropped.
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

    /// Runs an operation here, then those that were queued meanwhile, if no thread is inside and nothing
    /// waits. Otherwise returns the operation.
    #[inline]
    fn run_in_place<R, F: FnOnce(&mut T) -> R>(&self, operation: F) -> Result<R, F> {
        match self.0.door.enter() {
            Some(inside) => Ok(Visit::of(self, inside).run(operation)),
            None => Err(operation),
        }
    }

    /// Runs an operation without waiting for it: when this returns, the operation has run on this thread,
    /// or will run soon, on the thread inside or on a later one. If an operation posts to its own strand,
    /// the posted operation runs after it.
    ///
    /// ```
    /// let strand = paceline::Strand::new(String::new());
    /// strand.post(|text| text.push_str("hello"));
    /// assert_eq!(paceline::block_on(strand.with(|text| text.len())), 5);
    /// ```
    ///
    /// # Panics
    ///
    /// Never. A panic of the operation reaches only the panic hook, as with a detached task.
    pub fn post(&self, operation: impl FnOnce(&mut T) + Send + 'static) {
        match self.0.door.enter() {
            Some(inside) => waking::call(|| Visit::of(self, inside).run(operation)),
            None => self.submit(Linked::new(Post::new(operation))),
        }
    }

    /// Spawns a future whose polls are operations of the strand: such a future is neither polled nor dropped
    /// while another one is polled or an operation runs. The futures start in the order in which they were
    /// spawned.
    ///
    /// The order holds across runtimes: before a future starts, all that were spawned before it have had
    /// their first poll, or are gone. If their tasks were not polled yet, because no thread runs their
    /// runtime (one of the [current thread](crate::Builder::current_thread) without a `block_on` in
    /// progress) or all its workers are busy, the thread that starts the later future polls them first. Only
    /// that first poll comes from there: after it, such a future continues when its own runtime runs.
    ///
    /// The task belongs to the runtime, as of [`spawn`](crate::spawn): dropping the [`Task`] cancels it. The
    /// thread that runs the task polls the future, unless another thread is inside or starts it: then that
    /// thread does, and what such a poll makes (a timer, a source, a task) belongs to the runtime of that
    /// thread. A cancelled future is dropped inside, too, perhaps a moment after [`Task::cancel`] has
    /// returned.
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
    /// Panics as [`spawn`](crate::spawn) does. A panic of the future resumes in the task that awaits this
    /// one.
    #[track_caller]
    pub fn spawn<R: Send + 'static>(&self, future: impl Future<Output = R> + Send + 'static) -> Task<R> {
        let caller = Location::caller();
        let future = SpawnMeta::new(TaskKind::Strand, caller).watch(future);
        // The task itself is not observed: the thread inside may poll the future, and not the task's own.
        runtime::spawn_from(Serial::new(self.clone(), future), SpawnMeta::unobserved(caller))
    }

    /// Leaves an operation to the thread inside. If there is none, runs it here, after those that wait; at
    /// most [`SHARE`] in all, and a relay runs the rest.
    fn submit<O: Operation<T> + 'static>(&self, operation: Arc<Linked<T, O>>) {
        if let Some(inside) = self.0.door.queue(operation) {
            self.run_queued(inside, SHARE);
        }
    }

    /// Runs at most `limit` of the waiting operations and leaves the strand. If others wait, spawns a relay,
    /// which runs them.
    #[cold]
    fn run_queued(&self, inside: Inside<'_, T>, limit: usize) {
        if inside.drain(limit) == DoorExit::Open {
            // If no runtime can be started the relay is dropped, and its drop runs the rest as well.
            let relay = Relay { strand: Some(self.clone()), is_last: false };
            waking::call(|| runtime::spawn_from(relay, SpawnMeta::unobserved(self.0.made_at)).detach());
        }
    }

    /// Spawns the relay on the default instance.
    fn send_relay(&self, relay: Relay<T>) {
        waking::call(|| runtime::spawn_by_default(relay, SpawnMeta::unobserved(self.0.made_at)).detach());
    }

    /// Panics if the future that is polled with this waker would wait for itself: see
    /// [`Door::would_wait_for_itself`].
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

/// An operation that runs in place.
struct Visit<'a, T: Send + 'static> {
    strand: &'a Strand<T>,
    /// `None` once the operation has ended.
    inside: Option<Inside<'a, T>>,
}

impl<'a, T: Send + 'static> Visit<'a, T> {
    #[inline]
    fn of(strand: &'a Strand<T>, inside: Inside<'a, T>) -> Self {
        Self { strand, inside: Some(inside) }
    }

    /// Runs the operation, then at most [`SHARE`] of those that were queued meanwhile, and leaves. If the
    /// operation panics, the drop leaves.
    #[inline]
    fn run<R>(mut self, operation: impl FnOnce(&mut T) -> R) -> R {
        let inside = self.inside.as_mut().expect("it is taken once");
        let output = inside.with(operation);
        if let Some(Err(inside)) = self.inside.take().map(Inside::leave) {
            self.strand.run_queued(inside, SHARE);
        }
        output
    }
}

impl<T: Send + 'static> Drop for Visit<'_, T> {
    /// Leaves the strand if the operation panicked, and runs no other operation meanwhile: a relay, which
    /// is a task of the runtime, runs those that were queued. Does nothing after an operation that
    /// returned.
    #[inline]
    fn drop(&mut self) {
        if let Some(Err(inside)) = self.inside.take().map(Inside::leave) {
            self.strand.run_queued(inside, 0);
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
