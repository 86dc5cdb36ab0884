//! Nodes that gossip over UDP in a simulation. About once a second, each node sends the set of nodes that it
//! knows of to two random nodes. For each ten nodes, a random one crashes, and restarts ten seconds later.
//! One packet in a hundred is lost.
//!
//! ```sh
//! cargo run --release --example gossip --features sim [NODES MINUTES [SEED]]
//! ```

#[path = "common/cli.rs"]
mod cli;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use paceline::net::UdpSocket;
use paceline::sim::{self, Sim};
use paceline::{Timer, spawn};

/// For each node, how many nodes it knows of.
#[derive(Default)]
struct Known(Vec<AtomicUsize>);

/// Runs one of the nodes until it crashes.
async fn node(number: usize, known: Arc<Known>) {
    let nodes = known.0.len();
    let socket = UdpSocket::bind("0.0.0.0:7000").await.expect("the port is free");
    let heard = socket.clone();
    // Bit n is set if this node has heard of node n.
    let mut seen = vec![0_u64; nodes.div_ceil(64)];
    seen[number / 64] |= 1 << (number % 64);
    let (tell, told) = async_channel::unbounded::<Vec<u64>>();
    spawn(async move {
        let mut buffer = vec![0; 8 * nodes.div_ceil(64)];
        while let Ok((length, _from)) = heard.recv_from(&mut buffer).await {
            let words = buffer[..length].chunks_exact(8);
            let words = words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
            if tell.send(words.collect()).await.is_err() {
                return;
            }
        }
    })
    .detach();
    let mut rng = sim::rng();
    loop {
        Timer::after(Duration::from_millis(900 + rng.below(200))).await;
        while let Ok(news) = told.try_recv() {
            seen.iter_mut().zip(news).for_each(|(word, news)| *word |= news);
        }
        known.0[number].store(seen.iter().map(|word| word.count_ones() as usize).sum(), Relaxed);
        let packet: Vec<u8> = seen.iter().flat_map(|word| word.to_le_bytes()).collect();
        for _ in 0..2 {
            let peer = format!("n{}:7000", rng.below(nodes as u64));
            socket.send_to(&packet, peer).await.expect("the node exists");
        }
    }
}

fn main() -> ExitCode {
    cli::run(include_str!("gossip.rs"), |args| {
        let numbers = args.iter().map(|arg| arg.parse().ok()).collect::<Option<Vec<u64>>>();
        let (nodes, minutes, seed) = match numbers.as_deref() {
            Some([]) => (50, 10, 7),
            Some(&[nodes @ 1..=65_000, minutes]) => (nodes, minutes, 7),
            Some(&[nodes @ 1..=65_000, minutes, seed]) => (nodes, minutes, seed),
            _ => return Err(cli::refuse(args, "a number of nodes, of minutes, and a seed")),
        };
        run(nodes as usize, Duration::from_secs(60 * minutes), seed);
        Ok(())
    })
}

fn run(nodes: usize, duration: Duration, seed: u64) {
    let begin = Instant::now();
    let mut sim = Sim::new(seed);
    let known = Arc::new(Known((0..nodes).map(|_| AtomicUsize::new(0)).collect()));
    for number in 0..nodes {
        let known = known.clone();
        sim.node(&format!("n{number}"), move || node(number, known.clone()));
    }
    let network = sim.network();
    network.set_loss(0.01);
    let mut rng = sim.rng();
    for _ in 0..nodes / 10 {
        let name = format!("n{}", rng.below(nodes as u64));
        let crash = Duration::from_millis(rng.below(duration.as_millis() as u64));
        let (crashes, restarts, again) = (network.clone(), network.clone(), name.clone());
        sim.at(crash, move || crashes.crash(&name));
        sim.at(crash + Duration::from_secs(10), move || restarts.restart(&again));
    }
    let mut rounds = 0;
    while known.0.iter().any(|known| known.load(Relaxed) < nodes) {
        sim.run_for(Duration::from_secs(1));
        rounds += 1;
        assert!(rounds < 1000, "the nodes do not find each other");
    }
    println!("{nodes} nodes know each other after {:?}", sim.report().elapsed);
    let report = sim.run_for(duration.saturating_sub(sim.report().elapsed));
    let took = begin.elapsed();
    println!(
        "{:?} of virtual time in {took:.1?}: {} polls, {} events, {:.0} events/s, hash {:#018x}",
        report.elapsed,
        report.polls,
        report.events,
        report.events as f64 / took.as_secs_f64(),
        report.hash
    );
}
