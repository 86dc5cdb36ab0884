//! Two tasks that send a message to and fro in a simulation, through channels and between two nodes of its
//! network, and how many polls and events a second that makes.
//!
//! ```sh
//! cargo run --release --example simulation --features sim
//! ```

#[path = "common/cli.rs"]
mod cli;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
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

/// Answers each connection byte by byte.
async fn echo() {
    let listener = TcpListener::bind("0.0.0.0:7").await.expect("the port is free");
    while let Ok((mut stream, _peer)) = listener.accept().await {
        let mut byte = [0];
        while let Ok(1) = stream.read(&mut byte).await {
            stream.write_all(&byte).await.expect("the peer waits for it");
        }
    }
}

/// Sends a byte to the node and back so many times.
async fn ping_node(rounds: u64) -> u64 {
    let mut stream = TcpStream::connect("server:7").await.expect("the server listens");
    for _ in 0..rounds {
        stream.write_all(&[1]).await.expect("the server is connected");
        stream.read_exact(&mut [0]).await.expect("the server answers");
    }
    rounds
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
            measure(&format!("{what}, {order:?}"), sim, ping_pong(rounds, pause));
        }
    }
    let mut sim = Sim::new(7);
    sim.node("server", echo);
    measure("echo between two nodes", sim, ping_node(rounds));
}

fn measure(what: &str, mut sim: Sim, program: impl Future<Output = u64> + Send + 'static) {
    let begin = Instant::now();
    let rounds = sim.block_on(program);
    let (report, took) = (sim.report(), begin.elapsed());
    let [rounds, polls, events] =
        [rounds, report.polls, report.events].map(|number| number as f64 / took.as_secs_f64());
    println!(
        "{what}: {rounds:.0} rounds/s, {polls:.0} polls/s, {events:.0} events/s, {:?} of virtual time in {took:.1?}",
        report.elapsed
    );
}
