//! Operations with a `WouldBlock` of the descriptor itself, and the readiness that is cached meanwhile.

use std::future::poll_fn;
use std::io::{ErrorKind::WouldBlock, Read, Write};
use std::net::TcpStream;
use std::task::Poll;

use futures_lite::future;
use paceline::{Async, Runtime, Trusted, block_on};

use crate::io::tcp_pair;

fn reads(stream: Trusted<'_, TcpStream>, size: usize) -> std::io::Result<usize> {
    stream.try_read(|mut stream| stream.read(&mut vec![0; size]))
}

/// An operation is not tried while the handle is known not to be ready; an event makes it worth a try. (The
/// first part fails if readiness is not asked, the second if a short transfer is taken for a full one.)
#[test]
fn nothing_is_tried_in_vain_twice() {
    Runtime::builder().current_thread().build().unwrap().block_on(async {
        let (ours, theirs) = tcp_pair().await.unwrap();
        let ours = ours.trusted();
        assert_eq!(reads(ours, 1).unwrap_err().kind(), WouldBlock);
        assert!(!ours.readiness().is_readable());
        // If events have to be requested, the cached readiness may be out of date.
        if cfg!(all(target_os = "linux", not(polling_test_poll_backend))) {
            assert!(
                ours.try_read(|_| -> std::io::Result<()> { panic!("it is known to be drained") }).is_err()
            );
        }

        theirs.get_ref().write_all(b"abc").unwrap();
        assert!(ours.read_ready().await.unwrap().is_readable());
        let short = poll_fn(|cx| ours.poll_read_up_to(cx, 4, |mut stream| stream.read(&mut [0; 4])));
        assert_eq!(short.await.unwrap(), 3);
        assert!(!ours.readiness().is_readable());

        theirs.get_ref().write_all(b"abcd").unwrap();
        ours.read_ready().await.unwrap();
        let full = poll_fn(|cx| ours.poll_read_up_to(cx, 4, |mut stream| stream.read(&mut [0; 4])));
        assert_eq!(full.await.unwrap(), 4);
        assert!(ours.readiness().is_readable(), "there may be more behind it");
        assert!(ours.readiness().is_writable());
    });
}

/// (Fails if the snapshot is not compared with later events.)
#[test]
fn what_came_since_is_not_forgotten() {
    block_on(async {
        let (ours, theirs) = tcp_pair().await.unwrap();
        let ours = ours.trusted();
        let seen = ours.readiness();
        ours.forget_read(seen);
        assert!(!ours.readiness().is_readable() && ours.readiness().is_writable());
        theirs.get_ref().write_all(b"a").unwrap();
        ours.read_ready().await.unwrap();
        ours.forget_read(seen);
        assert!(ours.readiness().is_readable(), "an event came after `seen`");
        ours.forget_write(ours.readiness());
        assert!(!ours.readiness().is_writable());
    });
}

/// (Fails if a new handle is presumed to be ready nevertheless, or if its readiness is not reported.)
#[test]
fn a_new_handle_is_presumed_to_be_ready_unless_that_is_taken_back() {
    block_on(async {
        let (ours, theirs) = tcp_pair().await.unwrap();
        let ours = Async::new(ours.into_inner().unwrap()).unwrap();
        ours.trusted().presume_unreadable();
        assert!(future::poll_once(ours.trusted().read_ready()).await.is_none());

        theirs.get_ref().write_all(b"a").unwrap();
        let ours = Async::new(ours.into_inner().unwrap()).unwrap();
        ours.trusted().presume_unreadable();
        ours.trusted().read_ready().await.unwrap();
        ours.trusted().presume_unreadable();
        assert!(ours.trusted().readiness().is_readable(), "an event said so");
    });
}

