//! [`LocalRuntime`]: a current-thread runtime with a set of tasks that need not be `Send`.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::{Rc, Weak};
use std::time::Duration;

use super::extras::Extras;
use super::{Builder, EnterGuard, Handle, Id, Runtime, RuntimeMetrics};
use crate::context::{self, Place};
use crate::task::{JoinHandle, Local, LocalSet};

thread_local! {
    /// The local runtimes of this thread. Handles refer to them by number, because handles can move to other
    /// threads.
    static OWN: RefCell<Vec<(Id, Weak<Local>)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the set for local tasks, if the current runtime is local.
#[track_caller]
pub(crate) fn current_local() -> Option<Rc<Local>> {
    let runtime = context::current().filter(|runtime| runtime.shared.config.is_local)?;
    let id = runtime.shared.id;
    let own = OWN.try_with(|own| {
        own.borrow().iter().find(|(other, _)| *other == id).and_then(|(_, local)| local.upgrade())
    });
    let Some(local) = own.ok().flatten() else {
        panic!("Local tasks can only be spawned on a LocalRuntime from the thread the runtime was created on")
    };
    Some(local)
}

/// No options exist yet.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct LocalOptions {
    stays: PhantomData<*mut u8>,
}

/// A runtime that stays on its thread, as its tasks do.
#[derive(Debug)]
pub struct LocalRuntime {
    /// Dropped first, with its tasks.
    local: Option<LocalSet>,
    runtime: Option<Runtime>,
    handle: Handle,
}

impl LocalRuntime {
    pub fn new() -> io::Result<Self> {
        Builder::new_current_thread().enable_all().build_local(LocalOptions::default())
    }

    pub(super) fn of(runtime: Runtime) -> Self {
        let (local, handle) = (LocalSet::new(), runtime.handle().clone());
        local.local().extras.bind(&handle.shared);
        OWN.with(|own| own.borrow_mut().push((handle.id(), Rc::downgrade(local.local()))));
        Self { local: Some(local), runtime: Some(runtime), handle }
    }

    fn local(&self) -> &LocalSet {
        self.local.as_ref().expect("it is there until the runtime is dropped")
    }

    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.local().spawn_local(future)
    }

    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.handle.spawn_blocking(f)
    }

    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _works = self.handle.shared.work();
        let local = self.local();
        let future = Extras::guard(&self.handle, local.run_until(future), || local.local().close());
        self.handle.drive(future, Place::MustNotBlock)
    }

    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    pub fn shutdown_timeout(mut self, duration: Duration) {
        self.end_local();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(duration);
        }
    }

    pub fn shutdown_background(self) {
        self.shutdown_timeout(Duration::ZERO);
    }

    pub fn metrics(&self) -> RuntimeMetrics {
        self.handle.metrics()
    }

    fn end_local(&mut self) {
        let _entered = context::Entry::try_new(self.handle.clone());
        self.local = None;
        let id = self.handle.id();
        let _ = OWN.try_with(|own| own.borrow_mut().retain(|(other, _)| *other != id));
    }
}

impl Drop for LocalRuntime {
    fn drop(&mut self) {
        self.end_local();
    }
}

impl UnwindSafe for LocalRuntime {}
impl RefUnwindSafe for LocalRuntime {}
