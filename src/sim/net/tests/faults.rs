//! Latency, loss, partitions, held links, rules and crashes.

use std::hash::Hasher;

use super::super::{Errno, Kernel, PacketBody, SocketId, SocketReadiness, Verdict};
use super::support::{A, B, Net, assert_errno, ms, net, net_with, secs, small, v4};

/// Sends bytes from a socket to another, reads them as they come, and asserts that they are the same.
fn transfer(net: &mut Net, from: SocketId, to: SocketId, count: usize) {
    let bytes: Vec<u8> = (0..count).map(|index| (index * 7 + index / 251) as u8).collect();
    let (mut sent, mut received) = (0, Vec::new());
    net.run_until(|kernel: &mut Kernel| {
        while let Ok(count) = kernel.send(from, &bytes[sent..]) {
            sent += count;
            if sent == bytes.len() {
                break;
            }
        }
        let mut buffer = [0; 5000];
        while let Ok(count) = kernel.recv(to, &mut buffer) {
            received.extend_from_slice(&buffer[..count]);
        }
        received.len() == bytes.len()
    });
    assert_eq!(received, bytes);
}

#[test]
fn a_partition_that_heals_in_time_is_not_noticed() {
    let mut net = net();
    let (client, server) = net.pair();
    net.partition(A, B);
    net.send(client, b"patience").unwrap();
    net.run(secs(2));
    assert!(!net.is(server, SocketReadiness::READABLE));
    net.repair(A, B);
    net.run(secs(2));
    assert_eq!(net.read_all(server), (b"patience".to_vec(), false));
    assert_eq!((net.error(client), net.error(server)), (None, None));
    assert_eq!(net.usage().links, 0, "a link without faults takes no memory");
}

#[test]
fn a_partition_that_lasts_times_out() {
    let mut net = net();
    let (client, server) = net.pair();
    net.partition(A, B);
    net.send(client, b"lost").unwrap();
    net.run(secs(900));
    assert!(!net.is(client, SocketReadiness::ERROR));
    net.run(secs(60));
    assert_errno(net.recv(client, &mut [0]), Errno::TimedOut);
    assert!(!net.is(server, SocketReadiness::ERROR), "the server has sent nothing");
    net.repair(A, B);
    net.send(server, b"x").unwrap();
    net.run(secs(1));
    assert_errno(net.recv(server, &mut [0]), Errno::ConnectionReset);
}

#[test]
fn a_partition_loses_what_is_on_its_way() {
    let mut net = net();
    let (a, b) = (net.datagram(A, 5), net.datagram(B, 6));
    net.set_latency(A, B, ms(10)..=ms(10));
    net.send_to(a, b"x", v4(B, 6)).unwrap();
    net.run(ms(5));
    net.partition(A, B);
    net.run(ms(50));
    assert_errno(net.recv(b, &mut [0]), Errno::WouldBlock);
}

#[test]
fn a_partition_of_one_direction() {
    let mut net = net();
    let (a, b) = (net.datagram(A, 5), net.datagram(B, 6));
    net.partition_oneway(A, B);
    net.send_to(a, b"x", v4(B, 6)).unwrap();
    net.send_to(b, b"y", v4(A, 5)).unwrap();
    net.run(secs(1));
    assert_errno(net.recv(b, &mut [0]), Errno::WouldBlock);
    assert_eq!(net.recv(a, &mut [0]).unwrap(), 1);
}

#[test]
fn lost_acknowledgements_repeat_no_bytes() {
    let mut net = net();
    let (client, server) = net.pair();
    net.partition_oneway(B, A);
    net.send(client, b"once").unwrap();
    net.run(secs(10));
    net.repair(A, B);
    net.run(secs(20));
    assert_eq!(net.read_all(server).0, b"once");
    net.close(client).unwrap();
    net.close(server).unwrap();
    net.assert_no_leak();
}

#[test]
fn a_mebibyte_arrives_in_spite_of_loss() {
    for seed in 0..5 {
        let mut net = net_with(super::super::Settings::default(), seed);
        let (client, server) = net.pair();
        net.set_loss(A, B, 0.3);
        transfer(&mut net, client, server, 1 << 20);
        net.close(client).unwrap();
        net.close(server).unwrap();
        net.assert_no_leak();
    }
}

