//! Operations with a `WouldBlock` of the descriptor itself, and the readiness that is cached meanwhile.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_lite::future;
use paceline::Direction::{self, Read as Reading, Write as Writing};
use paceline::{Async, Readiness, Runtime, Source, Timer, block_on};

use crate::io::tcp_pair;

/// Tries a read, and has no task woken if it has to wait.
fn read<T>(handle: &Async<T>) -> Poll<std::io::Result<usize>>
where
    for<'a> &'a T: Read,
{
    let cx = &mut Context::from_waker(Waker::noop());
    handle.source().poll_io(Reading, cx, || handle.get_ref().read(&mut [0; 1]))
}

async fn ready_for(source: &Source, direction: Direction) -> std::io::Result<Readiness> {
    poll_fn(|cx| source.poll_ready(direction, cx)).await
}

async fn read_up_to_four(handle: &Async<TcpStream>) -> std::io::Result<usize> {
    let mut read = || handle.get_ref().read(&mut [0; 4]);
    poll_fn(|cx| handle.source().poll_transfer(Reading, cx, 4, &mut read)).await
}

/// An operation is not tried while the handle is known not to be ready; an event makes it worth a try. (The
/// first part fails if readiness is not asked, the second if a short transfer is taken for a full one.)
#[test]
fn nothing_is_tried_in_vain_twice() {
    Runtime::builder().current_thread().build().unwrap().block_on(async {
        let (ours, theirs) = tcp_pair().await.unwrap();
        assert!(read(&ours).is_pending());
        let (handle, ours) = (&ours, ours.source());
        // A wait that begins in a later turn has the word of the reactor.
        Timer::after(Duration::from_millis(1)).await;
        assert!(!ours.readiness().is_ready(Reading));
        let cx = &mut Context::from_waker(Waker::noop());
        let again =
            ours.poll_io(Reading, cx, || -> std::io::Result<()> { panic!("it is known to be drained") });
        assert!(again.is_pending());

        theirs.get_ref().write_all(b"abc").unwrap();
        assert!(ready_for(ours, Reading).await.unwrap().is_ready(Reading));
        assert_eq!(read_up_to_four(handle).await.unwrap(), 3);
        assert!(!ours.readiness().is_ready(Reading));

        theirs.get_ref().write_all(b"abcd").unwrap();
        ready_for(ours, Reading).await.unwrap();
        assert_eq!(read_up_to_four(handle).await.unwrap(), 4);
        assert!(ours.readiness().is_ready(Reading), "there may be more behind it");
        assert!(ours.readiness().is_ready(Writing));
    });
}

/// (Fails if the snapshot is not compared with later events.)
#[test]
fn what_came_since_is_not_forgotten() {
    block_on(async {
        let (ours, theirs) = tcp_pair().await.unwrap();
        let ours = ours.source();
        let seen = ours.readiness();
        ours.forget(Reading, seen);
        assert!(!ours.readiness().is_ready(Reading) && ours.readiness().is_ready(Writing));
        theirs.get_ref().write_all(b"a").unwrap();
        ready_for(ours, Reading).await.unwrap();
        ours.forget(Reading, seen);
        assert!(ours.readiness().is_ready(Reading), "an event came after `seen`");
        ours.forget(Writing, ours.readiness());
        assert!(!ours.readiness().is_ready(Writing));
    });
}

/// (Fails if a new handle is presumed to be ready nevertheless, or if its readiness is not reported.)
#[test]
fn a_new_handle_is_presumed_to_be_ready_unless_that_is_taken_back() {
    block_on(async {
        let (ours, theirs) = tcp_pair().await.unwrap();
        let ours = Async::new(ours.into_inner().unwrap()).unwrap();
        ours.source().presume_not_ready(Reading);
        assert!(future::poll_once(ready_for(ours.source(), Reading)).await.is_none());

        theirs.get_ref().write_all(b"a").unwrap();
        let ours = Async::new(ours.into_inner().unwrap()).unwrap();
        ours.source().presume_not_ready(Reading);
        ready_for(ours.source(), Reading).await.unwrap();
        ours.source().presume_not_ready(Reading);
        assert!(ours.source().readiness().is_ready(Reading), "an event said so");
    });
}

