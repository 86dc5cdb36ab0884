//! `async_io`: each item with its full signature. The compiler makes the checks; the test functions around
//! them only prevent warnings about dead code.

use async_io::{Async, IoSafe, Readable, ReadableOwned, Timer, Writable, WritableOwned, block_on};
use futures_lite::{AsyncRead, AsyncWrite, Stream};
use std::cell::Cell;
use std::fmt::Debug;
use std::future::Future;
use std::io::{self, BufReader, BufWriter, LineWriter};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

fn is_send<T: Send + ?Sized>() {}
fn is_sync<T: Sync + ?Sized>() {}
fn is_unpin<T: Unpin>() {}
fn is_debug<T: Debug>() {}
fn is_io_safe<T: IoSafe + ?Sized>() {}
fn reads<T: AsyncRead>() {}
fn writes<T: AsyncWrite>() {}
fn is_future<T>(_: &impl Future<Output = T>) {}
fn may_move_to_another_thread<T: Send>(_: &T) {}

type Ready = Pin<Box<dyn Future<Output = u8>>>;

#[test]
fn block_on_and_timer() {
    let _: fn(Ready) -> u8 = block_on;
    is_send::<Timer>();
    is_sync::<Timer>();
    is_unpin::<Timer>();
    is_debug::<Timer>();
    let _: fn() -> Timer = Timer::never;
    let _: fn(Duration) -> Timer = Timer::after;
    let _: fn(Instant) -> Timer = Timer::at;
    let _: fn(Duration) -> Timer = Timer::interval;
    let _: fn(Instant, Duration) -> Timer = Timer::interval_at;
    let _: fn(&Timer) -> bool = Timer::will_fire;
    let _: fn(&mut Timer, Duration) = Timer::set_after;
    let _: fn(&mut Timer, Instant) = Timer::set_at;
    let _: fn(&mut Timer, Duration) = Timer::set_interval;
    let _: fn(&mut Timer, Instant, Duration) = Timer::set_interval_at;
    let _: fn(&mut Timer) = Timer::clear;
    is_future::<Instant>(&Timer::never());
    fn is_stream<T: Stream<Item = Instant>>() {}
    is_stream::<Timer>();
}

