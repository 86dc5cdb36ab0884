//! The rivals: each file drives the same [`handler`] in its own way.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::sync::mpsc;
use std::thread;

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::handler;

mod floor;
mod hyper;
#[cfg(feature = "paceline")]
mod paceline;
mod smol;
mod tokio;

/// The rivals, in the order of the tables. ([`serve`] also accepts [`APART`], [`HYPERS`] and
/// `paceline-executor`.)
pub const RIVALS: &[&str] = &[
    "floor",
    "tokio",
    "tokio-ct",
    "smol",
    #[cfg(feature = "paceline")]
    "paceline",
];

/// More rivals for the workload `blocked`: their handlers do long work apart from the workers, as their
/// manuals say; or the runtime takes computing for blocking, as it does on systems other than Linux.
pub const APART: &[&str] = &[
    "tokio-spawn-blocking",
    "tokio-block-in-place",
    #[cfg(feature = "paceline")]
    "paceline-unblock",
    #[cfg(feature = "paceline")]
    "paceline-portable",
];

/// hyper on the runtimes, for the workload `hyper`; under the names `hyper2-...` they speak HTTP/2.
pub const HYPERS: &[&str] = &[
    "hyper-tokio",
    "hyper-smol",
    #[cfg(feature = "paceline")]
    "hyper-paceline",
];

/// Serves on a loopback port until the process is killed.
pub fn serve(rival: &str, port: u16, threads: usize) -> io::Result<()> {
    handler::steps_per_micro();
    match rival {
        "floor" => floor::serve(port),
        "tokio" => tokio::multi_thread(port, threads, tokio::converse),
        "tokio-ct" => tokio::current_thread(port),
        "tokio-spawn-blocking" => tokio::multi_thread(port, threads, tokio::converse_spawning),
        "tokio-block-in-place" => tokio::multi_thread(port, threads, tokio::converse_in_place),
        "smol" => smol::serve(port, threads),
        #[cfg(feature = "paceline")]
        "paceline" => paceline::serve(port, threads, false, smol::converse),
        #[cfg(feature = "paceline")]
        "paceline-unblock" => paceline::serve(port, threads, false, paceline::converse_apart),
        #[cfg(feature = "paceline")]
        "paceline-portable" => paceline::serve(port, threads, true, smol::converse),
        #[cfg(feature = "paceline")]
        "paceline-executor" => paceline::serve_on_own_threads(port, threads),
        #[cfg(feature = "paceline")]
        "hyper-paceline" => hyper::paceline(port, threads, hyper::Version::One),
        "hyper-tokio" => hyper::tokio(port, threads, hyper::Version::One),
        "hyper-smol" => hyper::smol(port, threads, hyper::Version::One),
        #[cfg(feature = "paceline")]
        "hyper2-paceline" => hyper::paceline(port, threads, hyper::Version::Two),
        "hyper2-tokio" => hyper::tokio(port, threads, hyper::Version::Two),
        "hyper2-smol" => hyper::smol(port, threads, hyper::Version::Two),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("unknown rival {rival:?}; the rivals are {}", RIVALS.join(", ")),
        )),
    }
}

/// Serves the rival several times in one process, on ports from `port` on. The instances divide the threads,
/// at least one each, and share only what the rival shares by itself. Returns when the first instance fails.
fn serve_several(rival: &str, port: u16, threads: usize, executors: u16) -> io::Result<()> {
    let each = (threads / usize::from(executors)).max(1);
    let (ended, first) = mpsc::channel();
    for port in (port..).take(executors.into()) {
        let (rival, ended) = (rival.to_owned(), ended.clone());
        // The receiver is dropped only when the process ends.
        thread::spawn(move || drop(ended.send(serve(&rival, port, each))));
    }
    first.recv().map_err(io::Error::other)?
}

/// A non-blocking loopback listener (port 0: any free one) with a backlog that a thousand connections at once
/// do not overrun.
pub(crate) fn listen(port: u16) -> io::Result<TcpListener> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    rustix::net::listen(&socket, 4096)?;
    Ok(TcpListener::from(socket))
}

/// Handles an error of an accept loop: a client that disconnected is no reason to stop.
fn accept_failed(error: &io::Error) {
    eprintln!("accept: {error}");
    std::thread::sleep(std::time::Duration::from_millis(10));
}

/// Serves by the arguments `RIVAL PORT [--threads N] [--executors M] [--steps-per-micro N]`, for the `serve`
/// program and the driver's hidden subcommand.
pub fn from_arguments(arguments: &[String]) -> io::Result<()> {
    let usage = || {
        let text = format!(
            "usage: RIVAL PORT [--threads N] [--executors M] [--steps-per-micro N]; rivals: {}",
            RIVALS.join(", ")
        );
        io::Error::new(io::ErrorKind::InvalidInput, text)
    };
    let [rival, port, options @ ..] = arguments else { return Err(usage()) };
    let port = port.parse().map_err(|_| usage())?;
    let (mut threads, mut executors) = (2, 1);
    for pair in options.chunks(2) {
        let [name, value] = pair else { return Err(usage()) };
        let value: u16 = value.parse().map_err(|_| usage())?;
        match name.as_str() {
            "--threads" => threads = usize::from(value.max(1)),
            "--executors" => executors = value.max(1),
            "--steps-per-micro" => handler::set_steps_per_micro(value.into()),
            _ => return Err(usage()),
        }
    }
    match executors {
        1 => serve(rival, port, threads),
        several => serve_several(rival, port, threads, several),
    }
}
