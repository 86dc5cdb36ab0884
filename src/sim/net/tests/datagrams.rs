//! UDP.

use std::net::Shutdown;

use super::super::{Errno, Family, Settings, SocketReadiness};
use super::support::{A, B, any, assert_errno, ms, net, net_with, secs, v4, v6};

#[test]
fn a_datagram_arrives_with_its_sender() {
    let mut net = net();
    let (a, b) = (net.datagram(A, 5), net.datagram(B, 6));
    assert_eq!(net.send_to(a, b"hello", v4(B, 6)).unwrap(), 5);
    assert_errno(net.recv_from(b, &mut [0; 8]), Errno::WouldBlock);
    net.run(ms(1));
    assert_eq!(net.edges(b), [SocketReadiness::READABLE | SocketReadiness::WRITABLE]);
    let mut buffer = [0; 8];
    assert_eq!(net.recv_from(b, &mut buffer).unwrap(), (5, v4(A, 5)));
    assert_eq!(&buffer[..5], b"hello");
    assert!(!net.is(b, SocketReadiness::READABLE));
}

#[test]
fn a_datagram_that_is_too_long_for_the_buffer_is_cut() {
    let mut net = net();
    let id = net.datagram(A, 5);
    net.send_to(id, b"hello", "127.0.0.1:5".parse().unwrap()).unwrap();
    net.send_to(id, b"", "127.0.0.1:5".parse().unwrap()).unwrap();
    let mut buffer = [0; 2];
    assert_eq!(net.peek_from(id, &mut buffer).unwrap().0, 2);
    assert_eq!(net.peek(id, &mut buffer).unwrap(), 2);
    assert_eq!(net.recv(id, &mut buffer).unwrap(), 2);
    assert_eq!(net.recv(id, &mut buffer).unwrap(), 0, "an empty datagram");
    assert_errno(net.recv(id, &mut buffer), Errno::WouldBlock);
}

#[test]
fn the_largest_datagram() {
    let mut net = net();
    let id = net.udp_socket(A, Family::V4).unwrap();
    assert_eq!(net.send_to(id, &vec![0; 65_507], v4(B, 6)).unwrap(), 65_507);
    assert_errno(net.send_to(id, &vec![0; 65_508], v4(B, 6)), Errno::MessageTooLong);
    let six = net.udp_socket(A, Family::V6).unwrap();
    assert_eq!(net.send_to(six, &vec![0; 65_527], v6(B, 6)).unwrap(), 65_527);
}

#[test]
fn a_full_queue_drops() {
    let mut net = net_with(Settings { datagram_buffer: 1000, ..Settings::default() }, 1);
    let (a, b) = (net.datagram(A, 5), net.datagram(B, 6));
    for _ in 0..10 {
        net.send_to(a, &[0; 300], v4(B, 6)).unwrap();
    }
    net.run(ms(2));
    let count = std::iter::from_fn(|| net.recv(b, &mut [0; 300]).ok()).count();
    assert_eq!(count, 4, "the one that exceeds the limit is accepted");
}

#[test]
fn a_connected_socket_has_one_peer() {
    let mut net = net();
    let (a, b, other) = (net.datagram(A, 5), net.datagram(B, 6), net.datagram(B, 7));
    assert_errno(net.send(a, b"x"), Errno::DestinationRequired);
    assert_errno(net.peer_addr(a), Errno::NotConnected);
    net.connect(a, v4(B, 6)).unwrap();
    assert_eq!((net.peer_addr(a).unwrap(), net.local_addr(a).unwrap()), (v4(B, 6), v4(A, 5)));
    net.send_to(other, b"foreign", v4(A, 5)).unwrap();
    net.send_to(b, b"own", v4(A, 5)).unwrap();
    net.run(ms(2));
    assert_eq!(net.recv(a, &mut [0; 9]).unwrap(), 3);
    assert_errno(net.recv(a, &mut [0; 9]), Errno::WouldBlock);
    net.connect(a, v4(B, 7)).unwrap();
    assert_eq!(net.peer_addr(a).unwrap(), v4(B, 7));
}

