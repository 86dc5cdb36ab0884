//! The server: accepts connections, as many as there may be, until it is told to stop.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use async_channel::{Receiver, Sender};
use futures_lite::future::or;
use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::{Task, spawn};

use crate::channels::Channels;
use crate::connection::{Client, Connection};
use crate::store::Store;

/// What all connections share.
pub struct Shared {
    pub store: Store,
    pub channels: Arc<Channels>,
    pub totals: Totals,
    /// How many there are.
    connections: AtomicUsize,
}

#[derive(Default)]
pub struct Totals {
    pub served: AtomicU64,
    pub refused: AtomicU64,
    pub commands: AtomicU64,
}

pub struct Server {
    listener: TcpListener,
    limit: usize,
    shared: Arc<Shared>,
    /// Nothing is ever sent: that it is closed, because its only sender was dropped, is the message, and reaches all that wait.
    stop: (Sender<()>, Receiver<()>),
    /// Ends with the server.
    _sweep: Task<()>,
}

impl Server {
    /// A server on that address, for so many connections at a time.
    pub async fn bind(address: &str, limit: usize) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let shared = Arc::new(Shared {
            store: Store::new(),
            channels: Arc::default(),
            totals: Totals::default(),
            connections: AtomicUsize::new(0),
        });
        let sweeping = shared.clone();
        let sweep = spawn(async move { sweeping.store.sweep().await });
        Ok(Self { listener, limit, shared, stop: async_channel::bounded(1), _sweep: sweep })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Serves until `stop` is ready. Then nobody is accepted any more, and each connection ends when it has answered what had come.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        or(self.accept(), stop).await;
    }

    async fn accept(&self) {
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => match self.seat() {
                    Some(seat) => spawn(serve(stream, peer, seat, self.stop.1.clone())).detach(),
                    None => self.refuse(stream).await,
                },
                // No descriptor left, perhaps, which is told once: the listener itself works on.
                Err(error) => eprintln!("{error}"),
            }
        }
    }

    /// Room for one more.
    fn seat(&self) -> Option<Seat> {
        // Nobody else adds to it.
        let is_free = self.shared.connections.load(Relaxed) < self.limit;
        is_free.then(|| {
            self.shared.connections.fetch_add(1, Relaxed);
            Seat(self.shared.clone())
        })
    }

    /// Says so and closes, as redis does. To have him wait in the listener's queue instead, where a server is slow but not full, would
    /// look to him like one that hangs; so he learns it at once, and may go elsewhere.
    async fn refuse(&self, mut stream: TcpStream) {
        self.shared.totals.refused.fetch_add(1, Relaxed);
        // It fits into the socket's buffer, so nobody waits. If it does not arrive, the end of the connection does.
        let _ = stream.write_all(b"-ERR max number of clients reached\r\n").await;
        let _ = stream.close().await;
    }
}

/// One of the connections that there may be, for as long as this lives.
struct Seat(Arc<Shared>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

async fn serve(stream: TcpStream, peer: SocketAddr, seat: Seat, stop: Receiver<()>) {
    let shared = seat.0.clone();
    let mut connection = Connection::new(Client { shared: shared.clone(), stream, subscription: None });
    if let Err(error) = connection.serve(stop).await {
        // A peer that is gone is no news.
        if !matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) {
            eprintln!("{peer}: {error}");
        }
    }
    shared.totals.served.fetch_add(1, Relaxed);
    shared.totals.commands.fetch_add(connection.answered, Relaxed);
}
