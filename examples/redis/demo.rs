//! A client of the program's own, with the answers that it gets.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures::io::BufReader;
use paceline::net::TcpStream;
use paceline::prelude::*;
use paceline::{Runtime, Timer, spawn};

use crate::server::{Server, Shared};
use crate::{GRACE, totals};

/// Connections at a time.
const LIMIT: usize = 40;
/// Clients that add to one number, and how often each does.
const CLIENTS: usize = 20;
const TIMES: usize = 1000;

pub fn run(runtime: &Runtime) -> io::Result<()> {
    runtime.block_on(async {
        let server = Server::bind("127.0.0.1:0", LIMIT).await?;
        let (address, shared) = (server.local_addr()?.to_string(), server.shared());
        let (stop, stopped) = async_channel::bounded::<()>(1);
        let serving = spawn(server.serve(async move { _ = stopped.recv().await }));

        let mut client = Client::connect(&address).await?;
        for command in [
            "SET greeting hello",
            "GET greeting",
            "SET gone soon PX 20",
            "INCR greeting",
            "TTL greeting",
            "FLY",
        ] {
            println!("{command:25} {}", client.ask(command).await?);
        }
        Timer::after(Duration::from_millis(30)).await;
        println!("{:25} {}", "GET gone, 30 ms later", client.ask("GET gone").await?);

        add(&address, &mut client).await?;
        listen(&address, &mut client).await?;
        limit(&address, &shared).await?;

        drop(stop);
        serving.await;
        let error = client.ask("GET greeting").await.expect_err("the server has stopped");
        println!("{:25} {error}", "GET after the stop");
        drop(client);
        println!("{}", runtime.drain(GRACE).await);
        println!("{}", totals(&shared));
        Ok(())
    })
}

/// Many clients at once, each with many commands on the way.
async fn add(address: &str, client: &mut Client) -> io::Result<()> {
    let tasks: Vec<_> = (0..CLIENTS).map(|_| spawn(add_often(address.to_string()))).collect();
    for task in tasks {
        task.await?;
    }
    println!("{:25} {}", format!("INCR sum, {CLIENTS} x {TIMES} times"), client.ask("GET sum").await?);
    Ok(())
}

async fn add_often(address: String) -> io::Result<()> {
    let mut client = Client::connect(&address).await?;
    client.0.get_mut().write_all("INCR sum\r\n".repeat(TIMES).as_bytes()).await?;
    for _ in 0..TIMES {
        client.reply().await?;
    }
    Ok(())
}

async fn listen(address: &str, client: &mut Client) -> io::Result<()> {
    let mut listener = Client::connect(address).await?;
    println!("{:25} {}", "SUBSCRIBE news", listener.ask("SUBSCRIBE news").await?);
    println!("{:25} {}", "PUBLISH news hello", client.ask("PUBLISH news hello").await?);
    println!("{:25} {}", "  the subscriber gets", listener.reply().await?);
    Ok(())
}

/// Connects one client more than allowed.
async fn limit(address: &str, shared: &Shared) -> io::Result<()> {
    let mut clients = Vec::new();
    while shared.totals.refused.load(Relaxed) == 0 {
        clients.push(Client::connect(address).await?);
        Timer::after(Duration::from_millis(1)).await;
    }
    let mut last = clients.pop().expect("one was refused");
    println!("{:25} {}", format!("{LIMIT} connections and one"), last.reply().await?);
    Ok(())
}

struct Client(BufReader<TcpStream>);

impl Client {
    async fn connect(address: &str) -> io::Result<Self> {
        Ok(Self(BufReader::new(TcpStream::connect(address).await?)))
    }

    async fn ask(&mut self, command: &str) -> io::Result<String> {
        self.0.get_mut().write_all(format!("{command}\r\n").as_bytes()).await?;
        self.reply().await
    }

    /// Reads a reply of one line.
    async fn reply(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.0.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        match (line.split_at(1), line[1..].parse()) {
            (("$", _), Ok(bytes)) => {
                let mut bulk = vec![0; bytes];
                self.0.read_exact(&mut bulk).await?;
                self.0.read_exact(&mut [0; 2]).await?;
                Ok(String::from_utf8_lossy(&bulk).into_owned())
            }
            (("$", _), Err(_)) => Ok("nothing".into()),
            (("*", _), Ok(parts)) => {
                let mut all = Vec::new();
                for _ in 0..parts {
                    all.push(Box::pin(self.reply()).await?);
                }
                Ok(all.join(" "))
            }
            _ => Ok(line.into()),
        }
    }
}
