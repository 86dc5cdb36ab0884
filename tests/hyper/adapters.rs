//! `Io`, `Timer` and `Executor`, without HTTP.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{self, Executor as _, Read, ReadBuf, Sleep, Timer as _, Write};
use paceline::hyper::{Executor, Io, Timer};
use paceline::prelude::{AsyncRead, AsyncReadExt, AsyncWrite};
use paceline::{Async, Runtime, block_on, net};

use crate::setups::SOON;

/// Returns the two ends of a connection: this side's, and the peer's.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let peer = listener.accept().unwrap().0;
    // A missing answer is an error, and no hang. Miri has no such limit.
    assert!(cfg!(miri) || peer.set_read_timeout(Some(SOON)).is_ok());
    (ours, peer)
}

const MARK: u8 = 0xa5;

/// Reads once into memory with marks; returns the bytes that were read, and all of the memory.
async fn read_over_marks(io: &mut (impl Read + Unpin)) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut memory = [MaybeUninit::new(MARK); 100];
    let mut buf = ReadBuf::uninit(&mut memory);
    poll_fn(|cx| Pin::new(&mut *io).poll_read(cx, buf.unfilled())).await?;
    let read = buf.filled().to_vec();
    // SAFETY: all of the memory was initialised when it was made, and initialised memory stays initialised.
    Ok((read, memory.iter().map(|byte| unsafe { byte.assume_init() }).collect()))
}

/// The same into uninitialised memory, for miri.
async fn read_into_nothing(io: &mut (impl Read + Unpin)) -> io::Result<Vec<u8>> {
    let mut memory = [MaybeUninit::uninit(); 100];
    let mut buf = ReadBuf::uninit(&mut memory);
    poll_fn(|cx| Pin::new(&mut *io).poll_read(cx, buf.unfilled())).await?;
    Ok(buf.filled().to_vec())
}

async fn reads_without_zeroing(io: &mut (impl Read + Write + Unpin), peer: &mut TcpStream) {
    peer.write_all(b"abc").unwrap();
    let (read, memory) = read_over_marks(io).await.unwrap();
    assert_eq!(read, b"abc");
    assert_eq!(memory[..3], *b"abc");
    assert!(memory[3..].iter().all(|byte| *byte == MARK), "it was written to: {memory:?}");

    // This read has to wait for an event of the reactor.
    let answers = async {
        paceline::Timer::after(Duration::from_millis(5)).await;
        peer.write_all(b"defg").unwrap();
    };
    let (read, ()) = futures_lite::future::zip(read_into_nothing(io), answers).await;
    assert_eq!(read.unwrap(), b"defg");

    assert!(io.is_write_vectored());
    let slices = [IoSlice::new(b"he"), IoSlice::new(b""), IoSlice::new(b"llo")];
    let wrote = poll_fn(|cx| Pin::new(&mut *io).poll_write_vectored(cx, &slices)).await.unwrap();
    assert_eq!(wrote, 5, "one write for all");
    let mut got = [0; 5];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"hello");

    // A shutdown ends one direction.
    poll_fn(|cx| Pin::new(&mut *io).poll_shutdown(cx)).await.unwrap();
    assert_eq!(peer.read(&mut [0; 10]).unwrap(), 0);
    peer.write_all(b"late").unwrap();
    assert_eq!(read_into_nothing(io).await.unwrap(), b"late");
    peer.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_into_nothing(io).await.unwrap(), b"");
    poll_fn(|cx| Pin::new(&mut *io).poll_shutdown(cx)).await.unwrap();
}

#[test]
fn sockets_read_into_memory_as_it_is() {
    block_on(async {
        let (ours, mut peer) = pair();
        reads_without_zeroing(&mut Io::new(net::TcpStream::try_from(ours).unwrap()), &mut peer).await;
        let (ours, mut peer) = pair();
        reads_without_zeroing(&mut Io::new(Async::new(ours).unwrap()), &mut peer).await;
    });
}

/// The same for sockets that miri does not support completely.
#[test]
#[cfg(not(miri))]
fn unix_sockets_read_into_memory_as_it_is() {
    async fn check(io: &mut (impl Read + Write + Unpin), mut peer: std::os::unix::net::UnixStream) {
        peer.set_read_timeout(Some(SOON)).unwrap();
        peer.write_all(b"abc").unwrap();
        let (read, memory) = read_over_marks(io).await.unwrap();
        assert_eq!(read, b"abc");
        assert!(memory[3..].iter().all(|byte| *byte == MARK), "it was written to: {memory:?}");
        assert!(io.is_write_vectored());
        poll_fn(|cx| Pin::new(&mut *io).poll_shutdown(cx)).await.unwrap();
        assert_eq!(peer.read(&mut [0; 10]).unwrap(), 0);
    }
    block_on(async {
        let (ours, peer) = std::os::unix::net::UnixStream::pair().unwrap();
        check(&mut Io::new(net::unix::UnixStream::try_from(ours).unwrap()), peer).await;
        let (ours, peer) = std::os::unix::net::UnixStream::pair().unwrap();
        check(&mut Io::new(Async::new(ours).unwrap()), peer).await;
    });
}

/// Short slices are copied and written at once, long ones are not: the bytes are the same.
#[test]
fn slices_of_any_length_arrive() {
    let (ours, mut peer) = pair();
    let mut io = Io::new(net::TcpStream::try_from(ours).unwrap());
    for len in [0, 1, 511, 512, 513, 1022, 1023, 1024, 1025, 5000] {
        let (head, body) = (vec![b'h'; len], vec![b'b'; len + 1]);
        let all = [&head[..], &body[..]].concat();
        let wrote = block_on(poll_fn(|cx| {
            let slices = [IoSlice::new(&head), IoSlice::new(&body)];
            Pin::new(&mut io).poll_write_vectored(cx, &slices)
        }));
        assert_eq!(wrote.unwrap(), all.len());
        let mut got = vec![0; all.len()];
        peer.read_exact(&mut got).unwrap();
        assert!(got == all, "of {len} bytes and one more");
    }
}

