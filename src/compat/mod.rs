//! How paceline fits what others have made: see each file.

/// So much of a caller's memory is zeroed for one read of a stream that cannot take it as it is. Who reads little at a time into a
/// large buffer, and forgets between the reads what was zeroed, would pay for all of it each time.
#[cfg(any(feature = "hyper", feature = "tokio-io"))]
const ZEROED: usize = 32 * 1024;

/// Has what is around a stream write as the stream inside. `$stream` gives that for what moves its position, which a flush does not.
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
