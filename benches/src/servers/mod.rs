//! The rivals: each file drives the same [`handler`](crate::handler) in its own way.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

mod floor;
mod hsha;
#[cfg(feature = "paceline")]
mod paceline;
mod smol;
mod tokio;

/// What takes part, in the order of the tables. ([`serve`] can start `floor-level`, too.)
pub const RIVALS: &[&str] = &[
    "floor",
    "floor-reuseport",
    "tokio",
    "tokio-ct",
    "smol",
    "hsha",
    #[cfg(feature = "paceline")]
    "paceline",
    #[cfg(feature = "paceline")]
    "paceline-eager",
    #[cfg(feature = "paceline")]
    "paceline-nospin",
    #[cfg(feature = "paceline")]
    "paceline-portable",
];

/// Serves on a loopback port until the process is killed.
pub fn serve(rival: &str, port: u16, threads: usize) -> io::Result<()> {
    crate::handler::steps_per_micro();
    match rival {
        "floor" => floor::one(port, floor::Trigger::Edge),
        "floor-level" => floor::one(port, floor::Trigger::Level),
        "floor-reuseport" => floor::one_per_thread(port, threads),
        "tokio" => tokio::multi_thread(port, threads),
        "tokio-ct" => tokio::current_thread(port),
        "smol" => smol::serve(port, threads),
        "hsha" => hsha::serve(port, threads),
        #[cfg(feature = "paceline")]
        "paceline" => paceline::serve(port, threads, paceline::Variant::Adaptive),
        #[cfg(feature = "paceline")]
        "paceline-eager" => paceline::serve(port, threads, paceline::Variant::Eager),
        #[cfg(feature = "paceline")]
        "paceline-nospin" => paceline::serve(port, threads, paceline::Variant::NoSpin),
        #[cfg(feature = "paceline")]
        "paceline-portable" => paceline::serve(port, threads, paceline::Variant::Portable),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("no rival is called {rival:?}; there are {}", RIVALS.join(", ")),
        )),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// The only listener of its port.
    Alone,
    /// One listener per thread on the same port; the kernel spreads connections over them.
    ReusePort,
}

/// A non-blocking loopback listener (port 0: any free one) with a backlog that a thousand connections at once do not overrun.
pub(crate) fn listen(port: u16, sharing: Sharing) -> io::Result<TcpListener> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, sharing == Sharing::ReusePort)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    rustix::net::listen(&socket, 4096)?;
    Ok(TcpListener::from(socket))
}

/// What an accept loop does about an error: a client that went away is no reason to stop.
fn accept_failed(error: &io::Error) {
    eprintln!("accept: {error}");
    std::thread::sleep(std::time::Duration::from_millis(10));
}

/// `RIVAL PORT [--threads N]`, as the `serve` program and the driver's hidden subcommand take it.
pub fn from_arguments(arguments: &[String]) -> io::Result<()> {
    let usage = || {
        let text = format!("usage: RIVAL PORT [--threads N]; rivals: {}", RIVALS.join(", "));
        io::Error::new(io::ErrorKind::InvalidInput, text)
    };
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (rival, port, threads) = match words[..] {
        [rival, port] => (rival, port, "2"),
        [rival, port, "--threads", threads] => (rival, port, threads),
        _ => return Err(usage()),
    };
    let port = port.parse().map_err(|_| usage())?;
    let threads: usize = threads.parse().map_err(|_| usage())?;
    serve(rival, port, threads.max(1))
}
