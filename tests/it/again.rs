//! What a poll may answer that comes back before anybody has looked for events.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use futures_lite::{AsyncReadExt, future};
use paceline::{Async, block_on};

use crate::io::tcp_pair;

/// Polled twice in a row, with the awaited bytes sent in between: the second poll has them, as a read that is tried at each
/// poll would, although nobody looked for events meanwhile. (Fails if a wait always trusts the cached readiness.)
#[test]
pub fn a_poll_that_comes_back_sees_what_came_meanwhile() {
    let polls = || async {
        let (mut reader, writer) = tcp_pair().await.unwrap();
        let (mut one, mut pair) = ([0], [0; 2]);
        for _ in 0..1000 {
            assert!(future::poll_once(reader.read(&mut pair)).await.is_none());
            writer.get_ref().write_all(b"abc").unwrap();
            assert_eq!(future::poll_once(reader.read(&mut pair)).await.unwrap().unwrap(), 2);
            let last = reader.read_with(|mut stream| stream.read(&mut one));
            assert_eq!(future::poll_once(last).await.unwrap().unwrap(), 1);
        }
        let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0)).unwrap();
        assert!(future::poll_once(listener.accept()).await.is_none());
        let _client = TcpStream::connect(listener.get_ref().local_addr().unwrap()).unwrap();
        assert!(future::poll_once(listener.accept()).await.is_some());
    };
    block_on(polls());
    future::block_on(polls());
    // In the midst of a turn, beside other threads that lead.
    block_on(paceline::spawn(async move { polls().await }));
}