/// (Fails if readiness alone counts as an event.)
#[cfg_attr(polling_test_poll_backend, ignore = "which reports what is ready, again and again")]
#[test]
fn an_event_is_something_that_happens() {
    block_on(async {
        let (ours, theirs) = tcp_pair().await.unwrap();
        let ours = ours.trusted();
        theirs.get_ref().write_all(b"a").unwrap();
        ours.presume_unreadable();
        let seen = ours.read_ready().await.unwrap();
        let mut event = Box::pin(ours.read_event(seen));
        for _ in 0..3 {
            assert!(future::poll_once(&mut event).await.is_none());
            future::yield_now().await;
        }
        theirs.get_ref().write_all(b"b").unwrap();
        event.await.unwrap();
    });
}

#[test]
fn any_number_waits_and_each_is_woken() {
    let runtime = Runtime::builder().threads(2).build().unwrap();
    runtime.block_on(async {
        let (ours, theirs) = tcp_pair().await.unwrap();
        let ours = std::sync::Arc::new(ours);
        ours.trusted().forget_read(ours.trusted().readiness());
        let waits: Vec<_> = (0..20)
            .map(|number| {
                let ours = ours.clone();
                runtime.spawn(async move {
                    match number % 2 {
                        0 => ours.trusted().read_ready().await.map(|ready| ready.is_readable()),
                        _ => ours.trusted().read(|stream| stream.peek(&mut [0])).await.map(|read| read == 1),
                    }
                })
            })
            .collect();
        // Most likely after they have begun to wait; if before, they find the byte.
        future::yield_now().await;
        theirs.get_ref().write_all(b"a").unwrap();
        for wait in waits {
            assert!(wait.await.unwrap());
        }
    });
}

#[cfg(target_os = "linux")]
#[cfg_attr(polling_test_poll_backend, ignore = "only epoll tells of ends")]
#[cfg_attr(miri, ignore = "miri has no urgent data")]
#[test]
fn ends_and_urgent_data_are_told() {
    use std::net::Shutdown;

    use rustix::net::{RecvFlags, SendFlags, recv, send};
    block_on(async {
        let (ours, theirs) = tcp_pair().await.unwrap();
        let (stream, ours) = (ours.get_ref(), ours.trusted());
        ours.forget_read(ours.readiness());
        send(theirs.get_ref(), b"!", SendFlags::OOB).unwrap();
        let ready = ours.read_ready().await.unwrap();
        assert!(ready.is_priority() && !ready.is_read_closed(), "{ready:?}");
        ours.forget_read(ready);
        assert!(ours.readiness().is_priority(), "the mark stays for a later look");
        // The system may report the byte a second time, and later, until it is read.
        recv(stream, &mut [0], RecvFlags::OOB).unwrap();
        crate::setups::eventually("it passes", || {
            ours.forget_marks(ready);
            !ours.readiness().is_priority()
        });

        theirs.get_ref().shutdown(Shutdown::Write).unwrap();
        let mut ready = ours.read_ready().await.unwrap();
        while !ready.is_read_closed() {
            ours.forget_read(ready);
            ready = ours.read_ready().await.unwrap();
        }
        assert!(!ready.is_write_closed() && !ready.is_error(), "{ready:?}");
        ours.forget_read(ready);
        assert!(ours.readiness().is_read_closed(), "an end is for good");

        ours.forget_write(ready);
        theirs_resets(theirs);
        let ready = ours.write_ready().await.unwrap();
        assert!(ready.is_write_closed(), "{ready:?}");
    });
}

/// A refused datagram is an error, and no end: the next one is sent. (Fails if an error is taken for the end
/// of writing.)
#[cfg(target_os = "linux")]
#[cfg_attr(polling_test_poll_backend, ignore = "only epoll tells of ends")]
#[cfg_attr(miri, ignore = "miri has no datagrams")]
#[test]
fn a_refused_datagram_is_no_end() {
    use std::net::UdpSocket;
    let socket = || UdpSocket::bind("127.0.0.1:0").unwrap();
    block_on(async {
        let gone = socket().local_addr().unwrap();
        let (ours, theirs) = (socket(), socket());
        ours.connect(gone).unwrap();
        let ours = Async::new(ours).unwrap();
        ours.trusted().presume_unreadable();
        ours.send(b"a").await.unwrap();
        let ready = ours.trusted().read_ready().await.unwrap();
        assert!(ready.is_error() && !ready.is_write_closed() && !ready.is_read_closed(), "{ready:?}");
        assert!(ours.get_ref().take_error().unwrap().is_some());
        ours.get_ref().connect(theirs.local_addr().unwrap()).unwrap();
        ours.send(b"b").await.unwrap();
        assert!(!ours.trusted().readiness().is_write_closed());
    });
}

