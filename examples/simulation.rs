//! Two tasks that send a message to and fro in a simulation, and how many polls a second that makes.
//!
//! ```sh
//! cargo run --release --example simulation --features sim
//! ```

#[path = "common/cli.rs"]
mod cli;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline::sim::{Order, Sim};
use paceline::{Timer, spawn};

/// Sends a message to and fro so many times. Each of the two tasks waits for `pause` before it answers.
async fn ping_pong(rounds: u64, pause: Option<Duration>) -> u64 {
    let (ping, pinged) = async_channel::bounded(1);
    let (pong, ponged) = async_channel::bounded(1);
    let wait = move || async move {
        if let Some(pause) = pause {
            Timer::after(pause).await;
        }
    };
    let other = spawn(async move {
        while let Ok(number) = pinged.recv().await {
            wait().await;
            pong.send(number + 1).await.expect("the other task waits");
        }
    });
    let mut number = 0;
    for _ in 0..rounds {
        wait().await;
        ping.send(number).await.expect("the other task waits");
        number = ponged.recv().await.expect("the other task answers");
    }
    drop(ping);
    other.await;
    number
}

fn main() -> ExitCode {
    cli::run(include_str!("simulation.rs"), |args| {
        cli::none(args)?;
        run();
        Ok(())
    })
}

fn run() {
    let rounds = 200_000;
    for (what, pause) in [("with timers", Some(Duration::from_millis(1))), ("without timers", None)] {
        for order in [Order::Fifo, Order::Random, Order::Pct(3)] {
            let mut sim = Sim::new(7);
            sim.order(order);
            let begin = Instant::now();
            assert_eq!(sim.block_on(ping_pong(rounds, pause)), rounds);
            let (report, took) = (sim.report(), begin.elapsed());
            let rate = report.polls as f64 / took.as_secs_f64();
            println!(
                "{what}, {order:?}: {rate:.0} polls/s, {:?} of virtual time in {took:.1?}",
                report.elapsed
            );
        }
    }
}
