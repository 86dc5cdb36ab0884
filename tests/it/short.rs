//! Transfers that move less than they were asked to, although there is more (or room for more): the next one must not
//! wait for an event, because none is on its way.

use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use paceline::{Async, Timer};

use crate::setups::for_each_setup;

/// More than a call takes anywhere.
const SLICES: usize = 3000;

fn tcp() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

/// Registered, and the event that says what it is ready for now has come: no other one is on its way.
async fn settled(stream: TcpStream) -> Async<TcpStream> {
    let stream = Async::new(stream).unwrap();
    Timer::after(Duration::from_millis(5)).await;
    stream
}

/// Fails if what lies behind the system's limit counts as asked for: `SURE_SLICES`.
#[test]
fn more_slices_than_a_call_takes_are_written() {
    for_each_setup(|runtime| {
        let (ours, mut theirs) = tcp();
        runtime.block_on(async {
            let mut ours = settled(ours).await;
            let mut left = SLICES;
            while left > 0 {
                left -= ours.write_vectored(&vec![IoSlice::new(b"x"); left]).await.unwrap();
            }
        });
        theirs.read_exact(&mut [0; SLICES]).unwrap();
    });
}

/// The same for reads.
#[test]
fn more_slices_than_a_call_takes_are_read() {
    for_each_setup(|runtime| {
        let (mut ours, theirs) = tcp();
        ours.write_all(&[1; SLICES]).unwrap();
        runtime.block_on(async {
            let mut theirs = settled(theirs).await;
            let mut left = SLICES;
            while left > 0 {
                let mut bytes = vec![0; left];
                let mut slices: Vec<_> = bytes.chunks_mut(1).map(IoSliceMut::new).collect();
                left -= theirs.read_vectored(&mut slices).await.unwrap();
            }
        });
    });
}