#[test]
fn small_buffers_and_loss_in_both_directions() {
    for seed in 0..20 {
        let mut net = net_with(small(), seed);
        let (client, server) = net.pair();
        net.set_loss(A, B, 0.2);
        net.set_latency(A, B, ms(1)..=ms(300));
        transfer(&mut net, client, server, 20_000);
        transfer(&mut net, server, client, 20_000);
    }
}

#[test]
fn one_lost_segment_is_sent_again_before_the_timeout() {
    let mut net = net();
    let (client, server) = net.pair();
    let mut count = 0;
    net.add_rule(move |packet| {
        let has_data = matches!(&packet.body, PacketBody::Tcp(segment) if !segment.data.is_empty());
        count += u32::from(has_data);
        if has_data && count == 2 { Verdict::Drop } else { Verdict::Pass }
    });
    assert_eq!(net.send(client, &[1; 20_000]).unwrap(), 20_000);
    net.run(ms(50));
    assert_eq!(net.read_all(server).0.len(), 20_000);
}

#[test]
fn segments_that_a_rule_delays_are_put_in_order() {
    let mut net = net();
    let (client, server) = net.pair();
    let mut count = 0;
    net.add_rule(move |_| {
        count += 1;
        if count % 3 == 0 { Verdict::Deliver(ms(20)) } else { Verdict::Pass }
    });
    transfer(&mut net, client, server, 200_000);
}

#[test]
fn a_held_link_delivers_in_order_after_its_release() {
    let mut net = net();
    let (a, b) = (net.datagram(A, 5), net.datagram(B, 6));
    net.hold(A, B);
    for byte in 0..10 {
        net.send_to(a, &[byte], v4(B, 6)).unwrap();
    }
    net.run(secs(5));
    assert_eq!(net.usage().held, 10);
    assert_errno(net.recv(b, &mut [0]), Errno::WouldBlock);
    net.release(A, B);
    let mut buffer = [0];
    let bytes: Vec<u8> = std::iter::from_fn(|| net.recv(b, &mut buffer).ok().map(|_| buffer[0])).collect();
    assert_eq!(bytes, (0..10).collect::<Vec<u8>>());
    assert_eq!(net.usage().held, 0);
}

#[test]
fn a_stream_survives_a_held_link() {
    let mut net = net();
    let (client, server) = net.pair();
    net.hold(A, B);
    net.send(client, b"held").unwrap();
    net.run(secs(20));
    net.release(A, B);
    net.run(ms(10));
    assert_eq!(net.read_all(server).0, b"held");
}

#[test]
fn latency_of_a_link() {
    let mut net = net();
    net.set_latency(A, B, ms(40)..=ms(40));
    net.listener(B, 80, 8);
    let client = net.dial(A, v4(B, 80));
    assert_eq!(net.next_event(), Some(ms(40)));
    net.run(ms(79));
    assert!(!net.is(client, SocketReadiness::WRITABLE));
    net.run(ms(1));
    assert!(net.is(client, SocketReadiness::WRITABLE));
}

#[test]
fn the_default_link_can_change() {
    let mut net = net();
    net.set_default_latency(ms(7)..=ms(7));
    net.dial(A, v4(B, 80));
    assert_eq!(net.next_event(), Some(ms(7)));
}

#[test]
fn a_long_round_trip_is_not_taken_for_a_loss() {
    let mut net = net();
    net.set_latency(A, B, ms(400)..=ms(400));
    let (client, server) = net.pair();
    for _ in 0..10 {
        net.send(client, b"x").unwrap();
        net.run(secs(2));
        net.read_all(server);
    }
    let before = net.sent();
    net.send(client, b"x").unwrap();
    net.run(secs(2));
    assert_eq!(net.sent() - before, 2);
}