/// An end is reported while it holds: a FIFO may get another writer. (Fails if an end that was reported once
/// is reported for ever, or if a second end is not reported.)
/// if that it ends a second time is not.)
#[cfg(target_os = "linux")]
#[cfg_attr(polling_test_poll_backend, ignore = "only epoll tells of ends")]
#[cfg_attr(miri, ignore = "miri has no FIFOs")]
#[test]
fn an_end_is_told_while_it_holds() {
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, open};
    use std::fs::{File, OpenOptions};
    let path = std::env::temp_dir().join(format!("paceline-fifo-{}", std::process::id()));
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let reader = File::from(open(&path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap());
    let write = || OpenOptions::new().write(true).open(&path).unwrap();
    block_on(async {
        let reader = Async::new(reader).unwrap();
        let ours = reader.trusted();
        for _ in 0..2 {
            ours.forget_read(ours.readiness());
            let mut writer = write();
            assert!(!ours.readiness().is_read_closed());
            writer.write_all(b"a").unwrap();
            let ready = ours.read_ready().await.unwrap();
            assert!(ready.is_readable() && !ready.is_read_closed(), "{ready:?}");
            drop(writer);
            let ready = ours.read_event(ready).await.unwrap();
            assert!(ready.is_read_closed(), "{ready:?}");
            assert_eq!(ours.try_read(|mut file| file.read(&mut [0; 2])).unwrap(), 1);
        }
    });
    std::fs::remove_file(path).unwrap();
}

/// A stream that is not connected is at its end; after a later connect it is not.
#[cfg(target_os = "linux")]
#[cfg_attr(polling_test_poll_backend, ignore = "only epoll tells of ends")]
#[cfg_attr(miri, ignore = "miri connects no socket that exists")]
#[test]
fn a_stream_that_is_connected_after_it_was_registered_has_no_end() {
    use socket2::{Domain, SockRef, Socket, Type};
    block_on(async {
        let socket = TcpStream::from(Socket::new(Domain::IPV4, Type::STREAM, None).unwrap());
        let ours = Async::new(socket).unwrap();
        ours.trusted().presume_unreadable();
        let ready = ours.trusted().read_ready().await.unwrap();
        assert!(ready.is_read_closed() && ready.is_write_closed(), "{ready:?}");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _ = SockRef::from(ours.get_ref()).connect(&listener.local_addr().unwrap().into());
        ours.writable().await.unwrap();
        let ready = ours.trusted().readiness();
        assert!(!ready.is_read_closed() && !ready.is_write_closed(), "{ready:?}");
    });
}

#[cfg(target_os = "linux")]
fn theirs_resets(theirs: Async<TcpStream>) {
    let theirs = socket2::Socket::from(theirs.into_inner().unwrap());
    theirs.set_linger(Some(std::time::Duration::ZERO)).unwrap();
}

/// (Fails if a wait for readiness takes the end of the reactor for readiness.)
#[test]
fn waits_end_with_their_runtime() {
    let runtime = Runtime::builder().threads(1).build().unwrap();
    let (ours, _theirs) = runtime.block_on(tcp_pair()).unwrap();
    let ours = ours.trusted();
    assert!(reads(ours, 1).is_err());
    let mut wait = Box::pin(ours.read_ready());
    block_on(async {
        assert!(future::poll_once(&mut wait).await.is_none());
        drop(runtime);
        assert!(wait.await.is_err());
        let write = poll_fn(|cx| match ours.poll_write_ready(cx) {
            Poll::Ready(result) => Poll::Ready(result.is_err()),
            Poll::Pending => panic!("the wait never ends"),
        });
        assert!(write.await);
    });
}
