//! [`LocalSet`]: tasks that stay on a thread, on a paceline executor of their own that whoever polls the set runs.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use paceline::LocalExecutor;

use super::future::Home;
use super::{Id, JoinHandle};
use crate::context::{self, Moved, Named, Place};
use crate::runtime::{self, Runtime, refill, with_budget};

thread_local! {
    /// The set that is polled here, or was entered.
    static CURRENT: RefCell<Option<Rc<Local>>> = const { RefCell::new(None) };
}

/// A set as its tasks see it. It does not keep them.
pub(crate) struct Local {
    /// `None` once the set was dropped.
    executor: RefCell<Option<Rc<LocalExecutor<'static>>>>,
    /// How many are not over.
    tasks: Cell<usize>,
    /// Who waits for there to be none.
    waits: Cell<Option<Waker>>,
}

impl Local {
    pub(crate) fn spawn<F>(self: &Rc<Self>, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.tasks.set(self.tasks.get() + 1);
        let (future, handle) = super::future(future, AtHome { local: self.clone(), stays: PhantomData });
        let executor = self.executor.borrow().clone();
        match executor {
            Some(executor) => executor.spawn(future).detach(),
            None => drop(future), // and so it is cancelled
        }
        handle
    }
}

/// A task of a set is in it. When it is dropped, the task is over.
struct AtHome {
    local: Rc<Local>,
    stays: PhantomData<*const ()>,
}

impl Home for AtHome {
    fn poll<R>(&self, id: Id, poll: impl FnOnce() -> R) -> R {
        // The budget of whoever polls the set is another one.
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
}

impl Drop for AtHome {
    fn drop(&mut self) {
        let left = self.local.tasks.get() - 1;
        self.local.tasks.set(left);
        if left == 0 {
            self.local.waits.take().into_iter().for_each(Waker::wake);
        }
    }
}

/// What is polled here cannot be left behind on this thread.
fn stay() -> Option<Moved> {
    (context::place() == Place::MayMove).then(|| Moved::to(Place::MustNotBlock))
}

/// A set is current, until this is dropped.
struct Inside(Option<Rc<Local>>);

impl Inside {
    fn begin(local: Option<Rc<Local>>) -> Self {
        // On a thread that ends, nothing is spawned any more.
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
    let local = runtime::current_local().or_else(|| CURRENT.with(|current| current.borrow().clone()));
    let Some(local) = local else {
        panic!("`spawn_local` called from outside of a `task::LocalSet` or `runtime::LocalRuntime`")
    };
    local.spawn(future)
}

/// Tasks that need not be `Send`, and are polled by whoever polls the set. Dropping it cancels them.
pub struct LocalSet {
    id: runtime::Id,
    local: Rc<Local>,
    executor: Rc<LocalExecutor<'static>>,
    /// What the set does when it is awaited, from then on.
    run: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl LocalSet {
    pub fn new() -> Self {
        let executor = Rc::new(LocalExecutor::new());
        let local = Local {
            executor: RefCell::new(Some(executor.clone())),
            tasks: Cell::new(0),
            waits: Cell::new(None),
        };
        Self { id: runtime::Id::next(), local: Rc::new(local), executor, run: None }
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
        self.local.spawn(future)
    }

    #[track_caller]
    pub fn block_on<F: Future>(&self, runtime: &Runtime, future: F) -> F::Output {
        runtime.block_on(self.run_until(future))
    }

    pub async fn run_until<F: Future>(&self, future: F) -> F::Output {
        RunUntil { local: &self.local, run: self.executor.run(future) }.await
    }

    pub fn id(&self) -> runtime::Id {
        self.id
    }
}

pin_project_lite::pin_project! {
    struct RunUntil<'a, R> {
        local: &'a Rc<Local>,
        #[pin]
        run: R,
    }
}

impl<R: Future> Future for RunUntil<'_, R> {
    type Output = R::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R::Output> {
        let this = self.project();
        let _inside = Inside::begin(Some(this.local.clone()));
        let _stays = stay();
        this.run.poll(cx)
    }
}

impl Future for LocalSet {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (local, executor) = (self.local.clone(), self.executor.clone());
        let _inside = Inside::begin(Some(local.clone()));
        let _stays = stay();
        let run = self.run.get_or_insert_with(|| {
            let is_over = poll_fn(move |cx| {
                if local.tasks.get() == 0 {
                    return Poll::Ready(());
                }
                local.waits.set(Some(cx.waker().clone()));
                Poll::Pending
            });
            Box::pin(async move { executor.run(is_over).await })
        });
        let result = run.as_mut().poll(cx);
        if result.is_ready() {
            self.run = None;
        }
        result
    }
}

impl Drop for LocalSet {
    fn drop(&mut self) {
        let _inside = Inside::begin(Some(self.local.clone()));
        let _stays = stay();
        self.run = None;
        // What is spawned from here on is cancelled at once.
        self.local.executor.take();
        let executor = std::mem::take(&mut self.executor);
        drop(executor);
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
