//! [`Unblock`] as the streams of `futures`.

use std::future::poll_fn;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::{AsyncRead, AsyncSeek, AsyncWrite, Stream};

use super::items::{Taker, items};
use super::pipe::{Reader, Writer, pipe};
use super::unblock::{Back, Link, Place, Unblock};

/// Bytes in between, if nothing is said.
const BYTES: usize = 8 << 20;
/// Items in between, if nothing is said.
const ITEMS: usize = 8 << 10;

impl<T: Iterator + Send + 'static> Stream for Unblock<T>
where
    T::Item: Send + 'static,
{
    type Item = T::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T::Item>> {
        let this = self.get_mut();
        loop {
            match &mut this.place {
                Place::There(_, Link::Iterates(taker)) => {
                    let taker =
                        taker.downcast_mut::<Taker<T::Item>>().expect("an iterator has one kind of items");
                    let next = ready!(taker.poll_take(cx));
                    if next.is_none() {
                        // For its panic, if that is why; and it is dropped where it came from.
                        let _ = ready!(this.poll_back(cx));
                    }
                    return Poll::Ready(next);
                }
                Place::There(..) => drop(ready!(this.poll_stop(cx))),
                Place::Here(_) => this.iterate(),
            }
        }
    }
}

impl<T: Iterator + Send + 'static> Unblock<T>
where
    T::Item: Send + 'static,
{
    fn iterate(&mut self) {
        let mut inner = self.take_out();
        let (taker, mut maker) = items(self.capacity.unwrap_or(ITEMS));
        let work = async move {
            for item in &mut inner {
                let mut item = Some(item);
                if !poll_fn(|cx| maker.poll_put(&mut item, cx)).await {
                    break;
                }
            }
            Back { inner, result: Ok(0) }
        };
        self.send(Link::Iterates(Box::new(taker)), work);
    }
}

impl<T: Read + Send + 'static> AsyncRead for Unblock<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            match &mut this.place {
                Place::There(_, Link::Reads(reader)) => {
                    let Some(bytes) = ready!(reader.poll_bytes(cx)) else {
                        return this.poll_back(cx).map_ok(|_| 0);
                    };
                    let len = bytes.len().min(buf.len());
                    buf[..len].copy_from_slice(&bytes[..len]);
                    reader.take(len);
                    return Poll::Ready(Ok(len));
                }
                Place::There(..) => drop(ready!(this.poll_stop(cx))?),
                Place::Here(_) => this.read(),
            }
        }
    }
}

impl<T: Read + Send + 'static> Unblock<T> {
    fn read(&mut self) {
        let mut inner = self.take_out();
        let (reader, mut writer) = pipe(self.capacity.unwrap_or(BYTES));
        let work = async move {
            let result = until_the_end(|cx| fill(&mut writer, &mut *inner, cx)).await;
            Back { inner, result: result.map(|()| 0) }
        };
        self.send(Link::Reads(reader), work);
    }
}

/// Does it again and again, until it gives zero, or an error.
async fn until_the_end(mut step: impl FnMut(&Context<'_>) -> Poll<io::Result<usize>>) -> io::Result<()> {
    while poll_fn(|cx| step(cx)).await? > 0 {}
    Ok(())
}

/// Reads into the pipe. Zero is the end, of what is read or of whoever wants it.
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
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        loop {
            match &mut this.place {
                Place::There(_, Link::Writes(writer)) => {
                    let Some(room) = ready!(writer.poll_room(cx)) else {
                        // The thread has stopped before it was told: by an error, which is due now.
                        ready!(this.poll_back(cx))?;
                        return Poll::Ready(Ok(0));
                    };
                    let len = room.len().min(buf.len());
                    room[..len].copy_from_slice(&buf[..len]);
                    writer.put(len);
                    return Poll::Ready(Ok(len));
                }
                Place::There(..) => drop(ready!(this.poll_stop(cx))?),
                Place::Here(_) => this.write(),
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What is here was flushed when it came back.
        self.get_mut().poll_stop(cx).map_ok(|_| ())
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_stop(cx))?;
        this.place = Place::Here(None);
        Poll::Ready(Ok(()))
    }
}

impl<T: Write + Send + 'static> Unblock<T> {
    fn write(&mut self) {
        let mut inner = self.take_out();
        let (mut reader, writer) = pipe(self.capacity.unwrap_or(BYTES));
        let work = async move {
            let written = until_the_end(|cx| drain(&mut reader, &mut *inner, cx)).await;
            // After an error as well, which is the one that is told of.
            let flushed = inner.flush();
            Back { inner, result: written.and(flushed).map(|()| 0) }
        };
        self.send(Link::Writes(writer), work);
    }
}

/// Writes what is in the pipe. Zero is the end, of what there is or of what takes it.
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
    fn poll_seek(self: Pin<&mut Self>, cx: &mut Context<'_>, pos: SeekFrom) -> Poll<io::Result<u64>> {
        let this = self.get_mut();
        loop {
            match &mut this.place {
                Place::There(_, Link::Seeks(asked)) => {
                    let asked = *asked;
                    let position = ready!(this.poll_back(cx))?;
                    // Else another seek was begun, and never asked for again.
                    if asked == pos {
                        return Poll::Ready(Ok(position));
                    }
                }
                Place::There(..) => drop(ready!(this.poll_stop(cx))?),
                Place::Here(_) => {
                    let mut inner = this.take_out();
                    this.send(Link::Seeks(pos), async move {
                        let result = inner.seek(pos);
                        Back { inner, result }
                    });
                }
            }
        }
    }
}
