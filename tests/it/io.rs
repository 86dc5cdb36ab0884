//! Sockets, pipes and unusual handles through `Async`.
//!
//! No test sleeps. If a task must wait, the same `block_on` drives the other side, which moves only after the
//! first side was polled to `Pending`, because `zip` polls its left side first.

use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt, future, pin};
use paceline::{Async, block_on};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;

const TEXT: &[u8] = b"the quick brown fox jumps over the lazy dog";

/// Returns the two ends of a TCP connection over loopback: the connecting one, the accepting one.
pub async fn tcp_pair() -> io::Result<(Async<TcpStream>, Async<TcpStream>)> {
    let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
    let addr = listener.get_ref().local_addr()?;
    let (client, (server, _)) = future::try_zip(Async::<TcpStream>::connect(addr), listener.accept()).await?;
    Ok((client, server))
}

#[test]
pub fn tcp_echo() -> io::Result<()> {
    block_on(async {
        let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
        let addr = listener.get_ref().local_addr()?;
        let serve = async {
            let (mut stream, peer) = listener.accept().await?;
            assert_eq!(peer, stream.get_ref().peer_addr()?);
            let mut buf = vec![0; TEXT.len()];
            stream.read_exact(&mut buf).await?;
            stream.write_all(&buf).await?;
            io::Result::Ok(())
        };
        let ask = async {
            let mut stream = Async::<TcpStream>::connect(addr).await?;
            assert_eq!(stream.get_ref().peer_addr()?, addr);
            stream.write_all(TEXT).await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            assert_eq!(answer, TEXT);
            Ok(())
        };
        future::try_zip(serve, ask).await?;
        Ok(())
    })
}

/// Sends far more than both buffers hold, so that both sides wait for each other again and again; through
/// `&Async`, so that one stream is read and written at once.
#[test]
pub fn more_than_the_buffers_hold_goes_both_ways() -> io::Result<()> {
    const SIZE: usize = 8 << 20;

    async fn send(mut stream: &Async<TcpStream>) -> io::Result<()> {
        let block: Vec<u8> = (0..=255).cycle().take(60_000).collect();
        let mut sent = 0;
        while sent < SIZE {
            let n = block.len().min(SIZE - sent);
            stream.write_all(&block[..n]).await?;
            sent += n;
        }
        stream.close().await?;
        stream.get_ref().shutdown(Shutdown::Write)
    }

    async fn receive(mut stream: &Async<TcpStream>) -> io::Result<()> {
        let mut buf = vec![0; 50_000];
        let mut at = 0;
        loop {
            let n = stream.read(&mut buf).await?;
            if n == 0 {
                assert_eq!(at, SIZE);
                return Ok(());
            }
            for byte in &buf[..n] {
                assert_eq!(*byte, (at % 60_000 % 256) as u8);
                at += 1;
            }
        }
    }

    block_on(async {
        let (one, other) = tcp_pair().await?;
        let there = future::try_zip(receive(&other), send(&one));
        let back = future::try_zip(receive(&one), send(&other));
        future::try_zip(there, back).await?;
        Ok(())
    })
}

#[test]
pub fn vectored_transfers() -> io::Result<()> {
    block_on(async {
        let (mut client, mut server) = tcp_pair().await?;
        let (head, tail) = TEXT.split_at(10);
        let n = client.write_vectored(&[io::IoSlice::new(head), io::IoSlice::new(tail)]).await?;
        assert_eq!(n, TEXT.len());

        let mut first = [0; 3];
        let mut second = vec![0; TEXT.len() - 3];
        let mut bufs = [io::IoSliceMut::new(&mut first), io::IoSliceMut::new(&mut second)];
        let n = server.read_vectored(&mut bufs).await?;
        assert_eq!(n, TEXT.len());
        assert_eq!([&first[..], &second[..]].concat(), TEXT);
        Ok(())
    })
}

/// A read of no bytes does not prove that the socket is drained.
#[test]
pub fn an_empty_buffer_changes_nothing() -> io::Result<()> {
    block_on(async {
        let (mut client, mut server) = tcp_pair().await?;
        client.write_all(b"x").await?;
        server.readable().await?;
        assert_eq!(server.read(&mut []).await?, 0);
        assert_eq!(server.read(&mut [0; 8]).await?, 1);
        assert_eq!(client.write(&[]).await?, 0);
        Ok(())
    })
}

/// Bytes and the end of the stream arrive before the first read: the short read must not hide the end.
#[test]
pub fn the_end_behind_a_short_read_is_seen_and_stays() -> io::Result<()> {
    block_on(async {
        let (mut client, mut server) = tcp_pair().await?;
        client.write_all(b"bye").await?;
        drop(client);
        let mut buf = [0; 64];
        assert_eq!(server.read(&mut buf).await?, 3);
        for _ in 0..3 {
            assert_eq!(server.read(&mut buf).await?, 0);
        }
        Ok(())
    })
}

