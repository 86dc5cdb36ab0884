//! The current runtime and task. Each poll of a task sets one thread-local without a destructor, and the
//! [`Frame`] that set it restores it; runtimes that were entered by hand are beside it, in [`ENTERED`].
//!
//! An entered runtime counts if it was entered in the innermost frame, or if there is no frame: so a task
//! sees its own runtime wherever it is polled, and a guard that outlives its frame stays in force, as with
//! the real tokio.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;

use crate::runtime::{Handle, Shared, TryCurrentError, of_simulation};
use crate::task::Id;

/// The calls that are allowed on this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// No future of this crate is being polled: blocking is allowed.
    Outside,
    /// The polled future may use `block_in_place`.
    MayMove,
    /// The polled future is beside others that cannot move to another thread.
    MustNotBlock,
}

struct Here {
    /// The runtime of the innermost frame, which borrows it. Null outside of any frame.
    runtime: Cell<*const Shared>,
    task: Cell<Option<Id>>,
    place: Cell<Place>,
    worker: Cell<Option<Worker>>,
    /// How many runtimes had been entered when the innermost frame began.
    floor: Cell<usize>,
    /// How many runtimes are entered now.
    entered: Cell<usize>,
}

/// The thread is a worker of a runtime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worker {
    /// Only compared: the runtime may be gone.
    runtime: *const Shared,
    number: usize,
}

impl Worker {
    pub(crate) fn of(runtime: &Shared, number: usize) -> Self {
        Self { runtime, number }
    }
}

thread_local! {
    static HERE: Here = const {
        Here {
            runtime: Cell::new(ptr::null()),
            task: Cell::new(None),
            place: Cell::new(Place::Outside),
            worker: Cell::new(None),
            floor: Cell::new(0),
            entered: Cell::new(0),
        }
    };
    /// The runtimes that were entered by hand, the innermost last.
    static ENTERED: RefCell<Vec<Handle>> = const { RefCell::new(Vec::new()) };
}

/// Code of a runtime runs on this thread, until this is dropped.
pub(crate) struct Frame<'a> {
    runtime: *const Shared,
    task: Option<Id>,
    place: Place,
    floor: usize,
    /// The thread-local refers to the borrowed runtime.
    borrows: PhantomData<(&'a Shared, *const ())>,
}

impl<'a> Frame<'a> {
    #[inline]
    pub(crate) fn begin(runtime: &'a Arc<Shared>, task: Option<Id>, place: Place) -> Self {
        HERE.with(|here| Self {
            runtime: here.runtime.replace(Arc::as_ptr(runtime)),
            task: here.task.replace(task),
            place: here.place.replace(place),
            floor: here.floor.replace(here.entered.get()),
            borrows: PhantomData,
        })
    }
}

impl Drop for Frame<'_> {
    #[inline]
    fn drop(&mut self) {
        HERE.with(|here| {
            here.runtime.set(self.runtime);
            here.task.set(self.task);
            here.place.set(self.place);
            here.floor.set(self.floor);
        });
    }
}

/// Returns the runtime that was entered here, if any.
#[inline]
pub(crate) fn current() -> Option<Handle> {
    try_current().ok()
}

pub(crate) fn try_current() -> Result<Handle, TryCurrentError> {
    HERE.with(|here| {
        if here.entered.get() > here.floor.get() {
            let last = ENTERED.try_with(|entered| entered.borrow().last().cloned());
            return last.map_err(|_| TryCurrentError::destroyed())?.ok_or_else(TryCurrentError::missing);
        }
        let runtime = here.runtime.get();
        if runtime.is_null() {
            return of_simulation().ok_or_else(TryCurrentError::missing);
        }
        // SAFETY: the pointer came from `Arc::as_ptr` of the runtime that the innermost frame borrows, and
        // that frame still exists.
        Ok(Handle::of(unsafe {
            Arc::increment_strong_count(runtime);
            Arc::from_raw(runtime)
        }))
    })
}

/// [`current`], for calls that need a runtime.
#[track_caller]
pub(crate) fn expect() -> Handle {
    match try_current() {
        Ok(handle) => handle,
        Err(error) => panic!("{error}"),
    }
}

/// [`expect`], for calls that register descriptors.
#[allow(dead_code, reason = "by those modules that are compiled in")]
#[track_caller]
pub(crate) fn expect_io() -> Handle {
    let handle = expect();
    assert!(
        handle.has_io(),
        "A Tokio 1.x context was found, but IO is disabled. Call `enable_io` on the runtime builder to enable IO."
    );
    handle
}

#[inline]
pub(crate) fn task_id() -> Option<Id> {
    HERE.with(|here| here.task.get())
}

#[inline]
pub(crate) fn place() -> Place {
    HERE.with(|here| here.place.get())
}

/// Returns the number of the worker that this thread is, in whichever runtime.
pub(crate) fn worker() -> Option<usize> {
    HERE.with(|here| here.worker.get()).map(|worker| worker.number)
}

/// Returns the number of the worker of `runtime` that this thread is. A worker of another runtime may poll
/// its tasks, too, in a nested `block_on`.
#[allow(dead_code, reason = "behind tokio_unstable")]
pub(crate) fn worker_of(runtime: &Shared) -> Option<usize> {
    let worker = HERE.with(|here| here.worker.get())?;
    std::ptr::eq(worker.runtime, runtime).then_some(worker.number)
}

/// Makes the thread that worker. Returns the previous value.
pub(crate) fn set_worker(worker: Option<Worker>) -> Option<Worker> {
    HERE.with(|here| here.worker.replace(worker))
}

/// Until this is dropped, other calls are allowed on the thread.
pub(crate) struct Moved(Place);

impl Moved {
    pub(crate) fn to(place: Place) -> Self {
        Self(HERE.with(|here| here.place.replace(place)))
    }
}

impl Drop for Moved {
    fn drop(&mut self) {
        HERE.with(|here| here.place.set(self.0));
    }
}

/// Until this is dropped, that task is the current one.
pub(crate) struct Named(Option<Id>);

impl Named {
    pub(crate) fn begin(id: Id) -> Self {
        Self(HERE.with(|here| here.task.replace(Some(id))))
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        HERE.with(|here| here.task.set(self.0));
    }
}

/// A runtime is entered by hand, until this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    depth: usize,
    stays: PhantomData<*const ()>,
}

impl Entry {
    /// # Panics
    ///
    /// If the thread is ending, and its thread-locals no longer exist.
    #[track_caller]
    pub(crate) fn new(handle: Handle) -> Self {
        let Some(entry) = Self::try_new(handle) else { panic!("{}", TryCurrentError::destroyed()) };
        entry
    }

    pub(crate) fn try_new(handle: Handle) -> Option<Self> {
        let entered = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            entered.push(handle);
            entered.len()
        });
        let depth = entered.ok()?;
        HERE.with(|here| here.entered.set(depth));
        Some(Self { depth, stays: PhantomData })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let left = HERE.with(|here| {
            if here.entered.get() != self.depth {
                return false;
            }
            here.entered.set(self.depth - 1);
            true
        });
        if left {
            // Dropped outside of the borrow: this may be the last reference.
            drop(ENTERED.try_with(|entered| entered.borrow_mut().pop()));
        } else if !std::thread::panicking() {
            panic!(
                "`EnterGuard` values dropped out of order. Guards returned by `tokio::runtime::Handle::enter()` must be dropped in \
                 the reverse order as they were acquired."
            );
        }
    }
}
