//! Hosts, names, addresses and netstat.

use super::super::{Errno, Family};
use super::support::{A, B, any, assert_errno, ms, net, v4, v6};

#[test]
fn hosts_have_names_and_addresses() {
    let mut net = net();
    assert_eq!(net.lookup("b").unwrap(), [v4(B, 0).ip(), v6(B, 0).ip()]);
    assert_eq!(net.lookup("c"), None);
    assert_eq!(net.names()[0], "a");
    let own = ["10.1.2.3".parse().unwrap()];
    let c = net.add_host_at("c", &own);
    assert_eq!(net.addresses(c), own);
    let id = net.datagram(c, 7);
    let a = net.datagram(A, 7);
    net.send_to(a, b"x", "10.1.2.3:7".parse().unwrap()).unwrap();
    net.run(ms(2));
    assert_eq!(net.recv_from(id, &mut [0]).unwrap(), (1, v4(A, 7)));
}

#[test]
#[should_panic(expected = "there is a host a already")]
fn a_name_is_given_once() {
    net().add_host("a");
}

#[test]
#[should_panic(expected = "another host has the address 192.168.0.1 of c")]
fn an_address_is_given_once() {
    net().add_host_at("c", &[v4(A, 0).ip()]);
}

#[test]
fn a_listener_of_both_families() {
    let mut net = net();
    let listener = net.tcp_socket(B, Family::V6).unwrap();
    net.bind(listener, "[::]:80".parse().unwrap()).unwrap();
    net.listen(listener, 8).unwrap();
    net.dial(A, v4(B, 80));
    net.run(ms(5));
    let (server, peer) = net.accept(listener).unwrap();
    assert_eq!(peer.ip().to_string(), "::ffff:192.168.0.1");
    assert_eq!(net.local_addr(server).unwrap(), "[::ffff:192.168.0.2]:80".parse().unwrap());
    net.dial(A, v6(B, 80));
    net.run(ms(5));
    assert_eq!(net.accept(listener).unwrap().1.ip(), v6(A, 0).ip());
}

#[test]
fn a_mapped_address_is_one_of_ipv4() {
    let mut net = net();
    net.listener(B, 80, 8);
    let id = net.dial(A, "[::ffff:192.168.0.2]:80".parse().unwrap());
    net.run(ms(5));
    assert_eq!(net.peer_addr(id).unwrap(), "[::ffff:192.168.0.2]:80".parse().unwrap());
}

#[test]
fn the_unspecified_address_is_the_own_host() {
    let mut net = net();
    net.listener(A, 80, 8);
    let id = net.dial(A, any(80));
    assert_eq!(net.peer_addr(id).unwrap(), "127.0.0.1:80".parse().unwrap());
    let own = net.dial(A, v4(A, 80));
    assert_eq!(net.local_addr(own).unwrap().ip(), v4(A, 80).ip());
}

#[test]
fn the_more_exact_listener_accepts() {
    let mut net = net();
    let exact = net.tcp_socket(B, Family::V4).unwrap();
    net.bind(exact, v4(B, 80)).unwrap();
    net.listen(exact, 8).unwrap();
    let local = net.tcp_socket(B, Family::V4).unwrap();
    net.bind(local, "127.0.0.1:80".parse().unwrap()).unwrap();
    net.listen(local, 8).unwrap();
    net.dial(A, v4(B, 80));
    net.run(ms(5));
    net.accept(exact).unwrap();
    assert_errno(net.accept(local), Errno::WouldBlock);
}

#[test]
fn netstat_lists_the_sockets() {
    let mut net = net();
    let (client, _) = net.pair();
    net.listener(A, 443, 8);
    net.datagram(A, 53);
    net.send(client, b"12345").unwrap();
    let text = net.netstat(A).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Proto Recv-Q Send-Q Local Address           Foreign Address         State");
    assert_eq!(lines[1], "tcp        0      0 0.0.0.0:443             *                       LISTEN");
    assert_eq!(lines[2], "tcp        0      5 192.168.0.1:32768       192.168.0.2:80          ESTABLISHED");
    assert_eq!(lines[3], "udp        0      0 0.0.0.0:53              *");
    assert_eq!(lines.len(), 4);
    net.run(ms(5));
    assert_eq!(net.netstat(B).0[0].received, 5);
}
