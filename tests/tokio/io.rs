//! The traits, in both directions, over all types that can be wrapped.

use std::future::poll_fn;
use std::io::{self, IoSlice, SeekFrom};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_lite::future::try_zip;
use paceline::net::unix::UnixStream;
use paceline::net::{TcpListener, TcpStream};
use paceline::tokio_io::{ForFutures, ForTokio};
use paceline::{Async, block_on, spawn};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncSeekExt, AsyncWrite, AsyncWriteExt, ReadBuf};

async fn tcp() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let addr = listener.local_addr()?;
    let (ours, (theirs, _)) = try_zip(TcpStream::connect(addr), listener.accept()).await?;
    Ok((ours, theirs))
}

/// More than the buffers of any socket hold.
const MUCH: usize = 8 << 20;

fn pattern() -> Vec<u8> {
    (0..MUCH).map(|n| (n % 251) as u8).collect()
}

/// Writes many bytes into one stream, shuts it down, and reads them from the other; then the same backwards.
async fn there_and_back<S>(mut ours: S, mut theirs: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let far = spawn(async move {
        let mut all = Vec::new();
        theirs.read_to_end(&mut all).await.unwrap();
        theirs.write_all(&all).await.unwrap();
        theirs.flush().await.unwrap();
        theirs.shutdown().await.unwrap();
    });
    let all = pattern();
    ours.write_all(&all).await.unwrap();
    // The peer's read ends only if the write side was shut down, and the other direction stays open.
    ours.shutdown().await.unwrap();
    let mut back = Vec::new();
    ours.read_to_end(&mut back).await.unwrap();
    assert!(all == back);
    far.await;
}

/// Fails if `poll_shutdown` only flushes: then the peer's read never ends.
#[test]
fn our_streams_have_the_traits() {
    block_on(async {
        let (ours, theirs) = tcp().await.unwrap();
        there_and_back(ours, theirs).await;
        let (ours, theirs) = UnixStream::pair().unwrap();
        there_and_back(ours, theirs).await;
    });
}

#[test]
fn what_is_wrapped_twice_is_what_it_was() {
    block_on(async {
        let (ours, theirs) = tcp().await.unwrap();
        there_and_back(ForTokio::new(ours), ForTokio::new(theirs)).await;
        let (ours, theirs) = UnixStream::pair().unwrap();
        let twice = |stream| ForTokio::new(ForFutures::new(stream));
        there_and_back(twice(ours), twice(theirs)).await;
    });
}

#[test]
fn halves_have_them_too() {
    block_on(async {
        let (ours, theirs) = tcp().await.unwrap();
        let far = spawn(async move {
            let (mut read, mut write) = theirs.split();
            let mut all = Vec::new();
            read.read_to_end(&mut all).await.unwrap();
            write.write_all(&all).await.unwrap();
            write.shutdown().await.unwrap();
        });
        let (mut read, mut write) = ours.into_split();
        write.write_all(&pattern()).await.unwrap();
        write.shutdown().await.unwrap();
        let mut all = Vec::new();
        read.read_to_end(&mut all).await.unwrap();
        assert!(all == pattern());
        far.await;

        // By reference, and in two tasks.
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut one, mut other) = (&ours, &theirs);
        one.write_all(b"x").await.unwrap();
        assert_eq!(other.read_u8().await.unwrap(), b'x');
    });
}

/// A read into an uninitialised buffer does not touch its end, which stays uninitialised.
#[test]
fn our_streams_do_not_zero() {
    block_on(async {
        let (mut ours, mut theirs) = tcp().await.unwrap();
        ours.write_all(b"hello").await.unwrap();
        let mut memory = [MaybeUninit::new(7u8); 64];
        let mut buf = ReadBuf::uninit(&mut memory);
        buf.put_slice(b">");
        poll_fn(|cx| Pin::new(&mut theirs).poll_read(cx, &mut buf)).await.unwrap();
        assert_eq!((buf.filled(), buf.initialized().len()), (&b">hello"[..], 6));
        // SAFETY: all of the memory was initialised above.
        assert!(memory[6..].iter().all(|byte| unsafe { byte.assume_init() } == 7));
    });
}

/// A reader that reads nothing, and records the size of its buffer.
struct Looks(Vec<usize>);

impl futures_lite::AsyncRead for Looks {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.push(buf.len());
        buf[0] = 1;
        Poll::Ready(Ok(1))
    }
}

/// Zeroed memory is not zeroed again, and of a large buffer only a part is.
#[test]
fn others_get_zeroed_memory_once() {
    let mut memory = vec![MaybeUninit::new(7u8); 1 << 20];
    let mut buf = ReadBuf::uninit(&mut memory);
    let mut io = ForTokio::new(Looks(Vec::new()));
    let mut cx = Context::from_waker(std::task::Waker::noop());
    let mut read = |buf: &mut ReadBuf<'_>| {
        assert!(Pin::new(&mut io).poll_read(&mut cx, buf).is_ready());
        *io.get_ref().0.last().unwrap()
    };
    let first = read(&mut buf);
    assert_eq!((buf.filled().len(), buf.initialized().len()), (1, first));
    assert!((4 << 10..=64 << 10).contains(&first), "{first}");
    buf.set_filled(0);
    assert_eq!((read(&mut buf), buf.initialized().len()), (first, first));
    // A buffer that its owner has initialised is used as a whole.
    let mut large = vec![0; 1 << 20];
    assert_eq!(read(&mut ReadBuf::new(&mut large)), 1 << 20);
}

