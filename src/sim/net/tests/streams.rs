//! Streams without faults: data, windows, readiness and the ways to end.

use std::net::Shutdown;

use super::super::{Errno, Family, Netstat, Settings, SocketReadiness};
use super::support::{A, B, Net, any, assert_errno, ms, net, net_with, secs, small, v4};

const BOTH: SocketReadiness = SocketReadiness::READ_HANGUP;

fn state(net: &Net, host: super::super::HostId) -> Vec<&'static str> {
    let Netstat(rows) = net.netstat(host);
    rows.iter().map(|row| row.state).collect()
}

#[test]
fn connect_is_in_progress_and_then_writable() {
    let mut net = net();
    net.listener(B, 80, 8);
    let client = net.dial(A, v4(B, 80));
    assert_eq!(net.readiness(client).unwrap(), SocketReadiness::NONE);
    assert_errno(net.connect(client, v4(B, 80)), Errno::AlreadyConnecting);
    assert_errno(net.send(client, b"x"), Errno::WouldBlock);
    assert_errno(net.recv(client, &mut [0]), Errno::WouldBlock);
    assert_errno(net.peer_addr(client), Errno::NotConnected);
    net.run(ms(2));
    assert_eq!(net.edges(client), [SocketReadiness::WRITABLE]);
    assert!(net.take_error(client).unwrap().is_none());
    net.connect(client, v4(B, 80)).unwrap();
    assert_errno(net.connect(client, v4(B, 80)), Errno::IsConnected);
}

#[test]
fn bytes_arrive_in_both_directions() {
    let mut net = net();
    let (client, server) = net.pair();
    assert_eq!(net.send(client, b"ping").unwrap(), 4);
    net.run(ms(1));
    assert_eq!(net.edges(server), [SocketReadiness::READABLE | SocketReadiness::WRITABLE]);
    assert_eq!(net.read_all(server), (b"ping".to_vec(), false));
    net.send(server, b"pong").unwrap();
    net.run(ms(1));
    assert_eq!(net.read_all(client), (b"pong".to_vec(), false));
}

#[test]
fn addresses_of_both_ends_agree() {
    let mut net = net();
    let (client, server) = net.pair();
    assert_eq!(net.local_addr(client).unwrap(), net.peer_addr(server).unwrap());
    assert_eq!(net.peer_addr(client).unwrap(), net.local_addr(server).unwrap());
    assert_eq!(net.peer_addr(client).unwrap(), v4(B, 80));
    assert_eq!(net.local_addr(client).unwrap().ip(), v4(A, 0).ip());
}

#[test]
fn a_large_write_is_cut_into_segments() {
    let mut net = net_with(Settings { send_buffer: 10_000, ..small() }, 1);
    let (client, server) = net.pair();
    let before = net.sent();
    assert_eq!(net.send(client, &[1; 3000]).unwrap(), 3000);
    assert_eq!(net.sent() - before, 3);
    net.run(ms(2));
    assert_eq!(net.read_all(server).0.len(), 3000);
}

#[test]
fn peek_leaves_the_bytes() {
    let mut net = net();
    let (client, server) = net.local_pair();
    net.send(client, b"abc").unwrap();
    let mut buffer = [0; 2];
    assert_eq!(net.peek(server, &mut buffer).unwrap(), 2);
    assert_eq!(&buffer, b"ab");
    assert!(net.is(server, SocketReadiness::READABLE));
    assert_eq!(net.read_all(server).0, b"abc");
    assert_errno(net.peek(server, &mut buffer), Errno::WouldBlock);
}

#[test]
fn a_full_window_stops_the_writer_until_the_reader_reads() {
    let mut net = net_with(small(), 1);
    let (client, server) = net.pair();
    let mut sent = net.fill(client);
    net.run(secs(1));
    sent += net.fill(client);
    assert_eq!(sent, 6000, "both buffers are full");
    assert!(!net.is(client, SocketReadiness::WRITABLE));
    net.run(secs(600));
    net.clear_edges();
    assert_errno(net.send(client, b"x"), Errno::WouldBlock);

    let (bytes, _) = net.read_all(server);
    assert_eq!(bytes, [7; 3000]);
    net.run(secs(1));
    assert_eq!(net.edges(client), [SocketReadiness::WRITABLE], "one edge");
    assert_eq!(net.read_all(server).0.len(), 3000);
    assert!(net.is(client, SocketReadiness::WRITABLE));
}

