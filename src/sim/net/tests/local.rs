//! UNIX sockets.

use std::net::Shutdown;

use super::super::{Errno, SocketId, SocketReadiness, UnixKind};
use super::support::{A, B, Net, assert_errno, net, net_with, small};

fn pair(net: &mut Net) -> (SocketId, SocketId) {
    let listener = net.unix_socket(A, UnixKind::Stream).unwrap();
    net.unix_bind(listener, b"/s").unwrap();
    net.listen(listener, 4).unwrap();
    let client = net.unix_socket(A, UnixKind::Stream).unwrap();
    net.unix_connect(client, b"/s").unwrap();
    assert_eq!(net.edges(listener), [SocketReadiness::READABLE]);
    let (server, peer) = net.unix_accept(listener).unwrap();
    assert_eq!(peer, None);
    net.close(listener).unwrap();
    net.unlink(A, b"/s").unwrap();
    net.clear_edges();
    (client, server)
}

#[test]
fn a_stream_by_path() {
    let mut net = net();
    let (client, server) = pair(&mut net);
    net.send(client, b"hello").unwrap();
    assert_eq!(net.edges(server), [SocketReadiness::READABLE | SocketReadiness::WRITABLE]);
    assert_eq!(net.peek(server, &mut [0; 3]).unwrap(), 3);
    assert_eq!(net.read_all(server), (b"hello".to_vec(), false));
    net.shutdown(client, Shutdown::Write).unwrap();
    assert_eq!(net.read_all(server), (vec![], true));
    assert_errno(net.send(client, b"x"), Errno::BrokenPipe);
    net.send(server, b"answer").unwrap();
    net.close(server).unwrap();
    assert_eq!(net.read_all(client), (b"answer".to_vec(), true));
    net.close(client).unwrap();
    net.assert_no_leak();
}

#[test]
fn paths_and_their_errors() {
    let mut net = net();
    let id = net.unix_socket(A, UnixKind::Stream).unwrap();
    assert_errno(net.unix_connect(id, b"/s"), Errno::NoEntry);
    let other = net.unix_socket(A, UnixKind::Stream).unwrap();
    net.unix_bind(other, b"/s").unwrap();
    assert_errno(net.unix_connect(id, b"/s"), Errno::ConnectionRefused);
    assert_errno(net.unix_bind(id, b"/s"), Errno::AddressInUse);
    assert_errno(net.unix_bind(other, b"/t"), Errno::Invalid);
    let datagram = net.unix_socket(A, UnixKind::Datagram).unwrap();
    assert_errno(net.unix_connect(datagram, b"/s"), Errno::WrongProtocolType);
    net.close(other).unwrap();
    assert_errno(net.unix_connect(id, b"/s"), Errno::ConnectionRefused);
    net.unlink(A, b"/s").unwrap();
    assert_errno(net.unlink(A, b"/s"), Errno::NoEntry);
    let foreign = net.unix_socket(B, UnixKind::Stream).unwrap();
    assert_errno(net.unix_connect(foreign, b"/s"), Errno::NoEntry);
}

#[test]
fn a_full_backlog_is_reported_at_once() {
    let mut net = net();
    let listener = net.unix_socket(A, UnixKind::Stream).unwrap();
    net.unix_bind(listener, b"/s").unwrap();
    net.listen(listener, 0).unwrap();
    let first = net.unix_socket(A, UnixKind::Stream).unwrap();
    net.unix_connect(first, b"/s").unwrap();
    assert_errno(net.unix_connect(first, b"/s"), Errno::IsConnected);
    let second = net.unix_socket(A, UnixKind::Stream).unwrap();
    assert_errno(net.unix_connect(second, b"/s"), Errno::WouldBlock);
    net.close(listener).unwrap();
    assert_errno(net.recv(first, &mut [0]), Errno::ConnectionReset);
}

#[test]
fn a_full_stream_stops_the_writer() {
    let mut net = net_with(small(), 1);
    let (client, server) = pair(&mut net);
    assert_eq!(net.fill(client), 3000);
    assert!(!net.is(client, SocketReadiness::WRITABLE));
    net.clear_edges();
    net.recv(server, &mut [0; 500]).unwrap();
    assert_eq!(net.edges(client), []);
    net.recv(server, &mut [0; 700]).unwrap();
    assert_eq!(net.edges(client), [SocketReadiness::WRITABLE]);
    assert_eq!(net.fill(client), 1200);
}

#[test]
fn close_with_unread_bytes_resets() {
    let mut net = net();
    let (a, b) = net.unix_pair(A, UnixKind::Stream).unwrap();
    net.send(a, b"unread").unwrap();
    net.close(b).unwrap();
    assert_errno(net.recv(a, &mut [0]), Errno::ConnectionReset);
    assert_eq!(net.recv(a, &mut [0]).unwrap(), 0);
    assert_errno(net.send(a, b"x"), Errno::BrokenPipe);
}

#[test]
fn datagrams_by_path() {
    let mut net = net();
    let (a, b) =
        (net.unix_socket(A, UnixKind::Datagram).unwrap(), net.unix_socket(A, UnixKind::Datagram).unwrap());
    net.unix_bind(a, b"/a").unwrap();
    net.unix_bind(b, b"/b").unwrap();
    net.unix_send_to(a, b"hello", b"/b").unwrap();
    assert_eq!(net.unix_recv_from(b, &mut [0; 3], false).unwrap(), (3, Some(b"/a".to_vec())));
    assert_errno(net.recv(b, &mut [0]), Errno::WouldBlock);
    assert_errno(net.send(a, b"x"), Errno::NotConnected);
    net.unix_connect(a, b"/b").unwrap();
    while net.send(a, b"x").is_ok() {}
    assert!(!net.is(a, SocketReadiness::WRITABLE));
    net.clear_edges();
    net.recv(b, &mut [0]).unwrap();
    assert_eq!(net.edges(a), [SocketReadiness::WRITABLE]);
    net.close(b).unwrap();
    assert_errno(net.send(a, b"x"), Errno::ConnectionRefused);
}
