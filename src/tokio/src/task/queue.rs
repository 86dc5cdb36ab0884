//! [`Queue`]: the tasks of a [`LocalSet`](super::LocalSet), polled in the order in which they became ready.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use async_task::Runnable;

/// Tasks polled in a round, before the future beside them is polled.
const ROUND: u32 = 61;

/// The number of a task: earlier spawns have lower ones.
pub(super) type Number = u64;

thread_local! {
    /// The queue whose round is on top of this thread's stack.
    static IN_ROUND: Cell<*const Ready> = const { Cell::new(ptr::null()) };
}

/// All unfinished tasks of a set. Stays on its thread; the wakers of its tasks may go elsewhere.
pub(super) struct Queue {
    ready: Arc<Ready>,
    unfinished: RefCell<BTreeMap<Number, Waker>>,
    spawned: Cell<Number>,
    is_closed: Cell<bool>,
}

/// The tasks that are ready to be polled.
struct Ready(Mutex<State>);

#[derive(Default)]
struct State {
    tasks: VecDeque<Runnable<Number>>,
    /// The waker of the future that runs the next round; taken by the first wake after the future has begun
    /// to wait.
    waker: Option<Waker>,
}

impl Ready {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, task: Runnable<Number>) {
        // The current round finds the task, or another round follows.
        let is_in_round = IN_ROUND.try_with(|queue| ptr::eq(queue.get(), self)).unwrap_or(false);
        let mut state = self.lock();
        state.tasks.push_back(task);
        let waker = if is_in_round { None } else { state.waker.take() };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            ready: Arc::new(Ready(Mutex::default())),
            unfinished: RefCell::default(),
            spawned: Cell::new(0),
            is_closed: Cell::new(false),
        }
    }

    /// Returns a number for the next task; `None` if the set accepts no more.
    pub(super) fn next_number(&self) -> Option<Number> {
        if self.is_closed.get() {
            return None;
        }
        self.spawned.set(self.spawned.get() + 1);
        Some(self.spawned.get())
    }

    pub(super) fn spawn(&self, number: Number, future: impl Future<Output = ()> + 'static) {
        let ready = self.ready.clone();
        let schedule = move |task| ready.push(task);
        let builder = async_task::Builder::new().metadata(number);
        let (task, handle) = builder.spawn_local(|_| future, schedule);
        self.unfinished.borrow_mut().insert(number, task.waker());
        handle.detach();
        task.schedule();
    }

    /// Removes a task that is over.
    pub(super) fn remove(&self, number: Number) {
        let waker = self.unfinished.borrow_mut().remove(&number);
        drop(waker);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.unfinished.borrow().is_empty()
    }

    /// Makes the next wake of a task call `waker`.
    pub(super) fn register(&self, waker: &Waker) {
        let mut state = self.ready.lock();
        if state.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            return;
        }
        let before = state.waker.replace(waker.clone());
        drop(state);
        drop(before);
    }

    /// Polls ready tasks, up to a number. Returns true if there may be more.
    pub(super) fn run_round(&self) -> bool {
        struct Before(*const Ready);
        impl Drop for Before {
            fn drop(&mut self) {
                IN_ROUND.set(self.0);
            }
        }
        let _before = Before(IN_ROUND.replace(Arc::as_ptr(&self.ready)));
        for _ in 0..ROUND {
            let task = self.ready.lock().tasks.pop_front();
            let Some(task) = task else { return false };
            task.run();
        }
        true
    }

    /// Drops all tasks, in the order in which they were spawned.
    pub(super) fn close(&self) {
        self.is_closed.set(true);
        let unfinished = self.unfinished.take();
        // The wakes make all waiting tasks ready, so that all tasks are in the queue.
        unfinished.into_values().for_each(Waker::wake);
        let mut tasks = Vec::from(std::mem::take(&mut self.ready.lock().tasks));
        tasks.sort_by_key(|task| *task.metadata());
        tasks.into_iter().for_each(drop);
    }
}