#[test]
fn a_window_that_stays_closed_for_a_day_fails_nothing() {
    let mut net = net_with(small(), 1);
    let (client, server) = net.pair();
    net.fill(client);
    net.run(ms(10));
    net.fill(client);
    net.run(secs(86_400));
    let mut count = 0;
    while count < 6000 {
        count += net.read_all(server).0.len();
        net.run(secs(1));
    }
    assert_eq!(net.error(client), None);
}

#[test]
fn each_arrival_is_an_edge_and_several_are_one() {
    let mut net = net();
    let (client, server) = net.local_pair();
    net.send(client, b"a").unwrap();
    net.send(client, b"b").unwrap();
    assert_eq!(net.edges(server).len(), 1);
    net.send(client, b"c").unwrap();
    assert_eq!(net.edges(server).len(), 1, "without a read, a new byte is an edge as well");
    assert_eq!(net.edges(server).len(), 0);
}

#[test]
fn half_close_by_the_client() {
    let mut net = net();
    let (client, server) = net.pair();
    net.send(client, b"question").unwrap();
    net.shutdown(client, Shutdown::Write).unwrap();
    assert_errno(net.send(client, b"x"), Errno::BrokenPipe);
    net.run(ms(2));
    assert_eq!(net.read_all(server), (b"question".to_vec(), true));
    assert!(net.is(server, BOTH) && !net.is(server, SocketReadiness::HANGUP));
    net.send(server, b"answer").unwrap();
    net.run(ms(2));
    assert_eq!(net.read_all(client), (b"answer".to_vec(), false));
    net.close(server).unwrap();
    net.run(ms(2));
    assert_eq!(net.read_all(client), (vec![], true));
    assert!(net.is(client, SocketReadiness::HANGUP));
}

#[test]
fn half_close_by_the_server() {
    let mut net = net();
    let (client, server) = net.pair();
    net.shutdown(server, Shutdown::Write).unwrap();
    net.run(ms(2));
    assert_eq!(net.edges(client), [SocketReadiness::READABLE | SocketReadiness::WRITABLE | BOTH]);
    assert_eq!(net.read_all(client), (vec![], true));
    net.send(client, b"still").unwrap();
    net.run(ms(2));
    assert_eq!(net.read_all(server), (b"still".to_vec(), false));
}

#[test]
fn shutdown_of_the_reading_side_ends_reads_at_once() {
    let mut net = net();
    let (client, server) = net.local_pair();
    net.send(client, b"x").unwrap();
    net.shutdown(server, Shutdown::Read).unwrap();
    assert_eq!(net.read_all(server), (b"x".to_vec(), true));
    net.send(client, b"y").unwrap();
    assert_eq!(net.read_all(server), (b"y".to_vec(), true), "as Linux, which still accepts data");
}

#[test]
fn data_for_a_closed_socket_resets_the_sender() {
    let mut net = net();
    let (client, server) = net.pair();
    net.close(server).unwrap();
    net.run(ms(2));
    assert_eq!(net.send(client, b"late").unwrap(), 4);
    net.run(ms(2));
    assert!(net.is(client, SocketReadiness::ERROR | SocketReadiness::HANGUP));
    assert_errno(net.send(client, b"x"), Errno::BrokenPipe);
}

#[test]
fn close_with_unread_bytes_resets() {
    let mut net = net();
    let (client, server) = net.pair();
    net.send(client, b"unread").unwrap();
    net.run(ms(2));
    net.close(server).unwrap();
    net.run(ms(2));
    assert_errno(net.recv(client, &mut [0]), Errno::ConnectionReset);
    assert_eq!(net.recv(client, &mut [0]).unwrap(), 0);
    assert_errno(net.send(client, b"x"), Errno::BrokenPipe);
}

