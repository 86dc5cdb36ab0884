//! [`Unblock`]: a blocking value, moved to a thread while it is used.

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use async_task::FallibleTask;
use futures::channel::oneshot;

use super::pipe;
use crate::sync::{self, Mutex};

/// A blocking value as an asynchronous stream: [`AsyncRead`](futures::AsyncRead) for a [`Read`](io::Read),
/// [`AsyncWrite`](futures::AsyncWrite) for a [`Write`](io::Write), [`AsyncSeek`](futures::AsyncSeek) for a
/// [`Seek`](io::Seek), and a [`Stream`](futures::Stream) of the items of an [`Iterator`].
///
/// While the value is used, it is on one of the [threads that may block](crate::blocking), and bytes or items
/// pass through a buffer:
///
/// - *Reading* continues in the background until the buffer is full, or the end is reached. So the position
///   of a file may be beyond the bytes that were read: mind that before you seek relative to it. A read of
///   standard input continues after the value is dropped, and takes the next input with it: use one `Unblock`
///   of it for the whole program.
/// - *Writing* is done in the background. Flush, or close, before you drop the value, or the contents of the
///   buffer may be lost.
/// - *Changing from reading to writing* or back, or getting at the value inside, waits until the thread has
///   stopped.
/// - *If no thread can be started*, a read, a write or a seek is an error, and may be retried; the next item
///   of an iterator is a panic.
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
    pub(super) place: IoPlace<T>,
    pub(super) capacity: Option<usize>,
}

/// Where the value is.
pub(super) enum IoPlace<T> {
    /// Here; `None` if the value was taken out, or lost by a panic.
    Here(Option<Box<T>>),
    /// On a thread.
    There(FallibleTask<Back<T>>, Link),
    /// Lost with its thread, which could not continue.
    Lost,
}

/// A value that has returned from a thread.
pub(super) struct Back<T> {
    pub(super) inner: Box<T>,
    /// The result of the work, with the position for a seek.
    pub(super) result: io::Result<u64>,
}

/// The connection between the task and the thread.
pub(super) enum Link {
    /// None: the thread has to stop, or will stop by itself.
    Cut,
    Reads(pipe::Reader),
    Writes(pipe::Writer),
    /// A [`Taker`](super::items::Taker) of the items of the iterator, whatever their type.
    Iterates(Box<dyn Any + Send + Sync>),
    Seeks(SeekFrom),
}

impl<T> IoPlace<T> {
    /// Panics, because the value is not here and will not be.
    #[cold]
    fn panic_missing(&self) -> ! {
        match self {
            Self::Lost => panic!("{}", lost()),
            _ => panic!(
                "inner value was taken out: it was closed or lost by a panic, or its runtime was shut down"
            ),
        }
    }
}

impl<T> Unblock<T> {
    /// Wraps a blocking value.
    ///
    /// ```
    /// let stdin = paceline::Unblock::new(std::io::stdin());
    /// ```
    pub fn new(io: T) -> Unblock<T> {
        Unblock { place: IoPlace::Here(Some(Box::new(io))), capacity: None }
    }

    /// Wraps a blocking value, with a buffer of this size, in bytes, or in items of an iterator. The default
    /// is 8 MB, of which only the used part takes memory, or 8192 items.
    ///
    /// ```
    /// let stdout = paceline::Unblock::with_capacity(64 * 1024, std::io::stdout());
    /// ```
    pub fn with_capacity(cap: usize, io: T) -> Unblock<T> {
        Unblock { capacity: Some(cap), ..Unblock::new(io) }
    }

    /// Waits until the value is not in use on a thread, and returns a reference to it. Written data is
    /// flushed; an error is dropped.
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
    /// Panics if the value was closed, or its runtime was shut down while it was on a thread; and if it
    /// panicked there.
    pub async fn get_mut(&mut self) -> &mut T {
        self.stop().await;
        match &mut self.place {
            IoPlace::Here(Some(io)) => io,
            place => place.panic_missing(),
        }
    }

    /// Waits until the value is not in use on a thread, then runs a blocking closure with it, on a thread,
    /// and returns the result. Written data is flushed before; an error of that is dropped.
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
    /// Panics if the closure does; then the value is lost. Panics if there is no thread and none can be
    /// started; then the value is kept. Panics as [`get_mut`](Unblock::get_mut).
    pub async fn with_mut<R, F>(&mut self, op: F) -> R
    where
        F: FnOnce(&mut T) -> R + Send + 'static,
        R: Send + 'static,
        T: Send + 'static,
    {
        self.stop().await;
        let (tell, told) = oneshot::channel();
        let sent = self.send(Link::Cut, move |mut inner| async move {
            // Fails if the task does not wait any more.
            let _ = tell.send(op(&mut inner));
            Back { inner, result: Ok(0) }
        });
        sent.unwrap_or_else(|error| panic!("{error}"));
        // The text is that of the `blocking` crate, which ends with the error of its own channel.
        told.await.unwrap_or_else(|_| panic!("`Unblock::with_mut()` operation has panicked: RecvError"))
    }

