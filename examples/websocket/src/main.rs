//! A WebSocket server: at `/chat` everybody hears what anybody says, everywhere else it is an echo.
//!
//! ```sh
//! cargo run --release -p example-websocket                      # talks to itself and ends
//! cargo run --release -p example-websocket -- 127.0.0.1:7001    # serves until Ctrl-C; try `npx wscat -c ws://127.0.0.1:7001/chat`
//! ```
//!
//! The protocol is `async-tungstenite`'s, which needs no runtime's feature: a `TcpStream` of paceline is a stream to it. Look at
//! `connection`: one task for each, limits for the handshake and for each message that the peer has to take, and a close that says
//! why. A peer that says nothing may stay; how many there are has no limit here, as it has in `examples/http`.

mod chat;
mod demo;

use std::io;
use std::pin::pin;
use std::time::Duration;

use async_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use async_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use async_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use async_tungstenite::tungstenite::{Error, Message};
use async_tungstenite::{WebSocketStream, accept_hdr_async_with_config};
use futures::channel::oneshot;
use futures::future::{Either, Shared, select};
use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::signal::{Signal, Signals};
use paceline::{Runtime, spawn, timeout};

use chat::Room;

/// For the client's request; for a message that it has to take; for its close.
const HANDSHAKE: Duration = Duration::from_secs(5);
const SEND: Duration = Duration::from_secs(10);
const CLOSE: Duration = Duration::from_secs(1);
/// What a server that stops gives its connections.
const GRACE: Duration = Duration::from_secs(2);

type Socket = WebSocketStream<TcpStream>;
/// Is ready, for all that have a clone, when its sender is dropped.
type Stop = Shared<oneshot::Receiver<()>>;

fn main() -> io::Result<()> {
    let runtime = Runtime::builder().build()?;
    let report = runtime.block_on(async {
        let addr = std::env::args().nth(1);
        let listener = TcpListener::bind(addr.as_deref().unwrap_or("127.0.0.1:0")).await?;
        let (stop, stopped) = oneshot::channel();
        let server = serve(&listener, stopped.shared());
        match addr {
            Some(_) => {
                let mut signals = Signals::new([Signal::Interrupt, Signal::Terminate])?;
                println!("serving on {}, until Ctrl-C", listener.local_addr()?);
                let stopped = async { signals.next().await.map(drop) };
                select(pin!(server), pin!(stopped)).await.factor_first().0?;
            }
            None => {
                let talk = demo::talk(listener.local_addr()?);
                select(pin!(server), pin!(talk)).await.factor_first().0?;
            }
        }
        // Nobody comes in any more, and those who are here are told. What they have not said by then they do not say.
        drop((listener, stop));
        io::Result::Ok(runtime.drain(GRACE).await)
    })?;
    println!("{report}");
    Ok(())
}

/// Accepts connections, and spawns a task for each.
async fn serve(listener: &TcpListener, stop: Stop) -> io::Result<()> {
    let room = Room::default();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let connection = connection(stream, room.clone(), stop.clone());
                let told =
                    async move { connection.await.unwrap_or_else(|error| eprintln!("{peer}: {error}")) };
                spawn(told).detach();
            }
            // No descriptor left, perhaps, which is told once: the listener itself works on.
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// One client, from its request to its close.
async fn connection(stream: TcpStream, room: Room, stop: Stop) -> Result<(), Error> {
    stream.set_nodelay(true)?;
    let mut chats = false;
    #[allow(clippy::result_large_err)] // The library's.
    let note = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        chats = request.uri().path() == "/chat";
        Ok(response)
    };
    // Each connection has such a buffer from its start, and 128 KiB of it unless told otherwise.
    let config = WebSocketConfig::default().read_buffer_size(8 << 10).max_message_size(Some(16 << 20));
    let handshake = accept_hdr_async_with_config(stream, note, Some(config));
    let mut socket = timeout(HANDSHAKE, handshake).await.map_err(io::Error::from)??;

    let talk = async {
        match chats {
            true => chat::talk(&mut socket, &room).await,
            false => echo(&mut socket).await,
        }
    };
    let ended = match select(pin!(talk), stop).await {
        Either::Left((ended, _)) => ended,
        Either::Right(_) => Ok(CloseCode::Away),
    };
    let code = match &ended {
        Ok(code) => *code,
        Err(Error::Protocol(_)) => CloseCode::Protocol,
        Err(Error::Utf8(_)) => CloseCode::Invalid,
        Err(Error::Capacity(_)) => CloseCode::Size,
        // The connection is gone, or does not take what it is sent.
        Err(_) => return ended.map(drop),
    };
    // Whoever does not close in time, or resets, is gone as well.
    let _ = timeout(CLOSE, close(socket, code)).await;
    ended.map(drop)
}

/// Sends back what it receives, until the peer closes. Pings are answered by the library.
async fn echo(socket: &mut Socket) -> Result<CloseCode, Error> {
    while let Some(message) = socket.next().await {
        let message = message?;
        if message.is_text() || message.is_binary() {
            send(socket, message).await?;
        }
    }
    Ok(CloseCode::Normal)
}

/// Sends a message to a peer that takes it in time.
async fn send(socket: &mut Socket, message: Message) -> Result<(), Error> {
    timeout(SEND, socket.send(message)).await.map_err(io::Error::from)?
}

/// Says why, if the peer has not closed already, and waits for its end: with bytes that nobody has read, the system would reset
/// the connection, and the peer might not hear the reason.
async fn close(mut socket: Socket, code: CloseCode) -> Result<(), Error> {
    // An error says that this is closed.
    let _ = socket.close(Some(CloseFrame { code, reason: "".into() })).await;
    while let Some(Ok(_)) = socket.next().await {}
    let stream = socket.get_mut();
    stream.close().await?;
    while stream.read(&mut [0; 4096]).await? > 0 {}
    Ok(())
}
