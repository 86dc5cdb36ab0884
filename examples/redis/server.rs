//! The server: accepts connections up to a limit, until it is told to stop.

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

/// The state that all connections share.
pub struct Shared {
    pub store: Store,
    pub channels: Arc<Channels>,
    pub totals: Totals,
    /// The number of connections.
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
    /// Nothing is ever sent: the channel closes when its only sender is dropped, which all connections
    /// notice.
    stop: (Sender<()>, Receiver<()>),
    /// Ends with the server.
    _sweep: Task<()>,
}

impl Server {
    /// Returns a server on that address, for so many connections at a time.
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

    /// Serves until `stop` is ready. Then no client is accepted any more, and each connection ends when it
    /// has answered the commands that had arrived.
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
                // Perhaps no descriptor is free; that is reported once, and the listener continues.
                Err(error) => eprintln!("{error}"),
            }
        }
    }

    /// Returns room for one more connection.
    fn seat(&self) -> Option<Seat> {
        // No other code adds to the count.
        let is_free = self.shared.connections.load(Relaxed) < self.limit;
        is_free.then(|| {
            self.shared.connections.fetch_add(1, Relaxed);
            Seat(self.shared.clone())
        })
    }

    /// Sends an error and closes, as redis does. If the client waited in the listener's queue instead, the
    /// server would seem to hang; with the error the client knows at once, and may go elsewhere.
    async fn refuse(&self, mut stream: TcpStream) {
        self.shared.totals.refused.fetch_add(1, Relaxed);
        // The reply fits into the socket's buffer, so this does not wait. If the reply does not arrive, the
        // end of the connection does.
        let _ = stream.write_all(b"-ERR max number of clients reached\r\n").await;
        let _ = stream.close().await;
    }
}

/// One of the allowed connections, for as long as this lives.
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
        // A disconnected peer is normal.
        if !matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) {
            eprintln!("{peer}: {error}");
        }
    }
    shared.totals.served.fetch_add(1, Relaxed);
    shared.totals.commands.fetch_add(connection.answered, Relaxed);
}
