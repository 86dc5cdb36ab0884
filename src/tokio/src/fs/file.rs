//! [`File`]: an open file. Another thread makes one call at a time for it, with a buffer that moves there and
//! back: a write is done when its bytes were copied into the buffer, and the next write or flush returns its
//! result.

use std::fmt;
use std::fs::File as StdFile;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, Seek, SeekFrom};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use real::io::{AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};
use real::sync::Mutex;

use super::sync_fs::{self, File as SyncFile, Metadata, Permissions};
use super::{FileTimes, OpenOptions, blocking, failed};
use crate::context;
use crate::io::buf::{Buf, MAX_BUF_SIZE};
use crate::task::JoinHandle;

pub struct File {
    std: Arc<SyncFile>,
    inner: Mutex<Inner>,
    max_buf_size: usize,
}

struct Inner {
    /// Empty while a call has it; otherwise the bytes that were read and not fetched.
    buf: Buf,
    under_way: Option<JoinHandle<(Done, Buf)>>,
    /// The error of a write whose result arrived during another wait.
    write_error: Option<io::ErrorKind>,
    /// The position after the last seek.
    position: u64,
}

/// The kind and the result of a call.
enum Done {
    Read(io::Result<()>),
    Write(io::Result<()>),
    Seek(io::Result<u64>),
    Resize(io::Result<()>),
}

impl File {
    pub async fn open(path: impl AsRef<Path>) -> io::Result<File> {
        Self::options().read(true).open(path).await
    }

    pub async fn create(path: impl AsRef<Path>) -> io::Result<File> {
        Self::options().write(true).create(true).truncate(true).open(path).await
    }

    pub async fn create_new<P: AsRef<Path>>(path: P) -> io::Result<File> {
        Self::options().read(true).write(true).create_new(true).open(path).await
    }

    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    pub fn from_std(std: StdFile) -> File {
        Self::of(std.into())
    }

    pub(super) fn of(std: SyncFile) -> File {
        let inner = Inner { buf: Buf::default(), under_way: None, write_error: None, position: 0 };
        File { std: Arc::new(std), inner: Mutex::new(inner), max_buf_size: MAX_BUF_SIZE }
    }

