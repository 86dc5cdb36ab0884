//! A program that builds its own tasks with `async-task`, and runs them on paceline: its *dispatcher*, the
//! part that says where a task runs, is forty lines.
//!
//! ```sh
//! cargo run --release --example dispatcher
//! ```
//!
//! User interfaces are often built like this: some tasks run on any thread, some on the main thread only, and
//! some after a time. The rest of the program calls the three functions of `Dispatcher` and never names a
//! runtime.

#[path = "common/cli.rs"]
mod cli;

use std::future::Future;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender};
use async_task::{Runnable, Task};
use paceline::{Handle, Timer, block_on};

/// Where tasks run.
#[derive(Clone)]
struct Dispatcher {
    background: Handle,
    main: Sender<Runnable>,
}

impl Dispatcher {
    /// Returns a dispatcher, and what [`run_main`] needs on the main thread.
    fn new() -> (Self, Receiver<Runnable>) {
        let (main, queue) = async_channel::unbounded();
        (Self { background: Handle::current(), main }, queue)
    }

    /// Has a task polled on any thread.
    fn dispatch(&self, runnable: Runnable) {
        self.background.schedule(runnable);
    }

    /// Has a task polled on the main thread. Once that has ended, the task is cancelled.
    fn dispatch_on_main_thread(&self, runnable: Runnable) {
        let _ = self.main.try_send(runnable);
    }

    /// Has a task polled on any thread, after this time.
    fn dispatch_after(&self, delay: Duration, runnable: Runnable) {
        let background = self.background.clone();
        let later = async move {
            Timer::after(delay).await;
            background.schedule(runnable);
        };
        self.background.spawn(later).detach();
    }
}

/// Polls the tasks of the main thread until all dispatchers are gone.
async fn run_main(queue: Receiver<Runnable>) {
    while let Ok(runnable) = queue.recv().await {
        runnable.run();
    }
}

/// Starts a task whose polls go to `schedule`, as the program's own `spawn` functions do.
fn start<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
    schedule: impl Fn(Runnable) + Send + Sync + 'static,
) -> Task<T> {
    let (runnable, task) = async_task::spawn(future, schedule);
    runnable.schedule();
    task
}

fn main() -> ExitCode {
    cli::run(include_str!("dispatcher.rs"), |args| {
        cli::none(args)?;
        run();
        Ok(())
    })
}

fn run() {
    let (dispatcher, queue) = Dispatcher::new();
    let (anywhere, begin) = (dispatcher.clone(), Instant::now());
    let name = || thread::current().name().unwrap_or("a thread without a name").to_owned();
    let background = start(async move { name() }, move |runnable| anywhere.dispatch(runnable));
    let (delayed, later) = async_task::spawn(async move { begin.elapsed() }, |_| ());
    dispatcher.dispatch_after(Duration::from_millis(20), delayed);
    let main = start(
        async move {
            println!("in the background: {}", background.await);
            println!("20 ms later:       {:.0?}", later.await);
            println!("on the main one:   {}", name());
        },
        move |runnable| dispatcher.dispatch_on_main_thread(runnable),
    );
    // The only dispatcher that is left is in `main`'s schedule function, so this returns with that task.
    main.detach();
    block_on(run_main(queue));
}