    /// Waits until the value is not in use on a thread, and takes it out. Written data is flushed; an error
    /// is dropped.
    ///
    /// ```
    /// use paceline::Unblock;
    /// let numbers = Unblock::new(vec![1, 2, 3]);
    /// assert_eq!(paceline::block_on(numbers.into_inner()), [1, 2, 3]);
    /// ```
    ///
    /// # Panics
    ///
    /// Panics as [`get_mut`](Unblock::get_mut).
    pub async fn into_inner(self) -> T {
        let mut this = self;
        this.stop().await;
        *this.take_out()
    }

    /// Waits until the value is back from its thread, and drops an error of the work there.
    async fn stop(&mut self) {
        // An error of the work in the background is dropped: the caller asked for none.
        let _ = poll_fn(|cx| self.poll_stop(cx)).await;
    }

    /// Takes the value out, to move it to a thread. Panics if it is not here.
    pub(super) fn take_out(&mut self) -> Box<T> {
        match &mut self.place {
            IoPlace::Here(inner @ Some(_)) => inner.take().expect("it was just seen"),
            place => place.panic_missing(),
        }
    }

    /// Sends the value to a thread, which runs `work` with it. `link` is this side's end of the connection to
    /// it. Panics if the value is not here.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no thread and none can be started. Then the value stays here.
    pub(super) fn send<W>(
        &mut self,
        link: Link,
        work: impl FnOnce(Box<T>) -> W + Send + 'static,
    ) -> io::Result<()>
    where
        T: Send + 'static,
        W: Future<Output = Back<T>> + Send + 'static,
    {
        let kept = Arc::new(Mutex::new(Some(self.take_out())));
        let sent = kept.clone();
        let begin = async move {
            let inner = sync::lock(&sent).take().expect("the sender takes it back only if this never begins");
            work(inner).await
        };
        match super::spawn(begin, None) {
            Ok(task) => {
                self.place = IoPlace::There(task.fallible(), link);
                Ok(())
            }
            Err(error) => {
                self.place = IoPlace::Here(sync::lock(&kept).take());
                // The system's kind would be `WouldBlock`, which means something else to callers.
                Err(io::Error::other(error))
            }
        }
    }

    /// Checks that the value is not lost. A value that was closed counts as present.
    ///
    /// # Errors
    ///
    /// Returns an error if the value was lost with its thread.
    pub(super) fn check_present(&self) -> io::Result<()> {
        if matches!(self.place, IoPlace::Lost) { Err(lost()) } else { Ok(()) }
    }

    /// Stops the work in the background, and waits until the value is back from its thread, with all that was
    /// written flushed. A seek or a closure goes on to its end. Returns what
    /// [`poll_back`](Self::poll_back) returns.
    pub(super) fn poll_stop(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        self.check_present()?;
        let IoPlace::There(_, link) = &mut self.place else { return Poll::Ready(Ok(0)) };
        if !matches!(link, Link::Seeks(_)) {
            // The thread sees that the other side is gone, and stops.
            *link = Link::Cut;
        }
        self.poll_back(cx)
    }

    /// Waits until the work has ended by itself and the value is back. Returns the result of the work; zero
    /// if the value was here. If the value is lost with its thread, returns an error. Panics if the work has
    /// panicked.
    pub(super) fn poll_back(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        self.check_present()?;
        let IoPlace::There(task, _) = &mut self.place else { return Poll::Ready(Ok(0)) };
        let back = ready!(Pin::new(task).poll(cx));
        let result;
        (self.place, result) = match back {
            Some(back) => (IoPlace::Here(Some(back.inner)), back.result),
            None => (IoPlace::Lost, Err(lost())),
        };
        Poll::Ready(result)
    }
}

/// Returns the error for a value that was lost with its thread.
fn lost() -> io::Error {
    io::Error::other(
        "the value is lost with its thread: the runtime was shut down, or no thread could be started to go on",
    )
}

impl<T: fmt::Debug> fmt::Debug for Unblock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Unblock");
        match &self.place {
            IoPlace::Here(Some(io)) => text.field("io", io),
            IoPlace::Here(None) => text.field("io", &format_args!("<closed>")),
            IoPlace::There(..) => text.field("io", &format_args!("<blocked>")),
            IoPlace::Lost => text.field("io", &format_args!("<lost>")),
        };
        text.finish()
    }
}