/// Head and body are sent together if the writer supports vectored writes.
#[test]
fn our_streams_write_several_slices_at_once() {
    block_on(async {
        let (mut ours, mut theirs) = tcp().await.unwrap();
        assert!(ours.is_write_vectored() && !ForTokio::new(ours.clone()).is_write_vectored());
        let slices = [IoSlice::new(b"head "), IoSlice::new(b"body")];
        assert_eq!(ours.write_vectored(&slices).await.unwrap(), 9);
        assert_eq!(ForTokio::new(ours.clone()).write_vectored(&slices).await.unwrap(), 9);
        let mut text = [0; 18];
        theirs.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"head bodyhead body");

        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut both = ForFutures::new(ours);
        let n = futures_lite::AsyncWriteExt::write_vectored(&mut both, &slices).await.unwrap();
        assert_eq!(n, 9);
        theirs.read_exact(&mut text[..9]).await.unwrap();
    });
}

#[test]
fn an_end_and_an_error_are_what_they_are() {
    block_on(async {
        let (mut ours, theirs) = tcp().await.unwrap();
        theirs.set_linger(Some(std::time::Duration::ZERO)).unwrap();
        drop(theirs);
        let error = ours.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{error}");

        let (mut ours, theirs) = UnixStream::pair().unwrap();
        theirs.shutdown(Shutdown::Both).unwrap();
        assert_eq!(ours.read(&mut [0; 8]).await.unwrap(), 0);
        let error = ours.write_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{error}");
        let mut wrapped =
            ForTokio::new(Async::<std::net::TcpStream>::connect(([127, 0, 0, 1], 1)).await.err());
        assert_eq!(wrapped.get_mut().take().unwrap().kind(), io::ErrorKind::ConnectionRefused);
    });
}

#[test]
fn buffered_reads_and_seeks() {
    block_on(async {
        let cursor = futures_lite::io::Cursor::new(b"one\ntwo\nthree".to_vec());
        let mut io = ForTokio::new(cursor);
        let mut line = String::new();
        assert_eq!(io.read_line(&mut line).await.unwrap(), 4);
        assert_eq!(io.seek(SeekFrom::Current(2)).await.unwrap(), 6);
        assert_eq!(io.seek(SeekFrom::Current(2)).await.unwrap(), 8);
        assert_eq!(io.read_line(&mut line).await.unwrap(), 5);
        assert_eq!(line, "one\nthree");
        io.seek(SeekFrom::Current(-1000)).await.expect_err("that is before its beginning");
        assert_eq!(io.stream_position().await.unwrap(), 13);

        let mut io = ForFutures::new(io::Cursor::new(b"one\ntwo\nthree".to_vec()));
        let mut line = String::new();
        futures_lite::AsyncBufReadExt::read_line(&mut io, &mut line).await.unwrap();
        for at in [6, 8] {
            let seek = futures_lite::AsyncSeekExt::seek(&mut io, SeekFrom::Current(2)).await;
            assert_eq!(seek.unwrap(), at);
        }
        let mut last = String::new();
        futures_lite::AsyncBufReadExt::read_line(&mut io, &mut last).await.unwrap();
        assert_eq!((&*line, &*last, io.into_inner().position()), ("one\n", "three", 13));
    });
}

/// A stream that needs one more poll for each seek, as files do.
#[derive(Default)]
struct Slow {
    at: u64,
    to: Option<u64>,
    was_asked: bool,
}

impl AsyncRead for Slow {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.at = self.to.take().unwrap_or(self.at);
        buf.put_slice(&[self.at as u8]);
        self.at += 1;
        Poll::Ready(Ok(()))
    }
}

impl tokio::io::AsyncSeek for Slow {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        let SeekFrom::Start(to) = position else { unreachable!("the test asks for no other") };
        (self.to, self.was_asked) = (Some(to), false);
        Ok(())
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        if self.to.is_some() && !self.was_asked {
            self.was_asked = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.at = self.to.take().unwrap_or(self.at);
        Poll::Ready(Ok(self.at))
    }
}

/// A repeated seek, after a cancelled one and a read, is a new one.
#[test]
fn a_seek_that_is_given_up_is_none() {
    use futures_lite::{AsyncReadExt, AsyncSeekExt};

    block_on(async {
        let mut stream = ForFutures::new(Slow { at: 50, ..Slow::default() });
        assert!(futures_lite::future::poll_once(stream.seek(SeekFrom::Start(0))).await.is_none());
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        assert_eq!(stream.seek(SeekFrom::Start(0)).await.unwrap(), 0);
        stream.read_exact(&mut byte).await.unwrap();
        assert_eq!(byte, [0]);
    });
}
