//! The hooks of a [`Builder`]: closures that the runtime calls.

use std::sync::Arc;

use super::Builder;
use crate::insight::{Stall, TaskPanic};
use crate::sync;

impl Builder {
    /// Sets a closure that returns the whole name of each thread, of workers and of threads for closures that
    /// block. This is for the package that replaces tokio, whose `thread_name` adds no number. The closure
    /// must not block or return a NUL.
    #[doc(hidden)]
    pub fn thread_names(mut self, names: impl Fn(usize) -> String + Send + Sync + 'static) -> Self {
        self.config.thread_names = Some(Arc::new(names));
        self
    }

    /// Says that the runtime is in the place of one of tokio, by the package that replaces it. The end of
    /// such a runtime leaves closures that block to their threads, which run them, instead of cancelling
    /// those that have not begun or come later: destructors of tasks may still spawn closures.
    #[doc(hidden)]
    pub fn in_place_of_tokio(mut self) -> Self {
        self.config.in_place_of_tokio = true;
        self
    }

    /// Sets a hook that each worker calls when it starts, before it polls a task. Workers that are added
    /// later call it as well.
    ///
    /// Free functions that the hook calls act on this runtime. The hook may spawn, but should not wait for
    /// tasks of the runtime: the worker polls none before the hook returns. Nor should it block: no other
    /// worker starts in place of one whose hook has not returned.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (tell, told) = mpsc::channel();
    /// let runtime = paceline::Runtime::builder()
    ///     .threads(2)
    ///     .on_thread_start(move || drop(tell.send(())))
    ///     .build()?;
    /// assert_eq!(told.iter().take(2).count(), 2);
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_thread_start(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.config.on_start = Some(Arc::new(hook));
        self
    }

