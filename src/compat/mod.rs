//! Adapters between this crate and others: see each file.

/// The number of bytes of a caller's memory that are zeroed for one read of a stream that cannot read into
/// uninitialized memory. Without a limit, a caller that reads small pieces into a large buffer, and does not
/// track what is initialized, would pay for zeroing the whole buffer each time.
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
const ZEROED: usize = 32 * 1024;

/// Implements writing for a wrapper by its inner stream. `$stream` returns the stream for operations that
/// move its position; a flush does not.
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
macro_rules! forward_writes {
    ($stream:ident) => {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
            self.$stream().poll_write(cx, buf)
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.$stream().poll_write_vectored(cx, bufs)
        }

        fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.get_pin_mut().poll_flush(cx)
        }
    };
}

#[cfg(feature = "macros")]
pub mod attributes;
#[cfg(feature = "hyper")]
#[cfg_attr(docsrs, doc(cfg(feature = "hyper")))]
pub mod hyper;
mod spawn;
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub mod tokio_context;
#[cfg(feature = "tokio-io")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio-io")))]
pub mod tokio_io;