/// (Fails if readiness alone counts as an event.)
#[cfg_attr(polling_test_poll_backend, ignore = "which reports what is ready, again and again")]
#[test]
fn an_event_is_something_that_happens() {
    block_on(async {
        let (ours, theirs) = tcp_pair().await.unwrap();
        let ours = ours.source();
        theirs.get_ref().write_all(b"a").unwrap();
        ours.presume_not_ready(Reading);
        let seen = ready_for(ours, Reading).await.unwrap();
        let mut event = Box::pin(ours.event(Reading, seen));
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
        let seen = ours.source().readiness();
        ours.source().forget(Reading, seen);
        let waits: Vec<_> = (0..20)
            .map(|_| {
                let ours = ours.clone();
                runtime.spawn(async move {
                    ours.source().event(Reading, seen).await.map(|ready| ready.is_ready(Reading))
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
        let (stream, ours) = (ours.get_ref(), ours.source());
        ours.forget(Reading, ours.readiness());
        send(theirs.get_ref(), b"!", SendFlags::OOB).unwrap();
        let ready = ready_for(ours, Reading).await.unwrap();
        assert!(ready.is_priority() && !ready.is_closed(Reading), "{ready:?}");
        ours.forget(Reading, ready);
        assert!(ours.readiness().is_priority(), "the mark stays for a later look");
        // The system may report the byte a second time, and later, until it is read.
        recv(stream, &mut [0], RecvFlags::OOB).unwrap();
        crate::setups::eventually("it passes", || {
            ours.forget_marks(ours.readiness());
            !ours.readiness().is_priority()
        });

        theirs.get_ref().shutdown(Shutdown::Write).unwrap();
        let mut ready = ready_for(ours, Reading).await.unwrap();
        while !ready.is_closed(Reading) {
            ours.forget(Reading, ready);
            ready = ready_for(ours, Reading).await.unwrap();
        }
        assert!(!ready.is_closed(Writing) && !ready.is_error(), "{ready:?}");
        ours.forget(Reading, ready);
        assert!(ours.readiness().is_closed(Reading), "an end is for good");

        ours.forget(Writing, ready);
        theirs_resets(theirs);
        let ready = ready_for(ours, Writing).await.unwrap();
        assert!(ready.is_closed(Writing), "{ready:?}");
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
        ours.source().presume_not_ready(Reading);
        ours.send(b"a").await.unwrap();
        let ready = ready_for(ours.source(), Reading).await.unwrap();
        assert!(ready.is_error() && !ready.is_closed(Writing) && !ready.is_closed(Reading), "{ready:?}");
        assert!(ours.get_ref().take_error().unwrap().is_some());
        ours.get_ref().connect(theirs.local_addr().unwrap()).unwrap();
        ours.send(b"b").await.unwrap();
        assert!(!ours.source().readiness().is_closed(Writing));
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
        let ours = reader.source();
        for _ in 0..2 {
            ours.forget(Reading, ours.readiness());
            let mut writer = write();
            assert!(!ours.readiness().is_closed(Reading));
            writer.write_all(b"a").unwrap();
            let ready = ready_for(ours, Reading).await.unwrap();
            assert!(ready.is_ready(Reading) && !ready.is_closed(Reading), "{ready:?}");
            drop(writer);
            let ready = ours.event(Reading, ready).await.unwrap();
            assert!(ready.is_closed(Reading), "{ready:?}");
            assert!(matches!(read(&reader), Poll::Ready(Ok(1))));
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
        ours.source().presume_not_ready(Reading);
        let ready = ready_for(ours.source(), Reading).await.unwrap();
        assert!(ready.is_closed(Reading) && ready.is_closed(Writing), "{ready:?}");
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _ = SockRef::from(ours.get_ref()).connect(&listener.local_addr().unwrap().into());
        ours.writable().await.unwrap();
        let ready = ours.source().readiness();
        assert!(!ready.is_closed(Reading) && !ready.is_closed(Writing), "{ready:?}");
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
    assert!(read(&ours).is_pending());
    let ours = ours.source();
    let mut wait = Box::pin(ready_for(ours, Reading));
    block_on(async {
        assert!(future::poll_once(&mut wait).await.is_none());
        drop(runtime);
        assert!(wait.await.is_err());
        let write = poll_fn(|cx| match ours.poll_ready(Writing, cx) {
            Poll::Ready(result) => Poll::Ready(result.is_err()),
            Poll::Pending => panic!("the wait never ends"),
        });
        assert!(write.await);
    });
}
