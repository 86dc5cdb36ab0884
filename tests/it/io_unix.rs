//! Unix sockets, and descriptors that are no sockets, through `Async`.

use futures_lite::{AsyncReadExt, AsyncWriteExt, StreamExt, future, pin};
use paceline::{Async, IoSafe, block_on};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A unique path, which is removed at the end.
struct TempPath(PathBuf);

impl TempPath {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("paceline-it-{}-{number}", std::process::id())))
    }
}

impl AsRef<Path> for TempPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
pub fn unix_streams_over_a_path() -> io::Result<()> {
    let path = TempPath::new();
    block_on(async {
        let listener = Async::<UnixListener>::bind(&path)?;
        let ((mut server, peer), mut client) =
            future::try_zip(listener.accept(), Async::<UnixStream>::connect(&path)).await?;
        assert!(peer.is_unnamed());
        assert_eq!(client.get_ref().peer_addr()?.as_pathname(), Some(path.as_ref()));
        assert_eq!(server.get_ref().read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        client.write_all(b"hello").await?;
        client.close().await?;
        drop(client);
        let mut got = String::new();
        server.read_to_string(&mut got).await?;
        assert_eq!(got, "hello");
        Ok(())
    })
}

#[test]
pub fn unix_incoming() -> io::Result<()> {
    let path = TempPath::new();
    block_on(async {
        let listener = Async::<UnixListener>::bind(&path)?;
        let incoming = listener.incoming();
        pin!(incoming);
        for _ in 0..3 {
            let (next, client) = future::zip(incoming.next(), Async::<UnixStream>::connect(&path)).await;
            next.expect("the stream is endless")?.write_all(b"x").await?;
            client?.read_exact(&mut [0]).await?;
        }
        Ok(())
    })
}

/// The address of a peer that has a name.
#[test]
pub fn accept_names_a_peer_that_has_a_name() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, connect, socket};

    let (path, own) = (TempPath::new(), TempPath::new());
    block_on(async {
        let listener = Async::<UnixListener>::bind(&path)?;
        let client = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
        bind(&client, &SocketAddrUnix::new(own.as_ref())?)?;
        connect(&client, &SocketAddrUnix::new(path.as_ref())?)?;
        let (_server, peer) = listener.accept().await?;
        assert_eq!(peer.as_pathname(), Some(own.as_ref()));
        Ok(())
    })
}

#[test]
pub fn connecting_to_a_missing_or_closed_socket_keeps_kind_and_code() -> io::Result<()> {
    let path = TempPath::new();
    block_on(async {
        let err = Async::<UnixStream>::connect(&path).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::NotFound);
        assert!(err.raw_os_error().is_some());

        drop(Async::<UnixListener>::bind(&path)?);
        let err = Async::<UnixStream>::connect(&path).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::ConnectionRefused);
        assert!(err.raw_os_error().is_some());
        Ok(())
    })
}

/// The call must fail, and not wait for an event that never comes.
#[cfg(target_os = "linux")]
#[test]
pub fn a_full_queue_of_connections_is_an_error() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

    let path = TempPath::new();
    block_on(async {
        let listener = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
        bind(&listener, &SocketAddrUnix::new(path.as_ref())?)?;
        listen(&listener, 0)?;
        let _in_the_queue = Async::<UnixStream>::connect(&path).await?;
        let err = Async::<UnixStream>::connect(&path).await.unwrap_err();
        assert_eq!(err.kind(), ErrorKind::NotConnected);
        assert!(err.to_string().contains("queue"), "{err}");
        Ok(())
    })
}

#[cfg(target_os = "linux")]
#[test]
pub fn abstract_names() -> io::Result<()> {
    use std::ffi::OsString;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStringExt;

    let name = format!("paceline-it-{}", std::process::id()).into_bytes();
    let path = OsString::from_vec([b"\0", &name[..]].concat());
    block_on(async {
        let listener = Async::<UnixListener>::bind(&path)?;
        let (_, client) = future::try_zip(listener.accept(), Async::<UnixStream>::connect(&path)).await?;
        assert_eq!(client.get_ref().peer_addr()?.as_abstract_name(), Some(&name[..]));
        drop(listener);

        let receiver = Async::<UnixDatagram>::bind(&path)?;
        Async::<UnixDatagram>::unbound()?.send_to(b"hello", &path).await?;
        assert_eq!(receiver.recv(&mut [0; 16]).await?, 5);
        Ok(())
    })
}

#[test]
pub fn unix_pair_of_streams() -> io::Result<()> {
    block_on(async {
        let (mut one, mut other) = Async::<UnixStream>::pair()?;
        let mut buf = vec![0; 1 << 20];
        let data: Vec<u8> = (0..=255).cycle().take(buf.len()).collect();
        future::try_zip(other.read_exact(&mut buf), one.write_all(&data)).await?;
        assert!(buf == data);
        drop(one);
        assert_eq!(other.read(&mut buf).await?, 0);
        Ok(())
    })
}