/// Neither `Send`, `Sync`, `Unpin` nor `Debug`.
struct Nothing(#[allow(dead_code)] Cell<*const ()>, std::marker::PhantomPinned);

/// `Send`, not `Sync`, not `Debug`.
struct SendOnly(#[allow(dead_code)] Cell<u8>);

#[test]
pub fn auto_traits() {
    is_send::<Async<TcpStream>>();
    is_sync::<Async<TcpStream>>();
    is_send::<Async<SendOnly>>();
    is_debug::<Async<TcpStream>>();
    is_unpin::<Async<Nothing>>();

    is_send::<Readable<'_, TcpStream>>();
    is_sync::<Readable<'_, TcpStream>>();
    is_send::<ReadableOwned<TcpStream>>();
    is_sync::<ReadableOwned<TcpStream>>();
    is_send::<Writable<'_, TcpStream>>();
    is_sync::<Writable<'_, TcpStream>>();
    is_send::<WritableOwned<TcpStream>>();
    is_sync::<WritableOwned<TcpStream>>();

    is_unpin::<Readable<'_, Nothing>>();
    is_unpin::<ReadableOwned<Nothing>>();
    is_unpin::<Writable<'_, Nothing>>();
    is_unpin::<WritableOwned<Nothing>>();
    is_debug::<Readable<'_, Nothing>>();
    is_debug::<ReadableOwned<Nothing>>();
    is_debug::<Writable<'_, Nothing>>();
    is_debug::<WritableOwned<Nothing>>();
}

#[test]
pub fn io_safe_implementations() {
    is_io_safe::<&Nothing>();
    is_io_safe::<&str>();
    is_io_safe::<std::fs::File>();
    is_io_safe::<io::Stdin>();
    is_io_safe::<io::Stdout>();
    is_io_safe::<io::Stderr>();
    is_io_safe::<io::StdinLock<'_>>();
    is_io_safe::<io::StdoutLock<'_>>();
    is_io_safe::<io::StderrLock<'_>>();
    is_io_safe::<TcpStream>();
    is_io_safe::<std::process::ChildStdin>();
    is_io_safe::<std::process::ChildStdout>();
    is_io_safe::<std::process::ChildStderr>();
    is_io_safe::<BufReader<TcpStream>>();
    is_io_safe::<BufWriter<TcpStream>>();
    is_io_safe::<LineWriter<TcpStream>>();
    is_io_safe::<&mut TcpStream>();
    is_io_safe::<Box<TcpStream>>();
    is_io_safe::<Box<dyn IoSafe>>();
    is_io_safe::<std::borrow::Cow<'_, Cloneable>>();
}

#[derive(Clone)]
struct Cloneable;

// SAFETY: the type has no descriptor, and neither reads nor writes.
unsafe impl IoSafe for Cloneable {}

#[test]
pub fn futures_io_implementations() {
    reads::<Async<TcpStream>>();
    writes::<Async<TcpStream>>();
    reads::<&Async<TcpStream>>();
    writes::<&Async<TcpStream>>();
    reads::<Async<BufReader<TcpStream>>>();
    writes::<Async<BufWriter<TcpStream>>>();
    writes::<Async<LineWriter<TcpStream>>>();
    reads::<Async<&TcpStream>>();
    writes::<&Async<io::Stdout>>();
    reads::<Async<Box<TcpStream>>>();
    reads::<&Async<std::fs::File>>();
}

/// Bounds that a generic program may have written down: no further bounds are necessary.
#[allow(dead_code)]
fn generic_by_reference<T>(handle: Async<T>)
where
    for<'a> &'a T: io::Read + io::Write,
{
    fn take(_: impl AsyncRead + AsyncWrite) {}
    take(&handle);
}

#[allow(dead_code)]
fn generic_by_value<T: IoSafe + io::Read + io::Write>(handle: Async<T>) {
    fn take(_: impl AsyncRead + AsyncWrite) {}
    take(handle);
}

#[test]
pub fn signatures_of_any_handle() {
    let _: fn(TcpStream) -> io::Result<Async<TcpStream>> = Async::new;
    let _: fn(TcpStream) -> io::Result<Async<TcpStream>> = Async::new_nonblocking;
    let _: fn(&Async<Nothing>) -> &Nothing = Async::get_ref;
    let _: unsafe fn(&mut Async<Nothing>) -> &mut Nothing = Async::get_mut;
    let _: fn(Async<Nothing>) -> io::Result<Nothing> = Async::into_inner;
    let _: for<'a> fn(&'a Async<Nothing>) -> Readable<'a, Nothing> = Async::readable;
    let _: fn(Arc<Async<Nothing>>) -> ReadableOwned<Nothing> = Async::readable_owned;
    let _: for<'a> fn(&'a Async<Nothing>) -> Writable<'a, Nothing> = Async::writable;
    let _: fn(Arc<Async<Nothing>>) -> WritableOwned<Nothing> = Async::writable_owned;
    let _: fn(&Async<Nothing>, &mut Context<'_>) -> Poll<io::Result<()>> = Async::poll_readable;
    let _: fn(&Async<Nothing>, &mut Context<'_>) -> Poll<io::Result<()>> = Async::poll_writable;
    let _: fn(&Async<Nothing>) -> &Nothing = AsRef::as_ref;
}

/// Never called: the futures need only have the right type, and the right bounds.
#[allow(dead_code)]
fn operations_of_any_handle(shared: &Async<TcpStream>, own: &mut Async<TcpStream>, lone: &Async<Nothing>) {
    let read = shared.read_with(|io: &TcpStream| io.peek(&mut [0]));
    is_future::<io::Result<usize>>(&read);
    may_move_to_another_thread(&read);
    let write = shared.write_with::<()>(|_io: &TcpStream| Ok(()));
    is_future::<io::Result<()>>(&write);
    may_move_to_another_thread(&write);
    is_future::<io::Result<char>>(&lone.read_with(|_: &Nothing| Ok('x')));
    is_future::<io::Result<char>>(&lone.write_with(|_: &Nothing| Ok('x')));
    {
        // SAFETY: the operation does nothing.
        let read = unsafe { own.read_with_mut(|_io: &mut TcpStream| Ok(1)) };
        is_future::<io::Result<i32>>(&read);
        may_move_to_another_thread(&read);
    }
    // SAFETY: the operation does nothing.
    let write = unsafe { own.write_with_mut(|_io: &mut TcpStream| Ok(1)) };
    is_future::<io::Result<i32>>(&write);
    may_move_to_another_thread(&write);
}

fn endless<'a, T>(
    stream: impl Stream<Item = io::Result<Async<T>>> + Send + 'a,
) -> impl Stream<Item = io::Result<Async<T>>> + Send + 'a {
    stream
}

