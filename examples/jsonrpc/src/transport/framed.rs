//! Messages on a byte stream, in one of two framings, which the first incoming byte selects.
//!
//! | framing | a message is | its first byte |
//! |---|---|---|
//! | [`Framing::Lines`] | JSON without a newline, and a newline | one of JSON's, never 0 |
//! | [`Framing::Lengths`] | length in four big-endian bytes; then JSON | 0, as messages are below 16 MiB |
//!
//! Answers have the framing of the first incoming message.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use paceline::prelude::*;

use crate::Limits;
use crate::peer::Peer;
use crate::server::{Shares, Stream};
use crate::session::{self, Writer};
use crate::transport::framed_reader::{FramedReader, KEEP};

/// How messages are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Each is a line.
    Lines,
    /// Each begins with its length.
    Lengths,
}

pub(crate) struct FramedWriter<W> {
    stream: W,
    buf: Vec<u8>,
    has_lengths: Arc<AtomicBool>,
}

/// Returns both halves. A side that waits for the first message does not choose the framing.
pub(crate) fn framed<S: Clone>(
    stream: &S,
    framing: Option<Framing>,
    limits: &Limits,
) -> (FramedReader<S>, FramedWriter<S>) {
    let has_lengths = Arc::new(AtomicBool::new(framing == Some(Framing::Lengths)));
    let reader = FramedReader::new(stream.clone(), framing, limits, has_lengths.clone());
    (reader, FramedWriter { stream: stream.clone(), buf: Vec::new(), has_lengths })
}

impl<W: AsyncWrite + Unpin + Send + 'static> Writer for FramedWriter<W> {
    async fn put(&mut self, message: String) -> io::Result<()> {
        if self.has_lengths.load(Ordering::Relaxed) {
            let len = u32::try_from(message.len()).map_err(io::Error::other)?;
            self.buf.extend(len.to_be_bytes());
            self.buf.extend(message.into_bytes());
        } else {
            // Between values a newline is a space; JSON strings contain none.
            self.buf.extend(message.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }));
            self.buf.push(b'\n');
        }
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.buf).await?;
        self.buf.clear();
        self.buf.shrink_to(KEEP);
        Ok(())
    }

    async fn close(&mut self) -> io::Result<()> {
        self.stream.close().await
    }
}

/// Serves a stream in the framing of its client's first message.
pub(crate) async fn serve(stream: impl Stream, shared: Shares) -> io::Result<()> {
    let Shares { dispatcher, stop, .. } = shared.clone();
    let (reader, writer) = framed(&stream, None, &dispatcher.limits);
    let peer = Peer::new(&dispatcher.limits);
    session::run(reader, writer, peer, dispatcher, stop.map(drop)).await
}
