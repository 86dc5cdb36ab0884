//! [`Unblock`] as the streams of `futures`.

use std::future::poll_fn;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::{AsyncRead, AsyncSeek, AsyncWrite, Stream};

use super::items::{Taker, items};
use super::pipe::{Reader, Writer, pipe};
use super::unblock::{Back, IoPlace, Link, Unblock};

/// Default size of the buffer, in bytes.
const BYTES: usize = 8 << 20;
/// Default size of the buffer, in items.
const ITEMS: usize = 8 << 10;

impl<T: Iterator + Send + 'static> Stream for Unblock<T>
where
    T::Item: Send + 'static,
{
    type Item = T::Item;

    /// Puts the iterator on a thread first, if it is here. At its end, waits until it is back. Panics if the
    /// iterator is lost while on a thread, because the runtime was shut down: items may be missing then.
    /// Panics, too, if the iterator has panicked, if it was taken out, or if no thread can be started.
    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T::Item>> {
        let this = self.get_mut();
        this.check_present().unwrap_or_else(|error| panic!("{error}"));
        loop {
            match &mut this.place {
                IoPlace::There(_, Link::Iterates(taker)) => {
                    let taker =
                        taker.downcast_mut::<Taker<T::Item>>().expect("an iterator has one kind of items");
                    let next = ready!(taker.poll_take(cx));
                    if next.is_none() {
                        // Resumes the iterator's panic, if that was the end; otherwise puts the iterator
                        // back.
                        ready!(this.poll_back(cx)).unwrap_or_else(|error| panic!("{error}"));
                    }
                    return Poll::Ready(next);
                }
                IoPlace::There(..) => drop(ready!(this.poll_stop(cx))),
                // The thread puts items into a queue until there are no more, or this side has dropped
                // the queue.
                IoPlace::Here(_) | IoPlace::Lost => {
                    let (taker, mut maker) = items(this.capacity.unwrap_or(ITEMS));
                    let sent = this.send(Link::Iterates(Box::new(taker)), move |mut inner| async move {
                        for item in &mut inner {
                            let mut item = Some(item);
                            if !poll_fn(|cx| maker.poll_put(&mut item, cx)).await {
                                break;
                            }
                        }
                        Back { inner, result: Ok(0) }
                    });
                    sent.unwrap_or_else(|error| panic!("{error}"));
                }
            }
        }
    }
}

impl<T: Read + Send + 'static> AsyncRead for Unblock<T> {
    /// Puts the source on a thread first, if it is here; waits for other work there to stop, and returns its
    /// error. At the end of the source, and after an error, waits until it is back. Does nothing for an empty
    /// buffer. Panics if the value was closed.
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        this.check_present()?;
        loop {
            match &mut this.place {
                IoPlace::There(_, Link::Reads(reader)) => {
                    let Some(bytes) = ready!(reader.poll_bytes(cx)) else {
                        return this.poll_back(cx).map_ok(|_| 0);
                    };
                    let len = bytes.len().min(buf.len());
                    buf[..len].copy_from_slice(&bytes[..len]);
                    reader.take(len);
                    return Poll::Ready(Ok(len));
                }
                IoPlace::There(..) => drop(ready!(this.poll_stop(cx))?),
                IoPlace::Here(_) | IoPlace::Lost => {
                    let (reader, mut writer) = pipe(this.capacity.unwrap_or(BYTES));
                    this.send(Link::Reads(reader), move |mut inner| async move {
                        let result = until_the_end(|cx| fill(&mut writer, &mut *inner, cx)).await;
                        Back { inner, result: result.map(|()| 0) }
                    })?;
                }
            }
        }
    }
}