#[allow(dead_code)]
fn tcp_and_udp(
    listener: &Async<TcpListener>,
    stream: &Async<TcpStream>,
    udp: &Async<UdpSocket>,
    addr: SocketAddr,
) {
    let _: io::Result<Async<TcpListener>> = Async::<TcpListener>::bind(([0, 0, 0, 0], 0));
    let accept = listener.accept();
    is_future::<io::Result<(Async<TcpStream>, SocketAddr)>>(&accept);
    may_move_to_another_thread(&accept);
    drop(endless(listener.incoming()));

    let connect = Async::<TcpStream>::connect(addr);
    is_future::<io::Result<Async<TcpStream>>>(&connect);
    may_move_to_another_thread(&connect);
    is_future::<io::Result<usize>>(&stream.peek(&mut [0]));

    let _: io::Result<Async<UdpSocket>> = Async::<UdpSocket>::bind(addr);
    is_future::<io::Result<(usize, SocketAddr)>>(&udp.recv_from(&mut [0]));
    is_future::<io::Result<(usize, SocketAddr)>>(&udp.peek_from(&mut [0]));
    is_future::<io::Result<usize>>(&udp.send_to(&[0], addr));
    is_future::<io::Result<usize>>(&udp.send_to(&[0], ([127, 0, 0, 1], 1)));
    is_future::<io::Result<usize>>(&udp.recv(&mut [0]));
    is_future::<io::Result<usize>>(&udp.peek(&mut [0]));
    is_future::<io::Result<usize>>(&udp.send(&[0]));

    let _: fn(TcpListener) -> io::Result<Async<TcpListener>> = TryFrom::try_from;
    let _: fn(TcpStream) -> io::Result<Async<TcpStream>> = TryFrom::try_from;
    let _: fn(UdpSocket) -> io::Result<Async<UdpSocket>> = TryFrom::try_from;
}

#[cfg(unix)]
mod unix {
    use super::{endless, is_future, is_io_safe, may_move_to_another_thread, reads, writes};
    use async_io::Async;
    use std::io;
    use std::net::TcpStream;
    use std::os::fd::{AsFd, AsRawFd, OwnedFd};
    use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};

    type Pair<T> = (Async<T>, Async<T>);

    fn has_descriptor<T: AsFd + AsRawFd>() {}

    #[test]
    pub fn descriptors_and_conversions() {
        has_descriptor::<Async<TcpStream>>();
        has_descriptor::<Async<UnixDatagram>>();
        let _: fn(OwnedFd) -> io::Result<Async<TcpStream>> = TryFrom::try_from;
        let _: fn(Async<TcpStream>) -> io::Result<OwnedFd> = TryFrom::try_from;
        let _: fn(OwnedFd) -> io::Result<Async<OwnedFd>> = Async::new;
        let _: fn(UnixListener) -> io::Result<Async<UnixListener>> = TryFrom::try_from;
        let _: fn(UnixStream) -> io::Result<Async<UnixStream>> = TryFrom::try_from;
        let _: fn(UnixDatagram) -> io::Result<Async<UnixDatagram>> = TryFrom::try_from;
    }

    #[test]
    pub fn streams() {
        is_io_safe::<UnixStream>();
        reads::<Async<UnixStream>>();
        writes::<&Async<UnixStream>>();
    }

    #[allow(dead_code)]
    fn sockets(listener: &Async<UnixListener>, datagram: &Async<UnixDatagram>) {
        let _: io::Result<Async<UnixListener>> = Async::<UnixListener>::bind("path");
        let accept = listener.accept();
        is_future::<io::Result<(Async<UnixStream>, SocketAddr)>>(&accept);
        may_move_to_another_thread(&accept);
        drop(endless(listener.incoming()));

        let connect = Async::<UnixStream>::connect("path");
        is_future::<io::Result<Async<UnixStream>>>(&connect);
        may_move_to_another_thread(&connect);
        let _: fn() -> io::Result<Pair<UnixStream>> = Async::<UnixStream>::pair;

        let _: io::Result<Async<UnixDatagram>> = Async::<UnixDatagram>::bind("path");
        let _: fn() -> io::Result<Async<UnixDatagram>> = Async::<UnixDatagram>::unbound;
        let _: fn() -> io::Result<Pair<UnixDatagram>> = Async::<UnixDatagram>::pair;
        is_future::<io::Result<(usize, SocketAddr)>>(&datagram.recv_from(&mut [0]));
        is_future::<io::Result<usize>>(&datagram.send_to(&[0], "path"));
        is_future::<io::Result<usize>>(&datagram.recv(&mut [0]));
        is_future::<io::Result<usize>>(&datagram.send(&[0]));
    }
}