#[test]
fn bytes_before_a_reset_stay_readable() {
    let mut net = net();
    let (client, server) = net.local_pair();
    net.send(client, b"unread").unwrap();
    net.send(server, b"last").unwrap();
    net.close(server).unwrap();
    let mut buffer = [0; 8];
    assert_eq!(net.recv(client, &mut buffer).unwrap(), 4);
    assert_errno(net.recv(client, &mut buffer), Errno::ConnectionReset);
}

#[test]
fn abortive_close_resets() {
    let mut net = net();
    let (client, server) = net.pair();
    net.set_abortive(client, true).unwrap();
    net.close(client).unwrap();
    net.run(ms(2));
    assert_errno(net.recv(server, &mut [0]), Errno::ConnectionReset);
    net.close(server).unwrap();
    assert_eq!(net.usage().sockets, 0, "a reset connection waits for nothing");
}

#[test]
fn close_sends_what_waits() {
    let mut net = net_with(Settings { send_buffer: 50_000, ..small() }, 1);
    let (client, server) = net.pair();
    assert_eq!(net.send(client, &[9; 50_000]).unwrap(), 50_000);
    net.close(client).unwrap();
    let mut count = 0;
    loop {
        net.run(ms(10));
        let (bytes, has_ended) = net.read_all(server);
        count += bytes.len();
        if has_ended {
            break;
        }
    }
    assert_eq!(count, 50_000);
    net.close(server).unwrap();
    net.assert_no_leak();
}

#[test]
fn the_active_closer_waits() {
    let mut net = net();
    let (client, server) = net.pair();
    net.close(client).unwrap();
    net.run(ms(2));
    assert_eq!((state(&net, A), state(&net, B)), (vec!["FIN_WAIT2"], vec!["CLOSE_WAIT"]));
    net.close(server).unwrap();
    net.run(ms(2));
    assert_eq!((state(&net, A), state(&net, B)), (vec!["TIME_WAIT"], vec![]));
    net.run(secs(61));
    assert_eq!(net.usage().sockets, 0);
    net.assert_no_leak();
}

#[test]
fn a_peer_that_never_closes_is_not_waited_for() {
    let mut net = net();
    let (client, server) = net.pair();
    net.close(client).unwrap();
    net.run(secs(61));
    assert_eq!(state(&net, A), Vec::<&str>::new());
    net.send(server, b"x").unwrap();
    net.run(ms(2));
    assert_eq!(net.error(server), Some(Errno::BrokenPipe as i32));
}

#[test]
fn simultaneous_close() {
    let mut net = net();
    let (client, server) = net.pair();
    net.close(client).unwrap();
    net.close(server).unwrap();
    net.run(ms(2));
    assert_eq!((state(&net, A), state(&net, B)), (vec!["TIME_WAIT"], vec!["TIME_WAIT"]));
    net.assert_no_leak();
}

#[test]
fn simultaneous_shutdown_delivers_both_ends() {
    let mut net = net();
    let (client, server) = net.pair();
    net.send(client, b"c").unwrap();
    net.send(server, b"s").unwrap();
    net.shutdown(client, Shutdown::Write).unwrap();
    net.shutdown(server, Shutdown::Write).unwrap();
    net.run(ms(5));
    assert_eq!(net.read_all(client), (b"s".to_vec(), true));
    assert_eq!(net.read_all(server), (b"c".to_vec(), true));
    assert_errno(net.peer_addr(client), Errno::NotConnected);
}

#[test]
fn simultaneous_open() {
    let mut net = net();
    let (a, b) = (net.tcp_socket(A, Family::V4).unwrap(), net.tcp_socket(B, Family::V4).unwrap());
    net.bind(a, any(5)).unwrap();
    net.bind(b, any(5)).unwrap();
    assert_errno(net.connect(a, v4(B, 5)), Errno::InProgress);
    assert_errno(net.connect(b, v4(A, 5)), Errno::InProgress);
    net.run(ms(5));
    net.send(a, b"hello").unwrap();
    net.run(ms(5));
    assert_eq!(net.read_all(b).0, b"hello");
}