/// Repeats `step` until it returns zero, or an error.
async fn until_the_end(mut step: impl FnMut(&Context<'_>) -> Poll<io::Result<usize>>) -> io::Result<()> {
    while poll_fn(|cx| step(cx)).await? > 0 {}
    Ok(())
}

/// Waits for room in the pipe, and fills it by one read. Returns how many bytes were read; zero at the end of
/// the source, or if the other side is gone.
fn fill(writer: &mut Writer, from: &mut impl Read, cx: &Context<'_>) -> Poll<io::Result<usize>> {
    let Some(room) = ready!(writer.poll_room(cx)) else { return Poll::Ready(Ok(0)) };
    let len = loop {
        match from.read(room) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    };
    writer.put(len);
    Poll::Ready(Ok(len))
}

impl<T: Write + Send + 'static> AsyncWrite for Unblock<T> {
    /// Puts the sink on a thread first, if it is here; waits for other work there to stop, and returns its
    /// error. Then only copies into the pipe, once that has room: the error of a write is returned by a
    /// later call. Returns zero if the sink has taken no more. Does nothing for an empty buffer. Panics if
    /// the value was closed.
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        this.check_present()?;
        loop {
            match &mut this.place {
                IoPlace::There(_, Link::Writes(writer)) => {
                    let Some(room) = ready!(writer.poll_room(cx)) else {
                        // The thread has stopped before it was told to: the write has failed, and the error
                        // is due now.
                        ready!(this.poll_back(cx))?;
                        return Poll::Ready(Ok(0));
                    };
                    let len = room.len().min(buf.len());
                    room[..len].copy_from_slice(&buf[..len]);
                    writer.put(len);
                    return Poll::Ready(Ok(len));
                }
                IoPlace::There(..) => drop(ready!(this.poll_stop(cx))?),
                IoPlace::Here(_) | IoPlace::Lost => {
                    let (mut reader, writer) = pipe(this.capacity.unwrap_or(BYTES));
                    this.send(Link::Writes(writer), move |mut inner| async move {
                        let written = until_the_end(|cx| drain(&mut reader, &mut *inner, cx)).await;
                        // After an error as well. The error of the write is the one that is returned.
                        let flushed = inner.flush();
                        Back { inner, result: written.and(flushed).map(|()| 0) }
                    })?;
                }
            }
        }
    }

    /// Waits until the thread has written and flushed everything, and has returned the sink. Returns the
    /// error of the write or flush that failed. Does nothing if the sink is here.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A value that is here was flushed when it came back.
        self.get_mut().poll_stop(cx).map_ok(|_| ())
    }

    /// Waits until the value is back from its thread, with all that was written flushed, then drops it here.
    /// After an error, the value is kept, unless its thread has lost it.
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_stop(cx))?;
        this.place = IoPlace::Here(None);
        Poll::Ready(Ok(()))
    }
}

/// Waits for bytes in the pipe, and makes one write of them. Returns how many bytes were written; zero at the
/// end of the pipe, or if the sink takes no more.
fn drain(reader: &mut Reader, to: &mut impl Write, cx: &Context<'_>) -> Poll<io::Result<usize>> {
    let Some(bytes) = ready!(reader.poll_bytes(cx)) else { return Poll::Ready(Ok(0)) };
    let len = loop {
        match to.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    };
    reader.take(len);
    Poll::Ready(Ok(len))
}

impl<T: Seek + Send + 'static> AsyncSeek for Unblock<T> {
    /// Seeks on a thread, after other work there has stopped: an error of that is returned, and this does not
    /// seek. An earlier seek to elsewhere comes to its end first; an earlier one to the same position, which
    /// was not polled to its end, counts as this one. Panics if the value was closed.
    fn poll_seek(self: Pin<&mut Self>, cx: &mut Context<'_>, pos: SeekFrom) -> Poll<io::Result<u64>> {
        let this = self.get_mut();
        this.check_present()?;
        loop {
            match &mut this.place {
                IoPlace::There(_, Link::Seeks(asked)) => {
                    let asked = *asked;
                    let position = ready!(this.poll_back(cx))?;
                    // Otherwise another seek was begun, and was never polled again.
                    if asked == pos {
                        return Poll::Ready(Ok(position));
                    }
                }
                IoPlace::There(..) => drop(ready!(this.poll_stop(cx))?),
                IoPlace::Here(_) | IoPlace::Lost => {
                    this.send(Link::Seeks(pos), move |mut inner| async move {
                        let result = inner.seek(pos);
                        Back { inner, result }
                    })?
                }
            }
        }
    }
}
