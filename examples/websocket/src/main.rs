//! A WebSocket server: at `/chat` every member receives all messages; everywhere else it is an echo.
//!
//! ```sh
//! cargo run --release -p example-websocket                      # talks to itself and ends
//! cargo run --release -p example-websocket -- 127.0.0.1:7001    # serves until Ctrl-C; try `npx wscat -c ws://127.0.0.1:7001/chat`
//! ```
//!
//! The protocol is that of `async-tungstenite`, without its runtime features: a `TcpStream` of paceline is a
//! stream for it. Look at `connection`: one task for each connection, limits for the handshake and for a peer
//! that does not read, and a close with a reason. A silent peer may stay, and the number of connections has
//! no limit here, as it has in `examples/http`.

mod chat;
#[path = "../../common/cli.rs"]
mod cli;
mod demo;
#[path = "../../common/patient.rs"]
mod patient;
#[path = "../../common/stop.rs"]
mod stop;

use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use async_tungstenite::tungstenite::Error;
use async_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use async_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use async_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use async_tungstenite::{WebSocketStream, accept_hdr_async_with_config};
use futures::channel::oneshot;
use futures::future::{Either, Shared, select};
use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::{Runtime, spawn, timeout};

use chat::Room;
use patient::Patient;

/// For the client's request, and for its close.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long a client may read nothing although messages wait. A slow reader has as much time as a long
/// message takes.
const SEND: Duration = Duration::from_secs(10);
const CLOSE: Duration = Duration::from_secs(1);
/// How long connections have when the server stops.
const GRACE: Duration = Duration::from_secs(2);

type Socket = WebSocketStream<Patient<TcpStream>>;
/// Ready, for all clones, when its sender is dropped.
type Stop = Shared<oneshot::Receiver<()>>;

fn main() -> ExitCode {
    cli::run(include_str!("main.rs"), |args| Ok(run(cli::address(args)?)?))
}

/// Serves on this address until Ctrl-C; without an address, talks to itself and ends.
fn run(addr: Option<&str>) -> io::Result<()> {
    let runtime = Runtime::builder().build()?;
    let report = runtime.block_on(async {
        let listener = TcpListener::bind(addr.unwrap_or("127.0.0.1:0")).await?;
        let (stop, stopped) = oneshot::channel();
        let server = serve(&listener, stopped.shared());
        match addr {
            Some(_) => {
                let asked = stop::asked()?.map(Ok);
                println!("serving on {}, until Ctrl-C", listener.local_addr()?);
                select(pin!(server), pin!(asked)).await.factor_first().0?;
            }
            None => {
                let talk = demo::talk(listener.local_addr()?);
                select(pin!(server), pin!(talk)).await.factor_first().0?;
            }
        }
        // No client is accepted any more, and connected ones get a close. Messages that are not sent by then
        // are dropped.
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
            // Perhaps no descriptor is free; that is reported once, and the listener continues.
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// Serves one client, from its request to its close.
async fn connection(stream: TcpStream, room: Room, stop: Stop) -> Result<(), Error> {
    stream.set_nodelay(true)?;
    let mut chats = false;
    #[allow(clippy::result_large_err)] // The library's.
    let note = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        chats = request.uri().path() == "/chat";
        Ok(response)
    };
    // Each connection has such a buffer from its start; the default is 128 KiB.
    let config = WebSocketConfig::default().read_buffer_size(8 << 10).max_message_size(Some(16 << 20));
    let handshake = accept_hdr_async_with_config(Patient::new(stream, SEND), note, Some(config));
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
        // The connection has ended, or the client does not read.
        Err(_) => return ended.map(drop),
    };
    // A client that does not close in time, or resets, has disconnected, too.
    let _ = timeout(CLOSE, close(socket, code)).await;
    ended.map(drop)
}

/// Sends back all messages, until the peer closes. The library answers pings.
async fn echo(socket: &mut Socket) -> Result<CloseCode, Error> {
    while let Some(message) = socket.next().await {
        let message = message?;
        if message.is_text() || message.is_binary() {
            socket.send(message).await?;
        }
    }
    Ok(CloseCode::Normal)
}

/// Sends the reason, if the peer has not closed already, and waits for its end: with unread bytes, the system
/// would reset the connection, and the peer might not receive the reason.
async fn close(mut socket: Socket, code: CloseCode) -> Result<(), Error> {
    // An error means that the socket is closed.
    let _ = socket.close(Some(CloseFrame { code, reason: "".into() })).await;
    while let Some(Ok(_)) = socket.next().await {}
    let stream = socket.get_mut();
    stream.close().await?;
    while stream.read(&mut [0; 4096]).await? > 0 {}
    Ok(())
}
