//! [`LocalSet`]: tasks that stay on a thread, in a queue of their own. Each poll of the set polls some of
//! them.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::future::Home;
use super::queue::{Number, Queue};
use super::{Id, JoinHandle, SpawnMeta, TaskKind};
use crate::context::{self, Moved, Named, Place};
use crate::runtime::{self, LocalExtras, Runtime, refill, with_budget};

thread_local! {
    /// The set that is polled or entered on this thread.
    static CURRENT: RefCell<Option<Rc<Local>>> = const { RefCell::new(None) };
}

/// A set as its tasks see it. Dropping the set drops them.
pub(crate) struct Local {
    queue: Queue,
    pub(crate) extras: LocalExtras,
}

impl Local {
    #[track_caller]
    pub(crate) fn spawn<F>(self: &Rc<Self>, future: F, name: Option<&str>) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let meta = SpawnMeta::new(TaskKind::Local, Location::caller()).named(name);
        runtime::launch_local(self, future, meta.of_inner_size(size_of::<F>()))
    }

    /// Spawns a task that is polled in `home`, around its usual one.
    #[track_caller]
    pub(crate) fn launch_in<F, H>(
        self: &Rc<Self>,
        future: F,
        meta: SpawnMeta<'_>,
        home: impl FnOnce(AtHome) -> H,
    ) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
        H: Home + 'static,
    {
        let number = self.queue.next_number();
        let usual = AtHome { local: self.clone(), number: number.unwrap_or(0), stays: PhantomData };
        let (future, handle) = super::future(future, meta, home(usual));
        match number {
            Some(number) => self.queue.spawn(number, future),
            None => drop(future), // and so it is cancelled
        }
        handle
    }

    /// Drops all tasks, and accepts no more.
    pub(crate) fn close(self: &Rc<Self>) {
        let _inside = Inside::begin(Some(self.clone()));
        let _stays = stay();
        self.queue.close();
    }

    /// Panics if a panic of a task has ended the set, after it has dropped all tasks. In a `LocalRuntime`,
    /// `block_on` panics instead.
    fn check(&self) {
        if self.extras.has_ended() {
            self.queue.close();
            self.extras.raise();
        }
    }
}

/// The home of a task in a set. Dropping it ends the task.
pub(crate) struct AtHome {
    local: Rc<Local>,
    number: Number,
    stays: PhantomData<*const ()>,
}

impl Home for AtHome {
    fn poll<R>(&self, id: Id, poll: impl FnOnce() -> R) -> R {
        // The task has a budget of its own beside that of the set's poll.
        self.drop_in(id, || {
            with_budget(|| {
                refill();
                poll()
            })
        })
    }

    fn drop_in<R>(&self, id: Id, drop: impl FnOnce() -> R) -> R {
        let _inside = Inside::begin(Some(self.local.clone()));
        let _stays = stay();
        let _named = Named::begin(id);
        drop()
    }

    /// The runtime in which the set is polled, if there is one, counts it.
    fn note_panic(&self, spawned_at: &'static Location<'static>) {
        if let Some(runtime) = context::current() {
            runtime.paceline().note_panic(spawned_at);
        }
        self.local.extras.note_panic();
    }

    #[inline]
    fn has_ended(&self) -> bool {
        self.local.extras.has_ended()
    }
}

impl Drop for AtHome {
    fn drop(&mut self) {
        self.local.queue.remove(self.number);
    }
}

/// A future that is polled here cannot be left behind on this thread.
fn stay() -> Option<Moved> {
    (context::place() == Place::MayMove).then(|| Moved::to(Place::MustNotBlock))
}

/// A set is current, until this is dropped.
struct Inside(Option<Rc<Local>>);

impl Inside {
    fn begin(local: Option<Rc<Local>>) -> Self {
        // A thread that is ending spawns nothing any more.
        Self(CURRENT.try_with(|current| current.replace(local)).unwrap_or_default())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let before = self.0.take();
        drop(CURRENT.try_with(|current| current.replace(before)));
    }
}

#[track_caller]
pub fn spawn_local<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    spawn_local_as(future, None)
}

/// [`spawn_local`] of a task with a name.
#[track_caller]
pub(super) fn spawn_local_as<F>(future: F, name: Option<&str>) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    let local = runtime::current_local().or_else(|| CURRENT.with(|current| current.borrow().clone()));
    let Some(local) = local else {
        panic!("`spawn_local` called from outside of a `task::LocalSet` or `runtime::LocalRuntime`")
    };
    local.spawn(future, name)
}

/// Tasks that need not be `Send`, and are polled by polls of the set. Dropping the set cancels them.
pub struct LocalSet {
    id: runtime::Id,
    local: Rc<Local>,
}

impl LocalSet {
    pub fn new() -> Self {
        Self {
            id: runtime::Id::next(),
            local: Rc::new(Local { queue: Queue::new(), extras: LocalExtras::default() }),
        }
    }

    pub(crate) fn local(&self) -> &Rc<Local> {
        &self.local
    }

    pub fn enter(&self) -> LocalEnterGuard {
        LocalEnterGuard { _inside: Inside::begin(Some(self.local.clone())) }
    }

    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.local.spawn(future, None)
    }

    #[track_caller]
    pub fn block_on<F: Future>(&self, runtime: &Runtime, future: F) -> F::Output {
        runtime.block_on(self.run_until(future))
    }

    pub async fn run_until<F: Future>(&self, future: F) -> F::Output {
        RunUntil { local: &self.local, future }.await
    }

    pub fn id(&self) -> runtime::Id {
        self.id
    }
}

pin_project_lite::pin_project! {
    struct RunUntil<'a, F> {
        local: &'a Rc<Local>,
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for RunUntil<'_, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let queue = &this.local.queue;
        let _inside = Inside::begin(Some(this.local.clone()));
        let _stays = stay();
        queue.register(cx.waker());
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(output);
        }
        let may_be_more = queue.run_round();
        this.local.check();
        if may_be_more {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Future for LocalSet {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let queue = &self.local.queue;
        let _inside = Inside::begin(Some(self.local.clone()));
        let _stays = stay();
        queue.register(cx.waker());
        let may_be_more = queue.run_round();
        self.local.check();
        if may_be_more {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if queue.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[cfg(tokio_unstable)]
impl LocalSet {
    /// # Panics
    ///
    /// If the set has tasks, or is entered.
    #[track_caller]
    pub fn unhandled_panic(&mut self, behavior: runtime::UnhandledPanic) -> &mut Self {
        let is_unused = Rc::strong_count(&self.local) == 1;
        assert!(is_unused, "Unhandled Panic behavior modified after starting LocalSet");
        self.local.extras.end_at_panic(matches!(behavior, runtime::UnhandledPanic::ShutdownRuntime));
        self
    }
}

impl Drop for LocalSet {
    fn drop(&mut self) {
        self.local.close();
    }
}

impl Default for LocalSet {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LocalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSet").finish()
    }
}

/// A set is current on this thread, until this is dropped.
pub struct LocalEnterGuard {
    _inside: Inside,
}

impl fmt::Debug for LocalEnterGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalEnterGuard").finish()
    }
}