    /// Sets a hook that each worker calls when it ends, after its last poll. Workers that were added because
    /// others blocked call it as well. [`shutdown`](crate::Runtime::shutdown) and
    /// [`drain`](crate::Handle::drain) wait for the hook as for a task.
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (tell, told) = mpsc::channel();
    /// let runtime = paceline::Runtime::builder()
    ///     .threads(2)
    ///     .on_thread_stop(move || drop(tell.send(())))
    ///     .build()?;
    /// drop(runtime);
    /// assert_eq!(told.iter().count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_thread_stop(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.config.on_stop = Some(Arc::new(hook));
        self
    }

    /// Sets a hook that a worker calls when no task is left to poll, and before it waits for events. In a
    /// runtime of the [current thread](Builder::current_thread) the thread that is in its `block_on` calls
    /// it. If the hook makes work, the thread does that work.
    ///
    /// The hook should not block: the worker is not replaced meanwhile, because the replacement would call the
    /// same hook. Another thread serves events, but tasks that wait while all workers are in hooks get one more
    /// worker only after a tenth of a second, and the next one after twice that, and so on.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let (tell, told) = async_channel::unbounded();
    /// let runtime = paceline::Runtime::builder()
    ///     .current_thread()
    ///     .on_thread_park(move || _ = tell.try_send("nothing to do"))
    ///     .build()?;
    /// assert_eq!(runtime.block_on(told.recv()), Ok("nothing to do"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_thread_park(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.config.on_park = Some(Arc::new(hook));
        self
    }

    /// Sets a hook that a thread calls after [`on_thread_park`](Builder::on_thread_park), before it polls a
    /// task again. The thread calls it even if it did not sleep in between, but not if it ends. The hook
    /// should not block: see there.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).on_thread_unpark(|| println!("up")).build()?;
    /// runtime.block_on(runtime.spawn(async {}));
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_thread_unpark(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.config.on_unpark = Some(Arc::new(hook));
        self
    }

    /// Sets a hook that is called once for each task that panics, in a poll or in its destructor. With such a
    /// hook, the line that the runtime prints by default is not printed.
    /// [`Metrics::tasks_panicked`](crate::Metrics::tasks_panicked) counts the panic all the same.
    ///
    /// The thread that polled or dropped the task calls the hook. By then the panic is caught and the future
    /// of the task is dropped, but code that awaits the task has not got the panic yet, and the task counts
    /// as unfinished until the hook returns. Free functions that the hook calls act on this runtime. A panic
    /// of the hook itself is printed and does no other harm. The hook should not block: that counts as a
    /// stall of the task.
    ///
    /// The hook is called whether or not the task was detached, which is not known. A panic of the future of
    /// a `block_on`, or of a closure that [blocks](crate::blocking), is not reported, because its caller gets
    /// it. A panic of a task of an [`Executor`](crate::Executor) is not reported either. If the runtime was
    /// dropped when the panic comes, the line is printed.
    ///
    /// Tokio's `unhandled_panic` shuts a runtime down at the first panic. Here the hook tells the main
    /// function, which ends the runtime in an orderly way:
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::{Handle, TaskPanic};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (tell, told) = async_channel::unbounded();
    /// let runtime = paceline::Runtime::builder()
    ///     .threads(1)
    ///     .on_task_panic(move |panic: &TaskPanic| _ = tell.try_send(panic.clone()))
    ///     .build()?;
    ///
    /// let line = line!() + 1;
    /// runtime.spawn(async { panic!("a bug") }).detach();
    /// // In a program, `select` waits for this and for the server.
    /// let panic = runtime.block_on(told.recv()).unwrap();
    /// assert_eq!(panic.spawned_at.line(), line);
    /// println!("{panic}: shutting down");
    /// runtime.drain(Duration::from_secs(5));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// To end the process at once, as `panic = "abort"` does, but only for panics of tasks:
    ///
    /// ```no_run
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder()
    ///     .on_task_panic(|panic| {
    ///         eprintln!("{panic}");
    ///         std::process::abort();
    ///     })
    ///     .build()?;
    /// # drop(runtime);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_task_panic(mut self, hook: impl Fn(&TaskPanic) + Send + Sync + 'static) -> Self {
        self.config.on_task_panic = Some(Arc::new(hook));
        self
    }

    /// Sets a hook that is called when a task, or the future of a `block_on`, has blocked its thread for ten
    /// milliseconds, or has computed for as long without a pause; [`Stall::kind`] says which. For a task that
    /// computes, processor time counts, since a task does not decide when its thread loses its core to
    /// others. While the stall lasts, the hook is called again each time that it has become ten times as
    /// long: [`Stall::is_first`] tells the first report of a stall from these.
    ///
    /// The hook runs on a thread of its own, one call at a time: the next report waits until the hook
    /// returns. Free functions that the hook calls act on this runtime.
    ///
    /// With the feature `trace`, the first hook that displays a stall, or asks where it blocks, loads the
    /// debug information of the program: a tenth of a second, or seconds in a large debug build. Other
    /// reports wait meanwhile. To avoid that, send a clone of the [`Stall`] to another thread, which
    /// displays it.
    ///
    /// The future of a `block_on` is watched like a task. The future of the free
    /// [`block_on`](crate::block_on()) is watched from its second poll on, because it is in no runtime
    /// before. A hook for a runtime that other code has built, or for the default instance, is set by
    /// [`Handle::on_stall`](crate::Handle::on_stall). To print the stalls of all runtimes of a program
    /// without a hook, set `PACELINE_REPORT=stalls` in its environment, as described
    /// [here](crate#what-a-program-reports).
    ///
    /// ```
    /// use std::sync::mpsc;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (tell, told) = mpsc::channel();
    /// let runtime = paceline::Runtime::builder()
    ///     .threads(1)
    ///     .on_stall(move |stall| {
    ///         let _ = tell.send(stall.spawned_at);
    ///     })
    ///     .build()?;
    /// // A channel of the standard library blocks its thread, here until `end` is dropped.
    /// let (end, ended) = mpsc::channel::<()>();
    /// let line = line!() + 1;
    /// runtime.spawn(async move { drop(ended.recv()) }).detach();
    /// assert_eq!(told.recv().unwrap().line(), line);
    /// drop(end);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_stall(self, hook: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        sync::lock(&self.config.on_stall).push(Arc::new(hook));
        self
    }
}
