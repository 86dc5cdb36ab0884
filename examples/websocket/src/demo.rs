//! The program without arguments: clients of its own.

use std::io;
use std::net::SocketAddr;

use async_tungstenite::client_async;
use async_tungstenite::tungstenite::Message;
use paceline::net::TcpStream;
use paceline::prelude::*;

use crate::patient::Patient;
use crate::{SEND, Socket};

const ECHOES: usize = 1000;
const MEMBERS: usize = 20;

/// Talks to the echo, then to itself in the chat.
pub(crate) async fn talk(addr: SocketAddr) -> io::Result<()> {
    let mut echo = connect(addr, "echo").await?;
    for number in 0..ECHOES {
        let sent = Message::text(format!("hello {number}"));
        echo.send(sent.clone()).await.map_err(io::Error::other)?;
        assert_eq!(hear(&mut echo).await?, sent);
    }
    echo.close(None).await.map_err(io::Error::other)?;
    println!("{ECHOES} echoes");

    // The first member speaks when all others are there: all of them have received each other's arrival.
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        let mut member = connect(addr, "chat").await?;
        member.send(Message::text("here I am")).await.map_err(io::Error::other)?;
        for before in &mut members {
            assert_eq!(hear(before).await?, Message::text(format!("{}: here I am", number + 1)));
        }
        members.push(member);
    }
    members[0].send(Message::text("welcome")).await.map_err(io::Error::other)?;
    for member in &mut members[1..] {
        assert_eq!(hear(member).await?, Message::text("1: welcome"));
    }
    for member in &mut members {
        member.close(None).await.map_err(io::Error::other)?;
    }
    println!("{MEMBERS} members of a chat, {} messages heard", (MEMBERS - 1) * (MEMBERS + 2) / 2);
    Ok(())
}

async fn connect(addr: SocketAddr, path: &str) -> io::Result<Socket> {
    let stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let (socket, _response) = client_async(format!("ws://{addr}/{path}"), Patient::new(stream, SEND))
        .await
        .map_err(io::Error::other)?;
    Ok(socket)
}

async fn hear(socket: &mut Socket) -> io::Result<Message> {
    socket.next().await.ok_or(io::ErrorKind::UnexpectedEof)?.map_err(io::Error::other)
}