#[cfg(unix)]
#[test]
fn reactor_descriptor() {
    use std::os::fd::BorrowedFd;
    let _: fn() -> Option<BorrowedFd<'static>> = async_io::os::unix::reactor_fd;
    assert!(async_io::os::unix::reactor_fd().is_some());
}

#[cfg(any(
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd",
    target_os = "dragonfly"
))]
mod kqueue {
    use async_io::os::kqueue::{Exit, Filter, Queueable, Ready, Signal};
    use std::io;
    use std::num::NonZeroI32;
    use std::process::Child;
    use std::task::{Context, Poll};

    #[test]
    fn filters() {
        fn queueable<T: Queueable>() {}
        queueable::<Signal>();
        queueable::<Exit>();
        let _: fn(Signal) -> io::Result<Filter<Signal>> = Filter::new;
        let _: fn(Child) -> Exit = Exit::new;
        let _: unsafe fn(NonZeroI32) -> Exit = Exit::from_pid;
        let _: fn(&Filter<Exit>) -> &Exit = Filter::get_ref;
        let _: fn(&mut Filter<Exit>) -> &mut Exit = Filter::get_mut;
        let _: fn(Filter<Exit>) -> io::Result<Exit> = Filter::into_inner;
        let _: for<'a> fn(&'a Filter<Exit>) -> Ready<'a, Exit> = Filter::ready;
        let _: fn(&Filter<Exit>, &mut Context<'_>) -> Poll<io::Result<()>> = Filter::poll_ready;
        let _: i32 = Signal(1).0;
    }
}

#[cfg(windows)]
mod windows {
    use async_io::os::windows::{Ready, Waitable};
    use std::io;
    use std::os::windows::io::{AsHandle, AsRawHandle, OwnedHandle};
    use std::task::{Context, Poll};

    #[test]
    fn waitables() {
        fn has_handle<T: AsHandle + AsRawHandle>() {}
        has_handle::<Waitable<OwnedHandle>>();
        let _: fn(OwnedHandle) -> io::Result<Waitable<OwnedHandle>> = Waitable::new;
        let _: fn(&Waitable<OwnedHandle>) -> &OwnedHandle = Waitable::get_ref;
        let _: unsafe fn(&mut Waitable<OwnedHandle>) -> &mut OwnedHandle = Waitable::get_mut;
        let _: fn(Waitable<OwnedHandle>) -> io::Result<OwnedHandle> = Waitable::into_inner;
        let _: for<'a> fn(&'a Waitable<OwnedHandle>) -> Ready<'a, OwnedHandle> = Waitable::ready;
        let _: fn(&Waitable<OwnedHandle>, &mut Context<'_>) -> Poll<io::Result<()>> = Waitable::poll_ready;
    }
}
