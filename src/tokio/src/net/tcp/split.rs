//! The halves of a TCP stream.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{fmt, io};

use super::stream::TcpStream;
use crate::io::ReadBuf;
use crate::net::halves::halves;

halves!(TcpStream, SocketAddr);

macro_rules! peeks {
    ($half:ty) => {
        impl $half {
            pub fn poll_peek(
                &mut self,
                cx: &mut Context<'_>,
                buf: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<usize>> {
                AsRef::<TcpStream>::as_ref(self).poll_peek(cx, buf)
            }

            pub async fn peek(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                let mut buf = ReadBuf::new(buf);
                poll_fn(|cx| self.poll_peek(cx, &mut buf)).await
            }
        }
    };
}

peeks!(ReadHalf<'_>);
peeks!(OwnedReadHalf);