    /// Makes a call of the standard library on another thread.
    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&SyncFile) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let std = self.std.clone();
        blocking(move || call(&std)).await
    }

    pub async fn sync_all(&self) -> io::Result<()> {
        let mut inner = self.inner.lock().await;
        inner.settle().await;
        self.call(SyncFile::sync_all).await
    }

    pub async fn sync_data(&self) -> io::Result<()> {
        let mut inner = self.inner.lock().await;
        inner.settle().await;
        self.call(SyncFile::sync_data).await
    }

    pub async fn set_len(&self, size: u64) -> io::Result<()> {
        let mut inner = self.inner.lock().await;
        inner.settle().await;
        let (back, buf) = inner.take_buf();
        let std = self.std.clone();
        inner.under_way = Some(context::expect().spawn_blocking(move || {
            let result = back_to_caller(&std, back).and_then(|()| std.set_len(size));
            (Done::Resize(result), buf)
        }));
        match poll_fn(|cx| inner.poll_call(cx)).await? {
            Some(Done::Resize(result)) => result,
            _ => unreachable!("it is locked, and that was its call"),
        }
    }

    pub async fn metadata(&self) -> io::Result<Metadata> {
        self.call(SyncFile::metadata).await
    }

    pub async fn try_clone(&self) -> io::Result<File> {
        self.inner.lock().await.settle().await;
        let mut file = File::of(self.call(SyncFile::try_clone).await?);
        file.set_max_buf_size(self.max_buf_size);
        Ok(file)
    }

    pub async fn into_std(mut self) -> StdFile {
        self.inner.get_mut().settle().await;
        let file = Arc::try_unwrap(self.std).expect("Arc::try_unwrap failed");
        sync_fs::into_real(file)
            .expect("a file of a simulation is no `std::fs::File`: use the methods of `tokio::fs::File`")
    }

    #[allow(clippy::result_large_err, reason = "that is its signature")]
    pub fn try_into_std(mut self) -> Result<StdFile, Self> {
        self.std = match Arc::try_unwrap(self.std).map(sync_fs::into_real) {
            Ok(Ok(file)) => return Ok(file),
            Ok(Err(simulated)) => Arc::new(simulated),
            Err(shared) => shared,
        };
        Err(self)
    }

    pub async fn set_permissions(&self, perm: Permissions) -> io::Result<()> {
        self.call(move |std| std.set_permissions(perm)).await
    }

    pub async fn set_times(&self, times: FileTimes) -> io::Result<()> {
        // A write in progress would set them again.
        self.inner.lock().await.settle().await;
        self.call(move |std| std.set_times(times.into_std())).await
    }

    pub async fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        self.set_times(FileTimes::new().set_modified(time)).await
    }

    #[track_caller]
    pub fn set_max_buf_size(&mut self, max_buf_size: usize) {
        assert!(max_buf_size > 0, "`max_buf_size` must be greater than 0");
        self.max_buf_size = max_buf_size;
    }

    pub fn max_buf_size(&self) -> usize {
        self.max_buf_size
    }

    /// Lets `take` fill the buffer, and starts its write.
    fn poll_write_with(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(&mut Buf, usize) -> usize,
    ) -> Poll<io::Result<usize>> {
        let inner = self.inner.get_mut();
        // Not `settle`: an error belongs to this write.
        ready!(inner.poll_flush(cx))?;
        let runtime = context::expect();
        if runtime.shared.blocking.is_closed() {
            return Poll::Ready(Err(failed()));
        }
        let (back, mut buf) = inner.take_buf();
        let len = take(&mut buf, self.max_buf_size);
        let std = self.std.clone();
        let write = move || {
            let result = back_to_caller(&std, back).and_then(|()| buf.drain(&mut &*std));
            (Done::Write(result), buf)
        };
        inner.under_way = Some(runtime.try_spawn_blocking(write, None)?);
        Poll::Ready(Ok(len))
    }
}

/// Moves the file's position back to the caller's, which has not fetched all bytes that were read.
fn back_to_caller(mut file: &SyncFile, back: usize) -> io::Result<()> {
    if back == 0 { Ok(()) } else { file.seek_relative(-(back as i64)) }
}

