//! The names that the file tests of turmoil import from it, made of the files of paceline's simulations.
//!
//! `fs::shim::std::fs` is `paceline::blocking::fs`, and `fs::shim::tokio::fs` is `tokio::fs` of the stand-in.
//! The variable `PACELINE_SEED` is part of the seed of each simulation.

use std::cell::RefCell;
use std::env;
use std::error::Error;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

pub type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

pub mod fs {
    pub mod shim {
        pub mod std {
            pub mod fs {
                pub use paceline::blocking::fs::*;
                pub use paceline::blocking::sync_fs::symlink;

                /// In turmoil, this returns no error.
                pub fn exists(path: impl AsRef<::std::path::Path>) -> bool {
                    paceline::blocking::fs::exists(path).unwrap_or(false)
                }

                /// The standard library has no name for this.
                pub fn sync_dir(path: impl AsRef<::std::path::Path>) -> ::std::io::Result<()> {
                    File::open(path)?.sync_all()
                }
            }
        }

        pub mod tokio {
            pub use tokio::fs;
        }
    }
}

/// Methods that turmoil's asynchronous files have, and those of tokio have not.
#[allow(async_fn_in_trait, reason = "only the tests call them")]
pub trait AtOffset {
    async fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize>;
    async fn write_at(&self, bytes: &[u8], offset: u64) -> std::io::Result<usize>;
}

impl AtOffset for tokio::fs::File {
    async fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        use tokio::io::{AsyncReadExt, AsyncSeekExt};
        let mut file = self.try_clone().await?;
        file.seek(std::io::SeekFrom::Start(offset)).await?;
        file.read(buffer).await
    }

    async fn write_at(&self, bytes: &[u8], offset: u64) -> std::io::Result<usize> {
        use tokio::io::{AsyncSeekExt, AsyncWriteExt};
        let mut file = self.try_clone().await?;
        file.seek(std::io::SeekFrom::Start(offset)).await?;
        file.write_all(bytes).await?;
        file.flush().await?;
        Ok(bytes.len())
    }
}

/// A future, or its output, that is not `Send`.
struct Here<T>(T);

// SAFETY: a simulation polls and drops its tasks, and returns their output, on the thread that made it.
unsafe impl<T> Send for Here<T> {}

impl<F: Future + Unpin> Future for Here<F> {
    type Output = Here<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(Here)
    }
}

/// The settings of files. Without a size of blocks, turmoil loses all that was not synced.
#[derive(Clone, Debug, Default)]
pub struct FsConfig {
    sync_probability: f64,
    capacity: Option<u64>,
    io_error_probability: f64,
    corruption_probability: f64,
    block_size: Option<usize>,
}

impl FsConfig {
    pub fn sync_probability(&mut self, probability: f64) -> &mut Self {
        self.sync_probability = probability;
        self
    }

    pub fn capacity(&mut self, bytes: u64) -> &mut Self {
        self.capacity = Some(bytes);
        self
    }

    pub fn io_error_probability(&mut self, probability: f64) -> &mut Self {
        self.io_error_probability = probability;
        self
    }

    pub fn corruption_probability(&mut self, probability: f64) -> &mut Self {
        self.corruption_probability = probability;
        self
    }

    pub fn block_size(&mut self, bytes: usize) -> &mut Self {
        self.block_size = Some(bytes);
        self
    }

    /// Has no effect: `judge` leaves the tests out that need it.
    pub fn io_latency(&mut self) -> &mut Self {
        self
    }

    pub fn min_latency(&mut self, _: Duration) -> &mut Self {
        self
    }

    pub fn max_latency(&mut self, _: Duration) -> &mut Self {
        self
    }
}

#[derive(Debug, Default)]
pub struct Builder {
    seed: u64,
    fs: FsConfig,
}

impl Builder {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn rng_seed(&mut self, seed: u64) -> &mut Self {
        self.seed = seed;
        self
    }

    pub fn fs(&mut self) -> &mut FsConfig {
        &mut self.fs
    }

    pub fn build(&self) -> Sim {
        let seed = env::var("PACELINE_SEED").map_or(0, |seed| seed.parse().expect("the seed is a number"));
        let sim = paceline::sim::Sim::new(1_000 * seed + self.seed);
        let files = sim.files();
        let survival = if self.fs.block_size.is_some() { 0.5 } else { self.fs.sync_probability };
        files.set_survival(survival..=survival);
        if let Some(block_size) = self.fs.block_size {
            files.set_sector(block_size);
        }
        Sim { sim, fs: self.fs.clone(), clients: Vec::new(), failed: Rc::default() }
    }
}

/// Returns the name of a node: some tests call one `test`, which is the host of the test itself in paceline.
fn node(name: &str) -> String {
    format!("turmoil-{name}")
}

type Ending = Here<Result>;

pub struct Sim {
    sim: paceline::sim::Sim,
    fs: FsConfig,
    clients: Vec<paceline::Task<Ending>>,
    /// The errors of hosts.
    failed: Rc<RefCell<Vec<Box<dyn Error>>>>,
}

impl Sim {
    /// Applies the settings to a node.
    fn prepare(&self, name: &str) {
        let name = &node(name);
        let files = self.sim.files();
        if let Some(capacity) = self.fs.capacity {
            files.set_capacity(name, capacity);
        }
        files.set_errors(name, self.fs.io_error_probability);
        files.set_corruption(name, self.fs.corruption_probability);
    }

    pub fn client(&mut self, name: &str, future: impl Future<Output = Result> + 'static) {
        let client = self.sim.client(&node(name), Here(Box::pin(future)));
        self.clients.push(client);
        self.prepare(name);
    }

    pub fn host<F: Future<Output = Result> + 'static>(
        &mut self,
        name: &str,
        main: impl Fn() -> F + 'static,
    ) {
        let state = Here((main, self.failed.clone()));
        self.sim.node(&node(name), move || {
            let state = &state;
            let (main, failed) = (&state.0.0, state.0.1.clone());
            let future = main();
            let run = async move {
                if let Err(error) = future.await {
                    failed.borrow_mut().push(error);
                }
            };
            let run = Here(Box::pin(run));
            async move { run.await.0 }
        });
        self.prepare(name);
    }

    /// Runs until all clients are done.
    pub fn run(&mut self) -> Result {
        for client in std::mem::take(&mut self.clients) {
            self.sim.block_on(client).0?;
        }
        assert_eq!(self.sim.report().panics, 0, "a host has panicked");
        match self.failed.borrow_mut().pop() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    pub fn crash(&self, name: &str) {
        self.sim.network().crash(&node(name));
    }

    /// Starts the program of a host again.
    pub fn bounce(&self, name: &str) {
        self.sim.network().crash(&node(name));
        self.sim.network().restart(&node(name));
    }
}