#[test]
pub fn unix_datagrams() -> io::Result<()> {
    let path = TempPath::new();
    block_on(async {
        let mut buf = [0; 16];
        let (one, other) = Async::<UnixDatagram>::pair()?;
        let (received, _) = future::try_zip(other.recv(&mut buf), one.send(b"abc")).await?;
        assert_eq!(&buf[..received], b"abc");

        let receiver = Async::<UnixDatagram>::bind(&path)?;
        let sender = Async::<UnixDatagram>::unbound()?;
        let ((n, from), _) =
            future::try_zip(receiver.recv_from(&mut buf), sender.send_to(b"defg", &path)).await?;
        assert_eq!(&buf[..n], b"defg");
        assert!(from.is_unnamed());
        Ok(())
    })
}

/// The full queue is the receiver's, which the sender's own readiness does not show.
#[test]
pub fn datagrams_get_through_a_full_queue() -> io::Result<()> {
    const DATAGRAMS: u32 = 2_000;

    let path = TempPath::new();
    block_on(async {
        let receiver = Async::<UnixDatagram>::bind(&path)?;
        let sender = Async::<UnixDatagram>::unbound()?;
        let connected = Async::<UnixDatagram>::unbound()?;
        connected.get_ref().connect(&path)?;

        for by_name in [true, false] {
            let send = async {
                for number in 0..DATAGRAMS {
                    let bytes = number.to_le_bytes();
                    let sent = if by_name {
                        sender.send_to(&bytes, &path).await?
                    } else {
                        connected.send(&bytes).await?
                    };
                    assert_eq!(sent, 4);
                }
                io::Result::Ok(())
            };
            let receive = async {
                let mut bytes = [0; 4];
                for number in 0..DATAGRAMS {
                    assert_eq!(receiver.recv(&mut bytes).await?, 4);
                    assert_eq!(u32::from_le_bytes(bytes), number);
                }
                Ok(())
            };
            future::try_zip(send, receive).await?;
        }
        Ok(())
    })
}

/// Transfers far more than the pipes of a child process hold.
#[test]
pub fn pipes_of_a_child() -> io::Result<()> {
    let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = Async::new(cat.stdin.take().expect("piped"))?;
    let mut output = Async::new(cat.stdout.take().expect("piped"))?;
    block_on(async {
        let mut buf = vec![0; 1 << 20];
        let data: Vec<u8> = (0..=255).cycle().take(buf.len()).collect();
        future::try_zip(output.read_exact(&mut buf), input.write_all(&data)).await?;
        assert!(buf == data);
        drop(input);
        assert_eq!(output.read(&mut buf).await?, 0);
        io::Result::Ok(())
    })?;
    assert!(cat.wait()?.success());
    Ok(())
}

#[test]
pub fn from_a_descriptor_and_back() -> io::Result<()> {
    block_on(async {
        let (one, other) = Async::<UnixStream>::pair()?;
        let one = Async::<File>::try_from(OwnedFd::try_from(one)?)?;
        let other = Async::new(OwnedFd::try_from(other)?)?;
        (&one).write_all(b"hello").await?;
        let mut other = Async::<UnixStream>::try_from(OwnedFd::try_from(other)?)?;
        let mut buf = [0; 5];
        other.read_exact(&mut buf).await?;
        assert_eq!(&buf, b"hello");
        Ok(())
    })
}

// poll(2) accepts a regular file and finds it always ready.
#[cfg_attr(polling_test_poll_backend, ignore)]
#[test]
pub fn a_regular_file_cannot_be_registered() -> io::Result<()> {
    let err = Async::new(File::open("Cargo.toml")?).unwrap_err();
    assert_eq!(err.kind(), ErrorKind::PermissionDenied);
    assert!(err.to_string().contains("thread that may block"), "{err}");
    Ok(())
}

/// Reads pairs of bytes and rejects equal ones, as a device with a filter does: `WouldBlock` with more bytes
/// queued.
struct Filter(UnixStream);

impl Read for Filter {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut pair = [0; 2];
        self.0.read_exact(&mut pair)?;
        if pair[0] == pair[1] {
            return Err(ErrorKind::WouldBlock.into());
        }
        buf[..2].copy_from_slice(&pair);
        Ok(2)
    }
}

impl AsFd for Filter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

// SAFETY: `read` reads from the stream and does not move it.
unsafe impl IoSafe for Filter {}

#[test]
pub fn a_handle_may_say_would_block_on_its_own_account() -> io::Result<()> {
    block_on(async {
        let (one, other) = UnixStream::pair()?;
        let mut filter = Async::new(Filter(one))?;
        Async::new(other)?.write_all(b"aabbccxy").await?;
        let mut buf = [0; 2];
        assert_eq!(filter.read(&mut buf).await?, 2);
        assert_eq!(&buf, b"xy");
        Ok(())
    })
}
