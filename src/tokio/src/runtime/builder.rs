//! [`Builder`]: the configuration of a runtime. Options without a meaning for paceline are checked as in the
//! real tokio, and ignored.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::extras::Settings;
use super::hooks::Hooks;
use super::shared::Config;
use super::{LocalOptions, LocalRuntime, Runtime, RuntimeFlavor, Shared};

pub struct Builder {
    pub(super) flavor: RuntimeFlavor,
    name: Option<String>,
    has_io: bool,
    has_time: bool,
    starts_paused: bool,
    worker_threads: Option<usize>,
    max_blocking_threads: usize,
    thread_name: Arc<dyn Fn() -> String + Send + Sync>,
    stack_size: Option<usize>,
    hooks: Hooks,
    pub(super) extras: Settings,
}

impl Builder {
    pub fn new_current_thread() -> Self {
        Self::new(RuntimeFlavor::CurrentThread)
    }

    #[cfg(feature = "rt-multi-thread")]
    pub fn new_multi_thread() -> Self {
        Self::new(RuntimeFlavor::MultiThread)
    }

    fn new(flavor: RuntimeFlavor) -> Self {
        Self {
            flavor,
            name: None,
            has_io: false,
            has_time: false,
            starts_paused: false,
            worker_threads: None,
            max_blocking_threads: 512,
            thread_name: Arc::new(|| "tokio-rt-worker".into()),
            stack_size: None,
            hooks: Hooks::default(),
            extras: Settings::default(),
        }
    }

    pub fn enable_all(&mut self) -> &mut Self {
        self.has_io = true;
        self.has_time = cfg!(feature = "time");
        self
    }

    pub fn enable_io(&mut self) -> &mut Self {
        self.has_io = true;
        self
    }

    #[cfg(feature = "time")]
    pub fn enable_time(&mut self) -> &mut Self {
        self.has_time = true;
        self
    }

    #[cfg(feature = "test-util")]
    pub fn start_paused(&mut self, start_paused: bool) -> &mut Self {
        self.starts_paused = start_paused;
        self
    }

    #[track_caller]
    pub fn worker_threads(&mut self, threads: usize) -> &mut Self {
        assert!(threads > 0, "Worker threads cannot be set to 0");
        self.worker_threads = Some(threads);
        self
    }

    #[track_caller]
    pub fn max_blocking_threads(&mut self, threads: usize) -> &mut Self {
        assert!(threads > 0, "Max blocking threads cannot be set to 0");
        self.max_blocking_threads = threads;
        self
    }

    pub fn thread_name(&mut self, name: impl Into<String>) -> &mut Self {
        let name = name.into();
        self.thread_name = Arc::new(move || name.clone());
        self
    }

    pub fn thread_name_fn<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() -> String + Send + Sync + 'static,
    {
        self.thread_name = Arc::new(f);
        self
    }

    #[track_caller]
    pub fn name(&mut self, name: impl Into<String>) -> &mut Self {
        let name = name.into();
        assert!(!name.trim().is_empty(), "runtime name shouldn't be empty");
        self.name = Some(name);
        self
    }

    pub fn thread_stack_size(&mut self, bytes: usize) -> &mut Self {
        self.stack_size = Some(bytes);
        self
    }

