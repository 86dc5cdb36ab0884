//! Tasks that are not `Send`: they share an `Rc` and stay on one thread.
//!
//! ```sh
//! cargo run --release --example local
//! ```
//!
//! Look at what is missing: no lock, no `Arc`, no worker thread. `block_on` on this thread runs the executor,
//! and also waits for the events of its tasks.

#[path = "common/cli.rs"]
mod cli;

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::future;
use paceline::{LocalExecutor, Timer, block_on};

fn main() -> ExitCode {
    cli::run(include_str!("local.rs"), |args| {
        cli::none(args)?;
        run();
        Ok(())
    })
}

fn run() {
    let diary = Rc::new(RefCell::new(Vec::new()));
    let executor = LocalExecutor::new();

    let tasks: Vec<_> = [("tortoise", 30), ("hare", 10)]
        .into_iter()
        .map(|(name, pause)| {
            let diary = diary.clone();
            executor.spawn(async move {
                for lap in 1..=3 {
                    Timer::after(Duration::from_millis(pause)).await;
                    diary.borrow_mut().push(format!("{name}, lap {lap}"));
                    // Lets the other tasks run first.
                    future::yield_now().await;
                }
            })
        })
        .collect();

    block_on(executor.run(async {
        for task in tasks {
            task.await;
        }
    }));

    for line in diary.borrow().iter() {
        println!("{line}");
    }
    println!("worker threads: {}", paceline::metrics().workers);
}