impl Inner {
    /// Waits for the call in progress, if any, and takes the buffer back.
    fn poll_call(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Done>>> {
        let Some(call) = &mut self.under_way else {
            return Poll::Ready(Ok(None));
        };
        let result = ready!(Pin::new(call).poll(cx));
        self.under_way = None;
        let (done, buf) = result?;
        self.buf = buf;
        Poll::Ready(Ok(Some(done)))
    }

    /// Returns the buffer, emptied, and how many bytes of the file were in it.
    fn take_buf(&mut self) -> (usize, Buf) {
        let mut buf = std::mem::take(&mut self.buf);
        (buf.discard(), buf)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(kind) = self.write_error.take() {
            return Poll::Ready(Err(kind.into()));
        }
        match ready!(self.poll_call(cx))? {
            Some(Done::Write(result)) => Poll::Ready(result),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Waits until no call is in progress; an error is kept for the next write.
    async fn settle(&mut self) {
        if let Err(error) = poll_fn(|cx| self.poll_flush(cx)).await {
            self.write_error = Some(error.kind());
        }
    }
}

impl AsyncRead for File {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, dst: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let inner = this.inner.get_mut();
        loop {
            match ready!(inner.poll_call(cx))? {
                Some(Done::Read(result)) => {
                    inner.buf.give(dst);
                    return Poll::Ready(result);
                }
                Some(Done::Write(result)) => inner.write_error = result.err().map(|error| error.kind()),
                Some(Done::Seek(result)) => inner.position = result.unwrap_or(inner.position),
                Some(Done::Resize(_)) => {}
                None if !inner.buf.is_empty() || dst.remaining() == 0 => {
                    inner.buf.give(dst);
                    return Poll::Ready(Ok(()));
                }
                None => {
                    let (std, mut buf) = (this.std.clone(), std::mem::take(&mut inner.buf));
                    let max = dst.remaining().min(this.max_buf_size);
                    inner.under_way = Some(
                        context::expect()
                            .spawn_blocking(move || (Done::Read(buf.fill(&mut &*std, max)), buf)),
                    );
                }
            }
        }
    }
}

impl AsyncSeek for File {
    fn start_seek(self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        let this = self.get_mut();
        let inner = this.inner.get_mut();
        if inner.under_way.is_some() {
            return Err(io::Error::other(
                "other file operation is pending, call poll_complete before start_seek",
            ));
        }
        let (back, buf) = inner.take_buf();
        let std = this.std.clone();
        inner.under_way = Some(context::expect().spawn_blocking(move || {
            // The bytes that were read ahead matter only for a position relative to the caller's.
            let ahead = if matches!(to, SeekFrom::Current(_)) { back } else { 0 };
            (Done::Seek(back_to_caller(&std, ahead).and_then(|()| (&*std).seek(to))), buf)
        }));
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let inner = self.get_mut().inner.get_mut();
        loop {
            match ready!(inner.poll_call(cx))? {
                None => return Poll::Ready(Ok(inner.position)),
                Some(Done::Read(_) | Done::Resize(_)) => {}
                Some(Done::Write(result)) => inner.write_error = result.err().map(|error| error.kind()),
                Some(Done::Seek(result)) => {
                    inner.position = *result.as_ref().unwrap_or(&inner.position);
                    return Poll::Ready(result);
                }
            }
        }
    }
}

impl AsyncWrite for File {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, src: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write_with(cx, |buf, max| buf.take(src, max))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write_with(cx, |buf, max| buf.take_all(slices, max))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().inner.get_mut().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl From<StdFile> for File {
    fn from(std: StdFile) -> Self {
        Self::from_std(std)
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("tokio::fs::File").field("std", &self.std).finish()
    }
}

#[cfg(unix)]
mod unix {
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

    use super::{File, StdFile};

    impl From<OwnedFd> for File {
        fn from(fd: OwnedFd) -> Self {
            Self::from_std(fd.into())
        }
    }

    impl AsRawFd for File {
        fn as_raw_fd(&self) -> RawFd {
            self.std.as_raw_fd()
        }
    }

    impl AsFd for File {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.std.as_fd()
        }
    }

    impl FromRawFd for File {
        unsafe fn from_raw_fd(fd: RawFd) -> Self {
            // SAFETY: the caller keeps the promises of `from_raw_fd`.
            Self::from_std(unsafe { StdFile::from_raw_fd(fd) })
        }
    }
}

#[cfg(windows)]
mod windows {
    use std::os::windows::io::{
        AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle, RawHandle,
    };

    use super::{File, StdFile};

    impl From<OwnedHandle> for File {
        fn from(handle: OwnedHandle) -> Self {
            Self::from_std(handle.into())
        }
    }

    impl AsRawHandle for File {
        fn as_raw_handle(&self) -> RawHandle {
            self.std.as_raw_handle()
        }
    }

    impl AsHandle for File {
        fn as_handle(&self) -> BorrowedHandle<'_> {
            self.std.as_handle()
        }
    }

    impl FromRawHandle for File {
        unsafe fn from_raw_handle(handle: RawHandle) -> Self {
            // SAFETY: the caller keeps the promises of `from_raw_handle`.
            Self::from_std(unsafe { StdFile::from_raw_handle(handle) })
        }
    }

    #[test]
    fn a_file_keeps_the_handle_that_it_is_made_of() {
        let std = StdFile::open(std::env::current_exe().unwrap()).unwrap();
        let raw = std.as_raw_handle();
        let file = File::from(OwnedHandle::from(std));
        assert_eq!(file.as_raw_handle(), raw);
        assert_eq!(file.as_handle().as_raw_handle(), raw);
    }
}
