//! Tasks that other code has built with `async-task`: [`Handle::schedule`] and [`Handle::scheduler`].

use std::mem;
use std::sync::{Arc, OnceLock};

use async_task::Runnable;

use super::{Handle, crew_of, or_panic};
use crate::blocking_threads::{Threads, Work};
use crate::executor;
use crate::pool::Pool;

/// Upper bound of the threads that cancel foreign tasks of runtimes that have ended: enough for some
/// destructors that block.
const CANCELLERS: usize = 4;

impl Handle {
    /// Has one poll of a task run on the runtime that other code has built with `async-task`: see
    /// [`scheduler`](Self::scheduler).
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// # let runtime = paceline::Runtime::builder().threads(1).build()?;
    /// let handle = runtime.handle();
    /// let (runnable, task) = async_task::spawn(async { "done" }, move |runnable| handle.schedule(runnable));
    /// runnable.schedule();
    /// assert_eq!(paceline::block_on(task), "done");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// For the default instance: if its workers cannot be started. The task is leaked.
    pub fn schedule(&self, runnable: Runnable) {
        let Some(pool) = self.pool() else { return cancel_elsewhere(None, runnable) };
        pool.reactor.assert_not_inherited();
        let crew = crew_of(&pool).and_then(|crew| {
            if !crew.parting.is_stopped() {
                crew.start(&pool)?;
            }
            Ok(crew)
        });
        match crew {
            Ok(crew) if crew.parting.is_stopped() => cancel_elsewhere(Some(pool.clone()), runnable),
            // If the workers stop after that look, the task is cancelled with the others.
            Ok(crew) => executor::schedule(&crew.state, runnable),
            Err(error) => {
                // To drop it would cancel the task on this thread.
                mem::forget(runnable);
                or_panic(Err(error))
            }
        }
    }

    /// Returns a schedule function for tasks that other code builds with `async-task`: they run on this
    /// runtime.
    ///
    /// A wake goes where a wake of an own task goes: the thread that handles an event polls the task next. A
    /// task that wakes itself goes to the back of the queue. The runtime polls the task, and does not count
    /// it:
    ///
    /// - A drain does not wait for it, and neither a report, nor a list of tasks, nor a simulation knows it.
    ///   In a simulation it runs on the host of the test.
    /// - Once the runtime is shut down, drained or dropped, a wake cancels the task. Its future is dropped on
    ///   another thread, because the code that wakes the task may hold a lock that the future takes. A few
    ///   threads do that for the whole process.
    /// - If it blocks, another thread takes over. The stall is counted, but not reported, because its line is
    ///   not known, and the task is not marked as slow for its next poll.
    /// - A panic that leaves the poll ends there, and is not counted. Give the task `propagate_panic` to get
    ///   it where the task is awaited. A destructor that panics aborts the process.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(2).build()?;
    /// let (runnable, task) = async_task::spawn(async { 6 * 7 }, runtime.handle().scheduler());
    /// runnable.schedule();
    /// assert_eq!(runtime.block_on(task), 42);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// The function panics for the default instance if its workers cannot be started.
    pub fn scheduler(&self) -> impl Fn(Runnable) + Clone + Send + Sync + 'static + use<> {
        let handle = self.clone();
        move |runnable| handle.schedule(runnable)
    }
}

/// Has another thread drop a foreign task's runnable, which cancels the task, inside of `pool` if that still
/// exists. The caller is called by a waker, perhaps under a lock that the task's future takes, as the
/// listener of a channel does; so a schedule function must not drop its runnable. At most [`CANCELLERS`]
/// threads in the process do that. If there is none and none can be started, drops the runnable here: code
/// that awaits the task must not wait for ever.
fn cancel_elsewhere(pool: Option<Arc<Pool>>, runnable: Runnable) {
    static THREADS: OnceLock<Arc<Threads>> = OnceLock::new();
    let threads = THREADS.get_or_init(|| Arc::new(Threads::new(CANCELLERS, None)));
    let cancels = async move {
        match pool {
            Some(pool) => pool.visit(|| drop(runnable)),
            None => drop(runnable),
        }
    };
    let (drops, task) = async_task::spawn(cancels, |_| ());
    task.detach();
    let _ = threads.submit(Work::Task(drops, None, None));
}