#[test]
fn a_connected_socket_learns_that_the_port_is_closed() {
    let mut net = net();
    let a = net.datagram(A, 5);
    net.connect(a, v4(B, 6)).unwrap();
    net.send(a, b"x").unwrap();
    net.run(ms(2));
    assert!(net.is(a, SocketReadiness::ERROR));
    assert_errno(net.recv(a, &mut [0]), Errno::ConnectionRefused);
    net.send(a, b"x").unwrap();
    net.run(ms(2));
    assert_errno(net.send(a, b"x"), Errno::ConnectionRefused);
    assert_eq!(net.error(a), None);
}

#[test]
fn an_unconnected_socket_learns_nothing() {
    let mut net = net();
    let a = net.datagram(A, 5);
    net.send_to(a, b"x", v4(B, 6)).unwrap();
    net.run(ms(2));
    assert_eq!(net.readiness(a).unwrap(), SocketReadiness::WRITABLE);
}

#[test]
fn addresses_that_cannot_be_reached() {
    let mut net = net();
    let id = net.udp_socket(A, Family::V4).unwrap();
    assert_errno(net.send_to(id, b"x", v4(B, 0)), Errno::Invalid);
    assert_errno(net.send_to(id, b"x", "[::1]:5".parse().unwrap()), Errno::FamilyNotSupported);
    assert_errno(net.send_to(id, b"x", "8.8.8.8:53".parse().unwrap()), Errno::NetworkUnreachable);
    assert_errno(net.send_to(id, b"x", "255.255.255.255:5".parse().unwrap()), Errno::AccessDenied);
    net.connect(id, "192.168.9.9:5".parse().unwrap()).unwrap();
    net.send(id, b"x").unwrap();
    net.run(secs(4));
    assert_eq!(net.error(id), Some(Errno::HostUnreachable as i32));
}

#[test]
fn a_socket_is_bound_by_its_first_datagram() {
    let mut net = net();
    let id = net.udp_socket(A, Family::V4).unwrap();
    assert_eq!(net.local_addr(id).unwrap(), any(0));
    net.send_to(id, b"x", v4(B, 6)).unwrap();
    assert_ne!(net.local_addr(id).unwrap().port(), 0);
    assert_errno(net.bind(id, any(5)), Errno::Invalid);
}

#[test]
fn ports_of_datagrams_and_of_streams_are_separate() {
    let mut net = net();
    net.listener(A, 80, 8);
    net.datagram(A, 80);
    let id = net.udp_socket(A, Family::V4).unwrap();
    assert_errno(net.bind(id, any(80)), Errno::AddressInUse);
    assert_errno(net.listen(id, 8), Errno::NotSupported);
    assert_errno(net.accept(id), Errno::NotSupported);
}

#[test]
fn shutdown_of_a_datagram_socket() {
    let mut net = net();
    let id = net.datagram(A, 5);
    assert_errno(net.shutdown(id, Shutdown::Write), Errno::NotConnected);
    let id = net.datagram(A, 6);
    net.connect(id, v4(B, 6)).unwrap();
    net.shutdown(id, Shutdown::Write).unwrap();
    assert_errno(net.send(id, b"x"), Errno::BrokenPipe);
}

#[test]
fn a_socket_of_ipv6_carries_both_families() {
    let mut net = net();
    let six = net.udp_socket(B, Family::V6).unwrap();
    net.bind(six, "[::]:6".parse().unwrap()).unwrap();
    let a = net.datagram(A, 5);
    net.send_to(a, b"four", v4(B, 6)).unwrap();
    net.run(ms(2));
    let (_, from) = net.recv_from(six, &mut [0; 9]).unwrap();
    assert_eq!(from, "[::ffff:192.168.0.1]:5".parse().unwrap());
    net.send_to(six, b"answer", from).unwrap();
    net.run(ms(2));
    assert_eq!(net.recv_from(a, &mut [0; 9]).unwrap(), (6, v4(B, 6)));
}

#[test]
fn datagrams_overtake_each_other() {
    let mut net = net();
    net.set_latency(A, B, ms(1)..=ms(50));
    let (a, b) = (net.datagram(A, 5), net.datagram(B, 6));
    for byte in 0..50 {
        net.send_to(a, &[byte], v4(B, 6)).unwrap();
    }
    net.run(secs(1));
    let mut bytes: Vec<u8> = Vec::new();
    let mut buffer = [0];
    while net.recv(b, &mut buffer).is_ok() {
        bytes.push(buffer[0]);
    }
    assert!(!bytes.is_sorted());
    bytes.sort_unstable();
    assert_eq!(bytes, (0..50).collect::<Vec<u8>>());
}