    pub fn on_thread_start<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.hooks.on_start = Some(Arc::new(f));
        self
    }

    pub fn on_thread_stop<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.hooks.on_stop = Some(Arc::new(f));
        self
    }

    pub fn on_thread_park<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.hooks.on_park = Some(Arc::new(f));
        self
    }

    pub fn on_thread_unpark<F>(&mut self, f: F) -> &mut Self
    where
        F: Fn() + Send + Sync + 'static,
    {
        self.hooks.on_unpark = Some(Arc::new(f));
        self
    }

    pub fn thread_keep_alive(&mut self, _: Duration) -> &mut Self {
        self
    }

    #[track_caller]
    pub fn global_queue_interval(&mut self, interval: u32) -> &mut Self {
        assert!(interval > 0, "global_queue_interval must be greater than 0");
        self
    }

    #[track_caller]
    pub fn event_interval(&mut self, interval: u32) -> &mut Self {
        assert!(interval > 0, "event_interval must be greater than 0");
        self
    }

    #[track_caller]
    pub fn max_io_events_per_tick(&mut self, capacity: usize) -> &mut Self {
        assert!(capacity > 0, "max_io_events_per_tick must be non-zero");
        self
    }

    #[track_caller]
    pub fn max_io_events_per_busy_tick(&mut self, capacity: usize) -> &mut Self {
        assert!(capacity > 0, "max_io_events_per_busy_tick must be non-zero");
        self
    }

    pub fn build(&mut self) -> io::Result<Runtime> {
        self.start(false)
    }

    #[track_caller]
    pub fn build_local(&mut self, _: LocalOptions) -> io::Result<LocalRuntime> {
        assert!(
            self.flavor == RuntimeFlavor::CurrentThread,
            "multi_thread is not supported for LocalRuntime"
        );
        self.start(true).map(LocalRuntime::of)
    }

    fn start(&mut self, is_local: bool) -> io::Result<Runtime> {
        let workers = match self.flavor {
            RuntimeFlavor::CurrentThread => 1,
            RuntimeFlavor::MultiThread => self.worker_threads.unwrap_or_else(workers_by_default),
        };
        let _clocks = super::simulated::system_clocks();
        let shared = Arc::new(Shared::new(
            Config {
                flavor: self.flavor,
                workers,
                name: self.name.clone(),
                is_local,
                hooks: self.hooks.clone(),
                has_io: self.has_io,
                has_time: self.has_time,
                starts_paused: self.starts_paused,
            },
            self.extras.start(workers)?,
        ));
        let builder = paceline::Runtime::builder();
        let builder = match self.flavor {
            RuntimeFlavor::CurrentThread => builder.current_thread(),
            RuntimeFlavor::MultiThread => builder.threads(workers),
        };
        let names = self.names(workers);
        let mut builder = builder.blocking_threads(self.max_blocking_threads).in_place_of_tokio();
        builder = builder.thread_names(move |_| names());
        if let Some(bytes) = self.stack_size {
            builder = builder.stack_size(bytes);
        }
        let paceline = self.hooks.add_to(builder, &shared).build()?;
        shared.bind(paceline.handle());
        Ok(Runtime::of(shared, paceline))
    }

    /// Returns the function that names threads. It has made the names of the first workers before: if the
    /// program's function panics there, `build` does, as in the real tokio.
    fn names(&self, workers: usize) -> impl Fn() -> String + Send + Sync + use<> {
        let names = self.thread_name.clone();
        let first = if self.flavor == RuntimeFlavor::MultiThread { workers } else { 0 };
        let first: Mutex<VecDeque<_>> = Mutex::new((0..first).map(|_| names()).collect());
        move || {
            let made = first.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            made.unwrap_or_else(|| names())
        }
    }
}

/// Returns `TOKIO_WORKER_THREADS`, or the number of cores.
fn workers_by_default() -> usize {
    const NAME: &str = "TOKIO_WORKER_THREADS";
    match std::env::var(NAME) {
        Ok(text) => {
            let workers = text.parse().unwrap_or_else(|error| {
                panic!("\"{NAME}\" must be usize, error: {error}, value: {text}");
            });
            assert!(workers > 0, "\"{NAME}\" cannot be set to 0");
            workers
        }
        Err(std::env::VarError::NotPresent) => std::thread::available_parallelism().map_or(1, usize::from),
        Err(std::env::VarError::NotUnicode(text)) => {
            panic!("\"{NAME}\" must be valid unicode, error: {text:?}")
        }
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("flavor", &self.flavor)
            .field("name", &self.name)
            .field("worker_threads", &self.worker_threads)
            .field("max_blocking_threads", &self.max_blocking_threads)
            .field("thread_stack_size", &self.stack_size)
            .finish_non_exhaustive()
    }
}
