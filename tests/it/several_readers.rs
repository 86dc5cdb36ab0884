//! Several tasks read, or write, through one handle: all sleep, and each byte goes to one of them.

use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use futures_lite::{AsyncRead, AsyncReadExt, AsyncWriteExt, future};
use paceline::{Async, Runtime, Task, net};

use crate::setups::{Ping, eventually, for_each_setup, waker_that};

type Reader = Pin<Box<dyn AsyncRead + Send>>;

/// A handle that several tasks read.
struct Shared<T>(Arc<Async<T>>);

impl<T> AsyncRead for Shared<T>
where
    for<'a> &'a T: Read,
{
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self.0).poll_read(cx, buf)
    }
}

/// A stream whose `WouldBlock` proves nothing, because its type is not known.
struct Foreign(UnixStream);

impl Read for &Foreign {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buf)
    }
}

impl AsFd for Foreign {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A stream that is read by its descriptor.
struct Elsewhere(Arc<Async<UnixStream>>);

impl AsyncRead for Elsewhere {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            match self.0.get_ref().read(buf) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready!(self.0.poll_readable(cx))?,
                result => return Poll::Ready(result),
            }
        }
    }
}

/// Returns, for each way to share a stream, its name, so many readers of one stream, and the other end. To be
/// called inside of a runtime.
async fn ways(readers: usize) -> io::Result<Vec<(&'static str, Vec<Reader>, UnixStream)>> {
    fn all<R: AsyncRead + Send + 'static>(readers: usize, reader: impl Fn() -> R) -> Vec<Reader> {
        (0..readers).map(|_| Box::pin(reader()) as Reader).collect()
    }
    let [clones, shared, foreign, elsewhere] = [(); 4].map(|()| UnixStream::pair().unwrap());
    let clone = net::unix::UnixStream::try_from(clones.0)?;
    let (share, stranger) = (Arc::new(Async::new(shared.0)?), Arc::new(Async::new(Foreign(foreign.0))?));
    let descriptor = Arc::new(Async::new(elsewhere.0)?);
    Ok(vec![
        ("clones", all(readers, || clone.clone()), clones.1),
        ("one handle", all(readers, || Shared(share.clone())), shared.1),
        ("a handle of unknown type", all(readers, || Shared(stranger.clone())), foreign.1),
        ("readiness", all(readers, || Elsewhere(descriptor.clone())), elsewhere.1),
    ])
}

async fn one_byte(mut reader: Reader) -> u8 {
    let mut byte = [0];
    reader.read_exact(&mut byte).await.expect("there is a byte");
    byte[0]
}

/// Spawns the futures, and returns their tasks and a count of all their polls.
fn spawn_counted<T: Send + 'static>(
    runtime: &Runtime,
    futures: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> (Vec<Task<T>>, Arc<AtomicUsize>) {
    let polls = Arc::<AtomicUsize>::default();
    let counted = futures.into_iter().map(|future| {
        let (mut future, polls) = (Box::pin(future), polls.clone());
        poll_fn(move |cx| {
            polls.fetch_add(1, Ordering::Relaxed);
            future.as_mut().poll(cx)
        })
    });
    (counted.map(|future| runtime.spawn(future)).collect(), polls)
}

/// Waits until all tasks sleep, and fails if one of them is polled again and again.
#[track_caller]
fn assert_asleep(ping: &mut Ping, tasks: usize, polls: &AtomicUsize, what: &str) {
    eventually("each task is polled", || polls.load(Ordering::Relaxed) >= tasks);
    // A task is polled more than once if two threads come to the source at once, or if many tasks wait there.
    let mut sleep = || {
        let before = polls.load(Ordering::Relaxed);
        (0..20).for_each(|_| _ = ping.ping());
        polls.load(Ordering::Relaxed) == before
    };
    assert!((0..20).any(|_| sleep()), "{what}: {tasks} tasks were polled {polls:?} times, and go on");
}

/// Fails if a reader that finds another one at the source wakes that one to take its place.
#[test]
fn all_readers_of_one_handle_sleep_and_each_byte_goes_to_one_of_them() {
    for_each_setup(|runtime| {
        let mut ping = Ping::new(runtime);
        for readers in [2, 3, 30] {
            for (what, handles, mut peer) in runtime.block_on(ways(readers)).unwrap() {
                let (tasks, polls) = spawn_counted(runtime, handles.into_iter().map(one_byte));
                assert_asleep(&mut ping, readers, &polls, what);
                let sent: Vec<_> = (0..readers as u8).collect();
                for number in &sent {
                    peer.write_all(&[*number]).unwrap();
                    let ended = || tasks.iter().filter(|task| task.is_finished()).count();
                    eventually("a reader has the byte", || ended() == usize::from(*number) + 1);
                }
                let mut read: Vec<_> = tasks.into_iter().map(future::block_on).collect();
                read.sort_unstable();
                assert_eq!(read, sent, "{what}");
            }
        }
    });
}

/// The same for writers: each waits for room.
#[test]
fn all_writers_of_one_handle_sleep() {
    for_each_setup(|runtime| {
        let mut ping = Ping::new(runtime);
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let ours = runtime.block_on(async { net::unix::UnixStream::try_from(ours) }).unwrap();
        let len = 1 << 20;
        let writers = (0..3).map(|_| {
            let mut ours = ours.clone();
            async move { ours.write_all(&vec![0; len]).await.unwrap() }
        });
        let (tasks, polls) = spawn_counted(runtime, writers);
        assert_asleep(&mut ping, tasks.len(), &polls, "writers");
        theirs.read_exact(&mut vec![0; 3 * len]).unwrap();
        tasks.into_iter().for_each(future::block_on);
    });
}

/// The reader that an event woke is dropped before it is polled. Fails if an event wakes only one reader.
#[test]
fn a_byte_is_not_lost_with_the_reader_that_it_woke() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            for (what, readers, mut peer) in ways(3).await.unwrap() {
                let (tell, told) = async_channel::unbounded();
                let mut reads: Vec<_> =
                    readers.into_iter().map(|reader| Some(Box::pin(one_byte(reader)))).collect();
                for (number, read) in reads.iter_mut().enumerate() {
                    let tell = tell.clone();
                    let waker = waker_that(move || tell.try_send(number).unwrap());
                    let polled = read.as_mut().unwrap().as_mut().poll(&mut Context::from_waker(&waker));
                    assert!(polled.is_pending());
                }
                peer.write_all(b"x").unwrap();
                let woken = told.recv().await.unwrap();
                reads[woken] = None;
                let mut another = woken;
                while another == woken {
                    another = told.recv().await.unwrap();
                }
                let byte = reads[another].take().unwrap().await;
                assert_eq!(byte, b'x', "{what}");
            }
        });
    });
}

/// Each reader in turn is dropped while all of them wait.
#[test]
fn a_reader_that_gave_up_stands_in_no_other_reader_s_way() {
    for_each_setup(|runtime| {
        for dropped in 0..3 {
            for (what, readers, mut peer) in runtime.block_on(ways(3)).unwrap() {
                let (mut tasks, polls) = spawn_counted(runtime, readers.into_iter().map(one_byte));
                eventually("each task is polled", || polls.load(Ordering::Relaxed) >= 3);
                future::block_on(tasks.remove(dropped).cancel());
                peer.write_all(b"ab").unwrap();
                let mut read: Vec<_> = tasks.into_iter().map(future::block_on).collect();
                read.sort_unstable();
                assert_eq!(read, b"ab", "{what}");
            }
        }
    });
}
