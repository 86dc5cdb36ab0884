//! What a [`Builder`] is given to be called.

use std::sync::Arc;

use super::Builder;
use crate::pool::Stall;

impl Builder {
    /// Called by each worker when it starts, before it polls a task; by those that are added later, too.
    ///
    /// Free functions called in it act on this runtime. It may spawn, but should not wait for tasks of the runtime: the
    /// worker polls none before it returns.
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
        self.on_thread_start = Some(Arc::new(hook));
        self
    }

    /// Called by each worker when it ends, after its last poll. [`shutdown`](crate::Runtime::shutdown) and [`drain`](crate::Runtime::drain) wait for it as for a
    /// task. Of those that were added when others blocked, too.
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
        self.on_thread_stop = Some(Arc::new(hook));
        self
    }

    /// Called by a worker when it has found nothing to do and is about to sleep; of a runtime of the [current
    /// thread](Builder::current_thread), by whoever is in its `block_on`. If the hook makes something to do, the thread does it.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use paceline::Timer;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let sleeps = Arc::new(AtomicU32::new(0));
    /// let counts = sleeps.clone();
    /// let runtime = paceline::Runtime::builder()
    ///     .current_thread()
    ///     .on_thread_park(move || _ = counts.fetch_add(1, Ordering::Relaxed))
    ///     .build()?;
    /// runtime.block_on(Timer::after(Duration::from_millis(1)));
    /// assert!(sleeps.load(Ordering::Relaxed) > 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_thread_park(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_thread_park = Some(Arc::new(hook));
        self
    }

    /// Called by a thread of which [`on_thread_park`](Builder::on_thread_park) was told, when it has something to do: before it does that, and also
    /// where it did not sleep after all. It should not block: what the thread is to do may be known to nobody else.
    ///
    /// ```
    /// # fn main() -> std::io::Result<()> {
    /// let runtime = paceline::Runtime::builder().threads(1).on_thread_unpark(|| println!("up")).build()?;
    /// runtime.block_on(runtime.spawn(async {}));
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_thread_unpark(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.on_thread_unpark = Some(Arc::new(hook));
        self
    }

    /// Called when a task, or the future of a `block_on`, has blocked its thread for ten milliseconds, or computed for as long without a pause, and again
    /// whenever that has become ten times as long; [`Stall::kind`] says which. What counts for a task that computes is processor time:
    /// to lose its core to others is no fault of its. The hook runs on a thread of its own, one call at a time: the next report waits until it returns. Free
    /// functions called in it act on this runtime.
    ///
    /// The future of a `block_on` is watched as a task is; that of the free [`block_on`](crate::block_on()) from its second poll on, for before
    /// that it is in no runtime. To watch the default instance, give the hook to the builder that is [installed](Builder::install).
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::thread;
    /// use std::time::Duration;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let (tell, told) = mpsc::channel();
    /// let runtime = paceline::Runtime::builder()
    ///     .threads(1)
    ///     .on_stall(move |stall| {
    ///         let _ = tell.send(stall.spawned_at);
    ///     })
    ///     .build()?;
    /// let line = line!() + 1;
    /// runtime.spawn(async { thread::sleep(Duration::from_millis(200)) }).detach();
    /// assert_eq!(told.recv().unwrap().line(), line);
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_stall(mut self, hook: impl Fn(&Stall) + Send + Sync + 'static) -> Self {
        self.on_stall = Some(Arc::new(hook));
        self
    }
}
