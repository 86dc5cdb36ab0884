//! [`Ready`]: the wait for what is no descriptor.

use crate::io::Readable;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Waits until what is watched has something to tell; made by the method `ready`.
#[derive(Debug)]
#[must_use = "a wait does nothing unless it is awaited"]
pub struct Ready<'a, T>(Readable<'a, T>);

impl<'a, T> Ready<'a, T> {
    pub(super) fn new(wait: Readable<'a, T>) -> Self {
        Self(wait)
    }
}

impl<T> Future for Ready<'_, T> {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}