#[test]
pub fn peek_leaves_the_bytes() -> io::Result<()> {
    block_on(async {
        let (mut client, mut server) = tcp_pair().await?;
        let look = async {
            let mut buf = [0; 64];
            let n = server.peek(&mut buf).await?;
            assert_eq!(buf[..n], TEXT[..n]);
            io::Result::Ok(())
        };
        future::try_zip(look, client.write_all(TEXT)).await?;
        let mut buf = vec![0; TEXT.len()];
        server.read_exact(&mut buf).await?;
        assert_eq!(buf, TEXT);
        Ok(())
    })
}

#[test]
pub fn connect_refused_keeps_kind_and_code() -> io::Result<()> {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let addr = listener.local_addr()?;
        drop(listener);
        let ours = Async::<TcpStream>::connect(addr).await.unwrap_err();
        let std = TcpStream::connect(addr).unwrap_err();
        assert_eq!(ours.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(ours.raw_os_error(), std.raw_os_error());
        Ok(())
    })
}

#[test]
pub fn an_accepted_stream_does_not_block() -> io::Result<()> {
    block_on(async {
        let (client, server) = tcp_pair().await?;
        for stream in [&client, &server] {
            let err = stream.get_ref().read(&mut [0]).unwrap_err();
            assert_eq!(err.kind(), ErrorKind::WouldBlock);
        }
        Ok(())
    })
}

#[test]
pub fn two_tasks_wait_in_accept_on_one_listener() -> io::Result<()> {
    block_on(async {
        let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
        let addr = listener.get_ref().local_addr()?;
        let both = future::zip(listener.accept(), listener.accept());
        let knock = future::try_zip(Async::<TcpStream>::connect(addr), Async::<TcpStream>::connect(addr));
        let ((one, other), clients) = future::zip(both, knock).await;
        let (one, other) = (one?.1, other?.1);
        let (first, second) = clients?;
        let mut accepted = [one, other];
        let mut connected = [first.get_ref().local_addr()?, second.get_ref().local_addr()?];
        accepted.sort_unstable();
        connected.sort_unstable();
        assert_eq!(accepted, connected);
        Ok(())
    })
}

#[test]
pub fn incoming_serves_one_connection_after_another() -> io::Result<()> {
    const CLIENTS: u8 = 20;
    block_on(async {
        let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
        let addr = listener.get_ref().local_addr()?;
        let serve = async {
            let incoming = listener.incoming();
            pin!(incoming);
            for number in 0..CLIENTS {
                let mut stream = incoming.next().await.expect("the stream is endless")?;
                stream.write_all(&[number]).await?;
            }
            io::Result::Ok(())
        };
        let knock = async {
            for number in 0..CLIENTS {
                let mut answer = Vec::new();
                Async::<TcpStream>::connect(addr).await?.read_to_end(&mut answer).await?;
                assert_eq!(answer, [number]);
            }
            Ok(())
        };
        future::try_zip(serve, knock).await?;
        Ok(())
    })
}

#[test]
pub fn udp_with_and_without_a_connection() -> io::Result<()> {
    block_on(async {
        let one = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
        let other = Async::<UdpSocket>::bind(([127, 0, 0, 1], 0))?;
        let (one_addr, other_addr) = (one.get_ref().local_addr()?, other.get_ref().local_addr()?);
        let mut buf = [0; 64];
        let mut peeked = [0; 64];

        let (received, sent) =
            future::try_zip(other.recv_from(&mut buf), one.send_to(TEXT, other_addr)).await?;
        assert_eq!((received, sent), ((TEXT.len(), one_addr), TEXT.len()));

        one.get_ref().connect(other_addr)?;
        other.get_ref().connect(one_addr)?;
        one.send(b"abc").await?;
        assert_eq!(other.peek_from(&mut peeked).await?, (3, one_addr));
        assert_eq!(other.peek(&mut peeked).await?, 3);
        assert_eq!(other.recv(&mut buf).await?, 3);
        assert_eq!((&peeked[..3], &buf[..3]), (&b"abc"[..], &b"abc"[..]));
        Ok(())
    })
}