#[test]
fn rules_decide_in_their_order() {
    let mut net = net();
    let (a, b) = (net.datagram(A, 5), net.datagram(B, 6));
    net.add_rule(|_| Verdict::Pass);
    let drop = net.add_rule(|_| Verdict::Drop);
    net.add_rule(|_| Verdict::Deliver(ms(30)));
    net.send_to(a, b"x", v4(B, 6)).unwrap();
    net.run(secs(1));
    assert_errno(net.recv(b, &mut [0]), Errno::WouldBlock);
    net.remove_rule(drop);
    net.send_to(a, b"x", v4(B, 6)).unwrap();
    net.run(ms(29));
    assert_errno(net.recv(b, &mut [0]), Errno::WouldBlock);
    net.run(ms(1));
    assert_eq!(net.recv(b, &mut [0]).unwrap(), 1);
}

#[test]
fn rules_do_not_see_loopback() {
    let mut net = net();
    net.add_rule(|_| Verdict::Drop);
    let id = net.datagram(A, 5);
    net.send_to(id, b"x", v4(A, 5)).unwrap();
    assert_eq!(net.recv(id, &mut [0]).unwrap(), 1);
}

#[test]
fn connect_to_a_crashed_host_times_out() {
    let mut net = net();
    net.listener(B, 80, 8);
    net.crash(B);
    assert!(!net.is_up(B));
    let client = net.dial(A, v4(B, 80));
    net.run(secs(200));
    assert_eq!(net.error(client), Some(Errno::TimedOut as i32));
    assert_errno(net.tcp_socket(B, super::super::Family::V4), Errno::NetworkDown);
}

#[test]
fn a_crash_is_noticed_by_a_reset_after_the_restart() {
    let mut net = net();
    let (client, server) = net.pair();
    net.crash(B);
    net.run(secs(5));
    assert_errno(net.recv(server, &mut [0]), Errno::BadDescriptor);
    assert_errno(net.recv(client, &mut [0]), Errno::WouldBlock);
    net.send(client, b"anyone?").unwrap();
    net.run(secs(5));
    assert_eq!(net.error(client), None);
    net.restart(B);
    net.run(secs(10));
    assert_eq!(net.error(client), Some(Errno::ConnectionReset as i32));
    net.close(client).unwrap();
    net.assert_no_leak();
}

#[test]
fn a_restarted_host_listens_at_the_same_port() {
    let mut net = net();
    net.listener(B, 80, 8);
    net.crash(B);
    net.restart(B);
    let refused = net.dial(A, v4(B, 80));
    net.run(ms(5));
    assert_eq!(net.error(refused), Some(Errno::ConnectionRefused as i32));
    let (client, server) = net.pair();
    transfer(&mut net, client, server, 100);
}

#[test]
fn a_new_connection_takes_the_addresses_of_an_ended_one() {
    let mut net = net();
    let listener = net.listener(B, 80, 8);
    for round in 0..3 {
        let client = net.tcp_socket(A, super::super::Family::V4).unwrap();
        net.set_reuse_address(client, true).unwrap();
        net.bind(client, v4(A, 5)).unwrap();
        assert_errno(net.connect(client, v4(B, 80)), Errno::InProgress);
        net.run(ms(5));
        let (server, _) = net.accept(listener).unwrap();
        net.send(server, &[round]).unwrap();
        // The server closes first, so its side waits.
        net.close(server).unwrap();
        net.run(ms(5));
        assert_eq!(net.read_all(client), (vec![round], true));
        net.close(client).unwrap();
        net.run(ms(5));
    }
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let run = |seed| {
        let mut net = net_with(super::super::Settings::default(), seed);
        let hash = net.trace_hash();
        let (client, server) = net.pair();
        net.set_loss(A, B, 0.1);
        transfer(&mut net, client, server, 100_000);
        net.close(client).unwrap();
        net.assert_leak_free_after(server);
        hash.lock().unwrap().finish()
    };
    let hashes: Vec<u64> = (0..4).map(run).collect();
    assert_eq!(hashes, (0..4).map(run).collect::<Vec<u64>>());
    assert_ne!(hashes[0], hashes[1]);
}

impl Net {
    fn assert_leak_free_after(&mut self, last: SocketId) {
        self.close(last).unwrap();
        self.assert_no_leak();
    }
}

#[test]
fn stale_timers_are_not_events() {
    let mut net = net();
    let (client, server) = net.pair();
    transfer(&mut net, client, server, 10);
    net.run(ms(5));
    assert_eq!(net.next_event(), None, "an idle connection has no timer");
}
