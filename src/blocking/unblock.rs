//! [`Unblock`]: something that blocks, moved to a thread while it does.

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use async_task::FallibleTask;

use super::bell::{self, Bell};
use super::pipe;
use crate::sync::{self, Mutex};

/// Something that blocks, as an asynchronous stream: [`AsyncRead`](futures::AsyncRead) for what is [`Read`](io::Read),
/// [`AsyncWrite`](futures::AsyncWrite) for what is [`Write`](io::Write), [`AsyncSeek`](futures::AsyncSeek) for what is
/// [`Seek`](io::Seek), and a [`Stream`](futures::Stream) of what an [`Iterator`] gives.
///
/// While it is used it is on one of the [threads that may block](crate::blocking), and bytes or items go through a buffer in between:
///
/// - *Reading* goes on in the background until the buffer is full, or the end is reached. So the position of a file may be further than
///   what was read: mind that before you seek relative to it. And a read of standard input goes on after the value is dropped, and
///   takes what comes next with it: have one `Unblock` of it for the whole of the program.
/// - *Writing* is done in the background. Flush, or close, before you drop the value, or what is in the buffer may be lost.
/// - *To change from one to the other*, or to get at what is inside, waits until the thread has stopped.
///
/// # Examples
///
/// ```
/// use std::fs::{self, File};
/// use futures_lite::{AsyncReadExt, StreamExt};
/// use paceline::{Unblock, block_on, unblock};
///
/// # fn main() -> std::io::Result<()> {
/// block_on(async {
///     let mut manifest = String::new();
///     let file = unblock(|| File::open("Cargo.toml")).await?;
///     Unblock::new(file).read_to_string(&mut manifest).await?;
///     assert!(manifest.contains("paceline"));
///
///     let mut names = Unblock::new(unblock(|| fs::read_dir(".")).await?);
///     while let Some(entry) = names.next().await {
///         println!("{}", entry?.file_name().to_string_lossy());
///     }
///     Ok(())
/// })
/// # }
/// ```
pub struct Unblock<T> {
    pub(super) place: Place<T>,
    pub(super) capacity: Option<usize>,
}

/// Where the value is.
pub(super) enum Place<T> {
    /// Here; `None` if it was taken out, or lost by a panic.
    Here(Option<Box<T>>),
    /// On a thread.
    There(FallibleTask<Back<T>>, Link),
}

/// What comes back from a thread.
pub(super) struct Back<T> {
    pub(super) inner: Box<T>,
    /// How it went, and the position where it was asked for.
    pub(super) result: io::Result<u64>,
}

/// What connects the task with a thread.
pub(super) enum Link {
    /// Nothing: the thread is to stop, or will without being told.
    Cut,
    Reads(pipe::Reader),
    Writes(pipe::Writer),
    /// A [`Taker`](super::items::Taker) of the items of whatever it is.
    Iterates(Box<dyn Any + Send + Sync>),
    Seeks(SeekFrom),
}

/// What the panic says of a closure that panicked; its own panic is another one.
#[derive(Debug)]
struct RecvError;

impl<T> Unblock<T> {
    /// Wraps what blocks.
    ///
    /// ```
    /// let stdin = paceline::Unblock::new(std::io::stdin());
    /// ```
    pub fn new(io: T) -> Unblock<T> {
        Unblock { place: Place::Here(Some(Box::new(io))), capacity: None }
    }

    /// The same with a buffer of this size, in bytes, or in items of an iterator. Without it: 8 MB, of which only what is
    /// used takes memory, or 8192 items.
    ///
    /// ```
    /// let stdout = paceline::Unblock::with_capacity(64 * 1024, std::io::stdout());
    /// ```
    pub fn with_capacity(cap: usize, io: T) -> Unblock<T> {
        Unblock { capacity: Some(cap), ..Unblock::new(io) }
    }

    /// Waits until it is not in use on a thread, and gives access to it. What was written is flushed; an error is dropped.
    ///
    /// ```
    /// use paceline::Unblock;
    /// paceline::block_on(async {
    ///     let mut numbers = Unblock::new(vec![1, 2, 3]);
    ///     assert_eq!(numbers.get_mut().await.len(), 3);
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// If it was closed, or its runtime was shut down while it was on a thread; and if it panicked there.
    pub async fn get_mut(&mut self) -> &mut T {
        self.stop().await;
        match &mut self.place {
            Place::Here(Some(io)) => io,
            _ => taken_out(),
        }
    }

