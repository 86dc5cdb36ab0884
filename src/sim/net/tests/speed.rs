//! How many segments the kernel processes in a second. Run with `--release -- --ignored --nocapture`.

use std::time::Instant;

use super::super::{Kernel, SocketReadiness};
use super::support::{A, B, ms, net};

#[test]
#[ignore = "prints a measurement"]
fn echo() {
    const ROUNDS: u64 = 500_000;
    let mut net = net();
    net.set_latency(A, B, ms(1)..=ms(1));
    let (client, server) = net.pair();
    let (start, before) = (Instant::now(), net.sent());
    let mut buffer = [0; 16];
    let wait = |kernel: &mut Kernel, id| {
        loop {
            while let Some((other, readiness)) = kernel.next_edge() {
                if other == id && readiness.contains(SocketReadiness::READABLE) {
                    return;
                }
            }
            let at = kernel.next_event().unwrap();
            kernel.advance(at);
        }
    };
    for _ in 0..ROUNDS {
        for (from, to) in [(client, server), (server, client)] {
            net.send(from, b"x").unwrap();
            wait(&mut net, to);
            assert_eq!(net.recv(to, &mut buffer).unwrap(), 1);
        }
    }
    let (seconds, segments) = (start.elapsed().as_secs_f64(), net.sent() - before);
    println!("{:.2} million segments/s", segments as f64 / seconds / 1e6);
    println!("{:.2} million calls/s", 4.0 * ROUNDS as f64 / seconds / 1e6);
    println!("{:.2} million round trips/s", ROUNDS as f64 / seconds / 1e6);
}

#[test]
#[ignore = "prints a measurement"]
fn bulk() {
    const BYTES: usize = 2 << 30;
    let mut net = net();
    let (client, server) = net.pair();
    let (start, before) = (Instant::now(), net.sent());
    let (chunk, mut buffer, mut received) = (vec![0; 1 << 16], vec![0; 1 << 16], 0);
    while received < BYTES {
        while net.send(client, &chunk).is_ok() {}
        while let Ok(count) = net.recv(server, &mut buffer) {
            received += count;
        }
        let at = net.next_event().unwrap();
        net.advance(at);
    }
    let (seconds, segments) = (start.elapsed().as_secs_f64(), net.sent() - before);
    println!("{:.2} million segments/s", segments as f64 / seconds / 1e6);
    println!("{:.2} GB/s", received as f64 / seconds / 1e9);
}