/// A foreign stream, which may look at the memory of its buffer. Returns so many bytes, or claims to.
struct Foreign(usize);

impl AsyncRead for Foreign {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        assert!(buf.iter().all(|byte| *byte == 0), "it was given {buf:?}");
        buf.iter_mut().take(self.0).for_each(|byte| *byte = b'x');
        Poll::Ready(Ok(self.0))
    }
}

impl AsyncWrite for Foreign {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = 0;
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_stream_that_is_not_ours_gets_zeroed_memory() {
    block_on(async {
        let mut io = Io::new(Foreign(3));
        let (read, memory) = read_over_marks(&mut io).await.unwrap();
        assert_eq!(read, b"xxx");
        assert!(memory[3..].iter().all(|byte| *byte == 0));
        assert_eq!(read_into_nothing(&mut io).await.unwrap(), b"xxx");
        assert!(!io.is_write_vectored());
        poll_fn(|cx| Pin::new(&mut io).poll_shutdown(cx)).await.unwrap();
        assert_eq!(io.get_ref().0, 0, "shut down is closed");
        io.get_mut().0 = 1;
        assert_eq!(Io::new(io.into_inner()).into_inner().0, 1);
    });
}

#[test]
#[should_panic(expected = "says that it has read 101 bytes into a buffer of 100")]
fn a_stream_that_claims_too_much_is_caught() {
    let _ = block_on(read_into_nothing(&mut Io::new(Foreign(101))));
}

/// Wrapped twice, the stream has its original traits.
#[test]
#[cfg_attr(miri, ignore = "the peer of a socket that is shut down waits on there")]
fn the_other_way_round() {
    block_on(async {
        let (ours, mut peer) = pair();
        let mut io = Io::new(Io::new(net::TcpStream::try_from(ours).unwrap()));
        peer.write_all(b"abc").unwrap();
        let mut got = [0; 10];
        assert_eq!(AsyncReadExt::read(&mut io, &mut got).await.unwrap(), 3);
        assert_eq!(&got[..3], b"abc");
        use paceline::prelude::AsyncWriteExt;
        io.write_all(b"def").await.unwrap();
        io.close().await.unwrap();
        let mut all = Vec::new();
        peer.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"def");
    });
}

fn address(sleep: &Pin<Box<dyn Sleep>>) -> *const () {
    std::ptr::from_ref(&**sleep).cast()
}

/// Forwards and backwards, before and after it has fired, in the same memory.
#[test]
#[cfg_attr(miri, ignore = "it is not back at a timer before that is due")]
fn a_timer_is_set_anew_where_it_is() {
    const FAR: Duration = Duration::from_secs(3600);
    block_on(async {
        let mut sleep = Timer.sleep(FAR);
        let at = address(&sleep);
        for _ in 0..3 {
            assert!(futures_lite::future::poll_once(sleep.as_mut()).await.is_none());
            let soon = Instant::now() + Duration::from_millis(5);
            Timer.reset(&mut sleep, soon);
            sleep.as_mut().await;
            assert!(Instant::now() >= soon);
            Timer.reset(&mut sleep, Instant::now() + FAR);
        }
        // Later than the first deadline.
        let mut sleep2 = Timer.sleep(FAR);
        assert!(futures_lite::future::poll_once(sleep2.as_mut()).await.is_none());
        Timer.reset(&mut sleep2, Instant::now() + Duration::from_millis(5));
        let later = Instant::now() + Duration::from_millis(50);
        Timer.reset(&mut sleep2, later);
        sleep2.as_mut().await;
        assert!(Instant::now() >= later);
        assert_eq!(address(&sleep), at);
    });
}

#[test]
fn a_timer_that_is_not_ours_becomes_ours() {
    struct Never;
    impl Sleep for Never {}
    impl Future for Never {
        type Output = ();
        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            Poll::Pending
        }
    }
    let mut sleep: Pin<Box<dyn Sleep>> = Box::pin(Never);
    Timer.reset(&mut sleep, Instant::now());
    block_on(sleep);
    assert!(Timer.now().elapsed() < Duration::from_secs(3600));
}

/// On hyper's runtime by default, or on a given one.
#[test]
fn tasks_run_where_they_should() {
    let runtime = |name: &str| Runtime::builder().threads(1).thread_name(name).build().unwrap();
    let (here, there) = (runtime("here"), runtime("there"));
    let handle = there.handle();
    let (tell, told) = std::sync::mpsc::channel();
    let name = || std::thread::current().name().unwrap().to_owned();
    here.block_on(async {
        let (to_default, to_handle) = (tell.clone(), tell.clone());
        Executor.execute(async move { to_default.send(("default", name())).unwrap() });
        rt::Executor::execute(&handle, async move { to_handle.send(("handle", name())).unwrap() });
    });
    let mut all = [told.recv().unwrap(), told.recv().unwrap()];
    all.sort_unstable();
    assert_eq!(all, [("default", "here-1".into()), ("handle", "there-1".into())]);

    // A task that is spawned on a dropped runtime is dropped.
    drop(there);
    let share = Arc::new(());
    let task = share.clone();
    rt::Executor::execute(&handle, async move { drop(task) });
    assert_eq!(Arc::strong_count(&share), 1);
}