#[test]
fn a_socket_can_connect_to_itself() {
    let mut net = net();
    let id = net.tcp_socket(A, Family::V4).unwrap();
    net.bind(id, "127.0.0.1:9".parse().unwrap()).unwrap();
    assert_errno(net.connect(id, "127.0.0.1:9".parse().unwrap()), Errno::InProgress);
    net.send(id, b"echo").unwrap();
    assert_eq!(net.read_all(id).0, b"echo");
    net.close(id).unwrap();
    net.assert_no_leak();
}

#[test]
fn accept_after_the_peer_has_closed() {
    let mut net = net();
    let listener = net.listener(B, 80, 8);
    let client = net.dial(A, v4(B, 80));
    net.run(ms(2));
    net.send(client, b"gone").unwrap();
    net.close(client).unwrap();
    net.run(ms(2));
    let (server, peer) = net.accept(listener).unwrap();
    assert_eq!(peer.ip(), v4(A, 0).ip());
    assert_eq!(net.read_all(server), (b"gone".to_vec(), true));
}

#[test]
fn accept_after_the_peer_has_reset() {
    let mut net = net();
    let listener = net.listener(B, 80, 8);
    let client = net.dial(A, v4(B, 80));
    net.run(ms(2));
    net.set_abortive(client, true).unwrap();
    net.close(client).unwrap();
    net.run(ms(2));
    let (server, _) = net.accept(listener).unwrap();
    assert_errno(net.recv(server, &mut [0]), Errno::ConnectionReset);
    assert_errno(net.accept(listener), Errno::WouldBlock);
}

#[test]
fn a_full_backlog_delays_further_connections() {
    let mut net = net();
    let listener = net.listener(B, 80, 1);
    let clients: Vec<_> = (0..4).map(|_| net.dial(A, v4(B, 80))).collect();
    net.run(ms(100));
    let accepted: Vec<_> = std::iter::from_fn(|| net.accept(listener).ok()).collect();
    assert_eq!(accepted.len(), 2, "the backlog and one more");
    assert!(net.is(clients[0], SocketReadiness::WRITABLE));
    net.run(secs(4));
    let accepted: Vec<_> = std::iter::from_fn(|| net.accept(listener).ok()).collect();
    assert_eq!(accepted.len(), 2, "the SYN or its answer is sent again");
    assert!(clients.iter().all(|&client| net.is(client, SocketReadiness::WRITABLE)));
}

#[test]
fn the_close_of_a_listener_resets_what_nothing_accepted() {
    let mut net = net();
    let listener = net.listener(B, 80, 8);
    let client = net.dial(A, v4(B, 80));
    net.run(ms(2));
    net.close(listener).unwrap();
    net.run(ms(2));
    assert_errno(net.recv(client, &mut [0]), Errno::ConnectionReset);
    net.close(client).unwrap();
    net.assert_no_leak();
}

#[test]
fn a_listener_ends_during_a_handshake() {
    let mut net = net();
    net.set_latency(A, B, ms(10)..=ms(10));
    let listener = net.listener(B, 80, 8);
    let client = net.dial(A, v4(B, 80));
    net.run(ms(15));
    net.close(listener).unwrap();
    net.run(ms(50));
    assert_eq!(net.error(client), Some(Errno::ConnectionReset as i32));
    net.close(client).unwrap();
    net.assert_no_leak();
}

#[test]
fn segments_of_a_stream_do_not_overtake_each_other() {
    let mut net = net();
    net.set_latency(A, B, ms(1)..=ms(100));
    let (client, server) = net.pair();
    for byte in 0..100 {
        net.send(client, &[byte]).unwrap();
    }
    let before = net.sent();
    net.run(secs(10));
    assert_eq!(net.read_all(server).0, (0..100).collect::<Vec<u8>>());
    assert_eq!(net.sent() - before, 100, "an acknowledgement for each, and nothing is sent again");
}