#[test]
pub fn readable_reports_again_after_each_byte() -> io::Result<()> {
    block_on(async {
        let (mut client, server) = tcp_pair().await?;
        client.write_all(TEXT).await?;
        let mut got = Vec::new();
        while got.len() < TEXT.len() {
            server.readable().await?;
            let mut byte = [0];
            assert_eq!(server.get_ref().read(&mut byte)?, 1);
            got.push(byte[0]);
        }
        assert_eq!(got, TEXT);
        // Drained without the reactor's knowledge: a wait must not report bytes that were read long ago. A
        // later event of another handle proves that the reactor has looked since.
        let wait = server.readable();
        pin!(wait);
        assert!(future::poll_once(&mut wait).await.is_none());
        let (mut later, witness) = tcp_pair().await?;
        later.write_all(b"x").await?;
        witness.readable().await?;
        assert!(future::poll_once(&mut wait).await.is_none());
        Ok(())
    })
}

#[test]
pub fn owned_waits_outlive_the_other_shares() -> io::Result<()> {
    block_on(async {
        let (mut client, server) = tcp_pair().await?;
        let server = Arc::new(server);
        server.clone().writable_owned().await?;
        let inner = server.get_ref().try_clone()?;
        let (wait, write) = future::zip(server.readable_owned(), client.write_all(b"x")).await;
        wait?;
        write?;
        assert_eq!((&inner).read(&mut [0; 8])?, 1);
        Ok(())
    })
}

#[test]
pub fn many_tasks_wait_for_one_handle() -> io::Result<()> {
    block_on(async {
        let (mut client, server) = tcp_pair().await?;
        let waits = future::try_zip(server.readable(), future::try_zip(server.readable(), server.readable()));
        future::try_zip(waits, client.write_all(b"x")).await?;
        Ok(())
    })
}

/// The operation returns `WouldBlock` with bytes still queued: it must run again although none arrive.
#[test]
pub fn an_operation_may_say_would_block_on_its_own_account() -> io::Result<()> {
    block_on(async {
        let (mut client, mut server) = tcp_pair().await?;
        client.write_all(TEXT).await?;

        let half = TEXT.len() / 2;
        let mut got = Vec::new();
        let mut one_byte = |mut stream: &TcpStream, until: usize| {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            got.push(byte[0]);
            if got.len() < until { Err(ErrorKind::WouldBlock.into()) } else { Ok(got.len()) }
        };
        assert_eq!(server.read_with(|stream| one_byte(stream, half)).await?, half);
        // SAFETY: `one_byte` reads from the stream and does not move it.
        let all = unsafe { server.read_with_mut(|stream| one_byte(stream, TEXT.len())) }.await?;
        assert_eq!(all, TEXT.len());
        assert_eq!(got, TEXT);

        let mut turns = 0;
        client
            .write_with(|_| {
                turns += 1;
                if turns < 5 { Err(ErrorKind::WouldBlock.into()) } else { Ok(()) }
            })
            .await?;
        assert_eq!(turns, 5);
        Ok(())
    })
}

#[test]
pub fn into_inner_gives_back_a_working_socket() -> io::Result<()> {
    let (client, server) = block_on(tcp_pair())?;
    let mut client = client.into_inner()?;
    let mut server = server.into_inner()?;
    client.set_nonblocking(false)?;
    server.set_nonblocking(false)?;
    client.write_all(TEXT)?;
    let mut buf = vec![0; TEXT.len()];
    server.read_exact(&mut buf)?;
    assert_eq!(buf, TEXT);

    // This stream can be registered again.
    let (mut client, mut server) = (Async::new(client)?, Async::new(server)?);
    block_on(async {
        client.write_all(TEXT).await?;
        server.read_exact(&mut buf).await
    })
}

#[test]
pub fn one_descriptor_is_registered_once() -> io::Result<()> {
    block_on(async {
        let listener = Async::<TcpListener>::bind(([127, 0, 0, 1], 0))?;
        let err = Async::new(listener.get_ref()).unwrap_err();
        assert_eq!(err.kind(), ErrorKind::AlreadyExists);
        assert!(err.to_string().contains("registered already"), "{err}");

        // The failed attempt leaves the first registration as it was.
        let addr = listener.get_ref().local_addr()?;
        future::try_zip(listener.accept(), Async::<TcpStream>::connect(addr)).await?;
        Ok(())
    })
}

/// `Box<TcpStream>` is a type that the crate does not know, so the operations trust no `WouldBlock` of it.
#[test]
pub fn a_handle_of_an_unknown_type_transfers_too() -> io::Result<()> {
    block_on(async {
        let (client, server) = tcp_pair().await?;
        let mut client = Async::new(Box::new(client.into_inner()?))?;
        let mut server = Async::new(Box::new(server.into_inner()?))?;
        let mut buf = vec![0; 4 << 20];
        let data: Vec<u8> = (0..=255).cycle().take(buf.len()).collect();
        future::try_zip(server.read_exact(&mut buf), async {
            client.write_all(&data).await?;
            client.flush().await
        })
        .await?;
        assert!(buf == data);
        Ok(())
    })
}