    /// Runs a closure that blocks with it, on a thread, and gives what that returns.
    ///
    /// ```
    /// use std::fs::File;
    /// use paceline::{Unblock, block_on, unblock};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let length = block_on(async {
    ///     let mut file = Unblock::new(unblock(|| File::open("Cargo.toml")).await?);
    ///     file.with_mut(|file| file.metadata()).await
    /// })?.len();
    /// assert!(length > 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If the closure does; then the value is lost. And as [`get_mut`](Unblock::get_mut).
    pub async fn with_mut<R, F>(&mut self, op: F) -> R
    where
        F: FnOnce(&mut T) -> R + Send + 'static,
        R: Send + 'static,
        T: Send + 'static,
    {
        self.stop().await;
        let mut inner = self.take_out();
        let answer = Arc::new(Answer { value: Mutex::new(Ok(None)), bell: Bell::new() });
        let theirs = OnDrop(answer.clone());
        self.send(Link::Cut, async move {
            let value = op(&mut inner);
            *sync::lock(&theirs.0.value) = Ok(Some(value));
            drop(theirs);
            Back { inner, result: Ok(0) }
        });
        let look = || match &mut *sync::lock(&answer.value) {
            Ok(value) => value.take().map(Ok),
            Err(RecvError) => Some(Err(RecvError)),
        };
        let mut look = look;
        let received = poll_fn(|cx| bell::poll(&answer.bell, cx, &mut look)).await;
        received.expect("`Unblock::with_mut()` operation has panicked")
    }

    /// Waits until it is not in use on a thread, and takes it out. What was written is flushed; an error is dropped.
    ///
    /// ```
    /// use paceline::Unblock;
    /// let numbers = Unblock::new(vec![1, 2, 3]);
    /// assert_eq!(paceline::block_on(numbers.into_inner()), [1, 2, 3]);
    /// ```
    ///
    /// # Panics
    ///
    /// As [`get_mut`](Unblock::get_mut).
    pub async fn into_inner(self) -> T {
        let mut this = self;
        this.stop().await;
        *this.take_out()
    }

    async fn stop(&mut self) {
        // An error of what went on in the background is nobody's any more.
        let _ = poll_fn(|cx| self.poll_stop(cx)).await;
    }

    /// Takes it, to have it on a thread.
    pub(super) fn take_out(&mut self) -> Box<T> {
        match &mut self.place {
            Place::Here(Some(_)) => {}
            _ => taken_out(),
        }
        match std::mem::replace(&mut self.place, Place::Here(None)) {
            Place::Here(Some(inner)) => inner,
            _ => unreachable!("it was just seen"),
        }
    }

    /// Has it on a thread, which does this with it.
    pub(super) fn send(&mut self, link: Link, work: impl Future<Output = Back<T>> + Send + 'static)
    where
        T: Send + 'static,
    {
        let task = super::spawn(work, None).unwrap_or_else(|error| panic!("{error}"));
        self.place = Place::There(task.fallible(), link);
    }

    /// Waits until it is back from its thread, whatever that does: a result of that, if there is one.
    pub(super) fn poll_stop(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let Place::There(_, link) = &mut self.place else { return Poll::Ready(Ok(0)) };
        if !matches!(link, Link::Seeks(_)) {
            // The thread sees that nobody is there any more.
            *link = Link::Cut;
        }
        self.poll_back(cx)
    }

    /// Waits until it is back, and gives how it went.
    pub(super) fn poll_back(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let Place::There(task, _) = &mut self.place else { return Poll::Ready(Ok(0)) };
        let back = ready!(Pin::new(task).poll(cx));
        let result;
        (self.place, result) = match back {
            Some(back) => (Place::Here(Some(back.inner)), back.result),
            None => (
                Place::Here(None),
                Err(io::Error::other("the runtime on whose thread it was has been shut down")),
            ),
        };
        Poll::Ready(result)
    }
}

/// What a closure returned, for the task that waits for it.
struct Answer<R> {
    value: Mutex<Result<Option<R>, RecvError>>,
    bell: Bell,
}

/// The thread's side; gone without a value, there is none.
struct OnDrop<R>(Arc<Answer<R>>);

impl<R> Drop for OnDrop<R> {
    fn drop(&mut self) {
        let mut value = sync::lock(&self.0.value);
        if matches!(*value, Ok(None)) {
            *value = Err(RecvError);
        }
        drop(value);
        self.0.bell.ring();
    }
}

#[cold]
fn taken_out() -> ! {
    panic!("inner value was taken out: it was closed or lost by a panic, or its runtime was shut down")
}

impl<T: fmt::Debug> fmt::Debug for Unblock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Unblock");
        match &self.place {
            Place::Here(Some(io)) => text.field("io", io),
            Place::Here(None) => text.field("io", &format_args!("<closed>")),
            Place::There(..) => text.field("io", &format_args!("<blocked>")),
        };
        text.finish()
    }
}
