//! The halves of a stream, borrowed and owned. Each kind of stream has types of its own, with the same names.

/// The halves of `$stream`, whose addresses are `$addr`.
macro_rules! halves {
    ($stream:ident, $addr:ty) => {
        #[derive(Debug)]
        pub struct ReadHalf<'a>(&'a $stream);

        #[derive(Debug)]
        pub struct WriteHalf<'a>(&'a $stream);

        #[derive(Debug)]
        pub struct OwnedReadHalf {
            inner: Arc<$stream>,
        }

        /// Dropping it shuts that side down, unless that was done or is not wanted.
        #[derive(Debug)]
        pub struct OwnedWriteHalf {
            inner: Arc<$stream>,
            shutdown_on_drop: bool,
        }

        /// The two halves do not belong to one stream.
        #[derive(Debug)]
        pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

        impl $stream {
            pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
                (ReadHalf(self), WriteHalf(self))
            }

            pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
                OwnedReadHalf::of(self)
            }
        }

        impl OwnedReadHalf {
            fn of(stream: $stream) -> (Self, OwnedWriteHalf) {
                let inner = Arc::new(stream);
                (Self { inner: inner.clone() }, OwnedWriteHalf { inner, shutdown_on_drop: true })
            }

            pub fn reunite(self, other: OwnedWriteHalf) -> Result<$stream, ReuniteError> {
                if !Arc::ptr_eq(&self.inner, &other.inner) {
                    return Err(ReuniteError(self, other));
                }
                other.forget();
                Ok(Arc::into_inner(self.inner).expect("a stream has two halves"))
            }
        }

        impl OwnedWriteHalf {
            pub fn reunite(self, other: OwnedReadHalf) -> Result<$stream, ReuniteError> {
                other.reunite(self)
            }

            pub fn forget(mut self) {
                self.shutdown_on_drop = false;
            }

            fn close(&mut self) -> io::Result<()> {
                self.inner.close()?;
                self.shutdown_on_drop = false;
                Ok(())
            }
        }

        impl Drop for OwnedWriteHalf {
            fn drop(&mut self) {
                if self.shutdown_on_drop {
                    // A drop cannot return an error.
                    let _ = self.inner.close();
                }
            }
        }

        impl fmt::Display for ReuniteError {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tried to reunite halves that are not from the same socket")
            }
        }

        impl std::error::Error for ReuniteError {}

        $crate::net::halves::read_half!(ReadHalf<'_>, 0, $stream, $addr);
        $crate::net::halves::read_half!(OwnedReadHalf, inner, $stream, $addr);
        $crate::net::halves::write_half!(WriteHalf<'_>, 0, $stream, $addr, |this| this.0.close());
        $crate::net::halves::write_half!(OwnedWriteHalf, inner, $stream, $addr, |this| this.close());
    };
}

/// The methods of both kinds of halves.
macro_rules! half {
    ($half:ty, $field:tt, $stream:ident, $addr:ty) => {
        impl $half {
            pub async fn ready(&self, interest: crate::io::Interest) -> io::Result<crate::io::Ready> {
                self.$field.ready(interest).await
            }

            pub fn peer_addr(&self) -> io::Result<$addr> {
                self.$field.peer_addr()
            }

            pub fn local_addr(&self) -> io::Result<$addr> {
                self.$field.local_addr()
            }
        }

        impl AsRef<$stream> for $half {
            fn as_ref(&self) -> &$stream {
                &self.$field
            }
        }
    };
}

macro_rules! read_half {
    ($half:ty, $field:tt, $stream:ident, $addr:ty) => {
        $crate::net::halves::half!($half, $field, $stream, $addr);
        $crate::net::streams::reads!($half, |this| this.$field);

        impl $half {
            pub async fn readable(&self) -> io::Result<()> {
                self.$field.readable().await
            }

            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.$field.try_read(buf)
            }

            pub fn try_read_vectored(&self, bufs: &mut [io::IoSliceMut<'_>]) -> io::Result<usize> {
                self.$field.try_read_vectored(bufs)
            }

            #[cfg(feature = "io-util")]
            pub fn try_read_buf<B: bytes::BufMut>(&self, buf: &mut B) -> io::Result<usize> {
                self.$field.try_read_buf(buf)
            }
        }
    };
}

macro_rules! write_half {
    ($half:ty, $field:tt, $stream:ident, $addr:ty, |$this:ident| $close:expr) => {
        $crate::net::halves::half!($half, $field, $stream, $addr);
        $crate::net::streams::writes!($half, |this| this.$field, |$this| $close);

        impl $half {
            pub async fn writable(&self) -> io::Result<()> {
                self.$field.writable().await
            }

            pub fn try_write(&self, buf: &[u8]) -> io::Result<usize> {
                self.$field.try_write(buf)
            }

            pub fn try_write_vectored(&self, bufs: &[io::IoSlice<'_>]) -> io::Result<usize> {
                self.$field.try_write_vectored(bufs)
            }
        }
    };
}

pub(super) use {half, halves, read_half, write_half};
