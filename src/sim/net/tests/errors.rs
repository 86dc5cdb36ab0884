//! The error numbers of the calls, and the rules for ports.

use std::net::{Shutdown, SocketAddr};

use super::super::{Errno, Family, Settings, SocketId, SocketReadiness};
use super::support::{A, B, Net, any, assert_errno, ms, net, net_with, secs, v4};

fn socket(net: &mut Net) -> SocketId {
    net.tcp_socket(A, Family::V4).unwrap()
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn calls_on_a_fresh_socket() {
    let mut net = net();
    let id = socket(&mut net);
    assert_eq!(net.readiness(id).unwrap(), SocketReadiness::WRITABLE | SocketReadiness::HANGUP);
    assert_errno(net.recv(id, &mut [0]), Errno::NotConnected);
    assert_errno(net.send(id, b"x"), Errno::BrokenPipe);
    assert_errno(net.peer_addr(id), Errno::NotConnected);
    assert_errno(net.accept(id), Errno::Invalid);
    assert_errno(net.shutdown(id, Shutdown::Both), Errno::NotConnected);
    assert_eq!(net.local_addr(id).unwrap(), any(0));
    assert_errno(net.send_to(id, b"x", any(1)), Errno::NotSupported);
}

#[test]
fn calls_on_a_closed_socket() {
    let mut net = net();
    let id = socket(&mut net);
    net.close(id).unwrap();
    let other = socket(&mut net);
    assert_ne!(id, other);
    assert_errno(net.close(id), Errno::BadDescriptor);
    assert_errno(net.recv(id, &mut [0]), Errno::BadDescriptor);
    assert_errno(net.bind(id, any(1)), Errno::BadDescriptor);
    assert_errno(net.readiness(id), Errno::BadDescriptor);
}

#[test]
fn calls_on_a_listener() {
    let mut net = net();
    let id = net.listener(A, 80, 8);
    assert_eq!(net.readiness(id).unwrap(), SocketReadiness::NONE);
    assert_errno(net.accept(id), Errno::WouldBlock);
    assert_errno(net.recv(id, &mut [0]), Errno::NotConnected);
    assert_errno(net.send(id, b"x"), Errno::BrokenPipe);
    assert_errno(net.connect(id, at("127.0.0.1:80")), Errno::IsConnected);
    assert_errno(net.bind(id, any(81)), Errno::Invalid);
    net.listen(id, 100).unwrap();
}

#[test]
fn nothing_listens() {
    let mut net = net();
    let id = net.dial(A, v4(B, 80));
    net.run(ms(2));
    let failed = SocketReadiness::READABLE | SocketReadiness::WRITABLE | SocketReadiness::READ_HANGUP;
    assert_eq!(net.edges(id), [failed | SocketReadiness::HANGUP | SocketReadiness::ERROR]);
    assert_eq!(net.error(id), Some(Errno::ConnectionRefused as i32));
    assert_eq!(net.error(id), None, "the error is reported once");
    assert_errno(net.connect(id, v4(B, 80)), Errno::ConnectionAborted);
    assert_errno(net.connect(id, v4(B, 80)), Errno::InProgress);
}

#[test]
fn the_result_of_connect_is_the_error_too() {
    let mut net = net();
    let id = net.dial(A, at("127.0.0.1:80"));
    assert_errno(net.connect(id, at("127.0.0.1:80")), Errno::ConnectionRefused);
}

#[test]
fn nothing_answers() {
    let mut net = net();
    net.partition(A, B);
    let id = net.dial(A, v4(B, 80));
    net.run(secs(126));
    assert_eq!(net.readiness(id).unwrap(), SocketReadiness::NONE);
    net.run(secs(2));
    assert_eq!(net.error(id), Some(Errno::TimedOut as i32));
}

#[test]
fn no_route() {
    let mut net = net();
    let id = socket(&mut net);
    assert_errno(net.connect(id, at("8.8.8.8:80")), Errno::NetworkUnreachable);
    let six = net.tcp_socket(A, Family::V6).unwrap();
    assert_errno(net.connect(six, at("[2001:db8::1]:80")), Errno::NetworkUnreachable);
}

#[test]
fn no_host() {
    let mut net = net();
    let id = net.dial(A, at("192.168.9.9:80"));
    net.run(ms(2900));
    assert_eq!(net.readiness(id).unwrap(), SocketReadiness::NONE);
    net.run(ms(200));
    assert_eq!(net.error(id), Some(Errno::HostUnreachable as i32));
}

#[test]
fn families_do_not_mix() {
    let mut net = net();
    let four = socket(&mut net);
    let six = net.tcp_socket(A, Family::V6).unwrap();
    assert_errno(net.connect(four, at("[::1]:80")), Errno::FamilyNotSupported);
    assert_errno(net.bind(four, at("[::1]:80")), Errno::FamilyNotSupported);
    assert_errno(net.connect(six, at("127.0.0.1:80")), Errno::Invalid);
    assert_errno(net.bind(six, at("127.0.0.1:80")), Errno::Invalid);
    net.set_only_v6(six, true).unwrap();
    assert_errno(net.connect(six, at("[::ffff:127.0.0.1]:80")), Errno::NetworkUnreachable);
}

#[test]
fn a_foreign_address_is_not_available() {
    let mut net = net();
    let id = socket(&mut net);
    assert_errno(net.bind(id, v4(B, 80)), Errno::AddressNotAvailable);
    net.bind(id, v4(A, 80)).unwrap();
    assert_errno(net.bind(id, v4(A, 81)), Errno::Invalid);
}

#[test]
fn loopback_does_not_reach_other_hosts() {
    let mut net = net();
    let id = socket(&mut net);
    net.bind(id, at("127.0.0.1:5")).unwrap();
    assert_errno(net.connect(id, v4(B, 80)), Errno::Invalid);
    net.listener(B, 80, 8);
    let id = net.dial(A, at("127.0.0.1:80"));
    assert_eq!(net.error(id), Some(Errno::ConnectionRefused as i32), "each host has its own loopback");
}

#[test]
fn a_port_is_bound_once() {
    let mut net = net();
    let first = socket(&mut net);
    net.bind(first, any(80)).unwrap();
    let second = socket(&mut net);
    assert_errno(net.bind(second, any(80)), Errno::AddressInUse);
    assert_errno(net.bind(second, at("127.0.0.1:80")), Errno::AddressInUse);
    net.close(first).unwrap();
    net.bind(second, at("127.0.0.1:80")).unwrap();
    let third = socket(&mut net);
    net.bind(third, v4(A, 80)).unwrap();
    let elsewhere = net.tcp_socket(B, Family::V4).unwrap();
    net.bind(elsewhere, any(80)).unwrap();
}

#[test]
fn reuse_of_an_address() {
    let mut net = net();
    let (first, second) = (socket(&mut net), socket(&mut net));
    net.set_reuse_address(first, true).unwrap();
    net.set_reuse_address(second, true).unwrap();
    net.bind(first, any(80)).unwrap();
    net.bind(second, any(80)).unwrap();
    net.listen(first, 8).unwrap();
    assert_errno(net.listen(second, 8), Errno::AddressInUse);
    let third = socket(&mut net);
    net.set_reuse_address(third, true).unwrap();
    assert_errno(net.bind(third, any(80)), Errno::AddressInUse);
}

#[test]
fn a_restarted_server_needs_reuse_while_connections_remain() {
    let mut net = net();
    let (client, server) = net.pair();
    net.close(server).unwrap();
    net.run(ms(2));
    net.close(client).unwrap();
    net.run(ms(2));
    let id = net.tcp_socket(B, Family::V4).unwrap();
    assert_errno(net.bind(id, any(80)), Errno::AddressInUse);
    net.set_reuse_address(id, true).unwrap();
    net.bind(id, any(80)).unwrap();
    net.close(id).unwrap();
    net.run(secs(61));
    let id = net.tcp_socket(B, Family::V4).unwrap();
    net.bind(id, any(80)).unwrap();
}

#[test]
fn a_wildcard_of_both_families_conflicts_with_each() {
    let mut net = net();
    let six = net.tcp_socket(A, Family::V6).unwrap();
    net.bind(six, at("[::]:80")).unwrap();
    let four = socket(&mut net);
    assert_errno(net.bind(four, any(80)), Errno::AddressInUse);
    let only = net.tcp_socket(A, Family::V6).unwrap();
    net.set_only_v6(only, true).unwrap();
    net.bind(only, at("[::]:81")).unwrap();
    net.bind(four, any(81)).unwrap();
    assert_errno(net.set_only_v6(only, false), Errno::Invalid);
}

#[test]
fn ephemeral_ports_run_out() {
    let mut net = net_with(Settings { ephemeral_ports: 50_000..=50_003, ..Settings::default() }, 1);
    net.listener(B, 80, 8);
    net.listener(B, 81, 8);
    let ports: Vec<_> = (0..4)
        .map(|_| {
            let id = net.dial(A, v4(B, 80));
            net.local_addr(id).unwrap().port()
        })
        .collect();
    assert_eq!(ports, [50_000, 50_001, 50_002, 50_003]);
    let id = socket(&mut net);
    assert_errno(net.connect(id, v4(B, 80)), Errno::AddressNotAvailable);
    assert_errno(net.bind(id, any(0)), Errno::AddressInUse);
    assert_errno(net.connect(id, v4(B, 81)), Errno::InProgress);
}

#[test]
fn an_ephemeral_port_is_reused_as_late_as_possible() {
    let mut net = net();
    let first = socket(&mut net);
    net.bind(first, any(0)).unwrap();
    let port = net.local_addr(first).unwrap().port();
    net.close(first).unwrap();
    let second = socket(&mut net);
    net.bind(second, any(0)).unwrap();
    assert_eq!(net.local_addr(second).unwrap().port(), port + 1);
}

#[test]
fn two_connections_with_the_same_addresses() {
    let mut net = net();
    net.listener(B, 80, 8);
    let (first, second) = (socket(&mut net), socket(&mut net));
    for id in [first, second] {
        net.set_reuse_address(id, true).unwrap();
        net.bind(id, any(5)).unwrap();
    }
    assert_errno(net.connect(first, v4(B, 80)), Errno::InProgress);
    assert_errno(net.connect(second, v4(B, 80)), Errno::AddressNotAvailable);
}

#[test]
fn shutdown_during_connect_ends_the_attempt() {
    let mut net = net();
    net.listener(B, 80, 8);
    let id = net.dial(A, v4(B, 80));
    net.shutdown(id, Shutdown::Both).unwrap();
    assert_eq!(net.error(id), Some(Errno::ConnectionReset as i32));
    net.run(secs(1));
    assert_errno(net.connect(id, v4(B, 80)), Errno::InProgress);
}

#[test]
fn shutdown_of_a_listener() {
    let mut net = net();
    let id = net.listener(A, 80, 8);
    net.shutdown(id, Shutdown::Write).unwrap();
    assert_errno(net.accept(id), Errno::WouldBlock);
    net.shutdown(id, Shutdown::Both).unwrap();
    assert_errno(net.accept(id), Errno::Invalid);
    net.listen(id, 8).unwrap();
    assert_errno(net.accept(id), Errno::WouldBlock);
}

#[test]
fn shutdown_after_the_end() {
    let mut net = net();
    let (client, server) = net.local_pair();
    net.shutdown(client, Shutdown::Write).unwrap();
    net.shutdown(client, Shutdown::Write).unwrap();
    net.shutdown(server, Shutdown::Both).unwrap();
    assert_errno(net.shutdown(client, Shutdown::Both), Errno::NotConnected);
    assert_errno(net.shutdown(server, Shutdown::Both), Errno::NotConnected);
}

#[test]
fn an_empty_write_is_checked_too() {
    let mut net = net();
    let (client, server) = net.local_pair();
    assert_eq!(net.send(client, b"").unwrap(), 0);
    net.shutdown(client, Shutdown::Write).unwrap();
    assert_errno(net.send(client, b""), Errno::BrokenPipe);
    assert_eq!(net.read_all(server), (vec![], true));
}
