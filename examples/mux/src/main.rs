//! A server for many streams over few connections, and a client.
//!
//! ```sh
//! cargo run --release -p example-mux                                    # talks to itself and ends
//! cargo run --release -p example-mux -- 127.0.0.1:7002                  # serves until Ctrl-C
//! cargo run --release -p example-mux -- connect 127.0.0.1:7002 count    # a stream between it and stdin and stdout
//! cargo run --release -p example-mux -- measure                         # the figures, in half a minute
//! ```
//!
//! The library does the work (`src/lib.rs`), with the protocol that the package's README specifies. Look at
//! `connection`: one task for the transport, one for each stream (`src/service.rs`), and a stop that lets
//! both end.

#[path = "../../common/cli.rs"]
mod cli;
mod demo;
mod measure;
mod service;
#[path = "../../common/stop.rs"]
mod stop;

use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use example_mux::{Config, Error, client, server};
use futures::channel::oneshot;
use futures::future::{Either, Shared, select, try_join};
use futures::io::copy;
use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::{Runtime, Unblock, spawn, timeout};

/// Connections at once. Each has 14 MiB at most: by `config` 80 KiB for each of 128 streams, 16 KiB more for
/// its service, and 2 MiB.
const CONNECTIONS: usize = 100;
/// How long streams have to end when the server is asked to stop.
const GRACE: Duration = Duration::from_secs(2);

/// Ready, for all clones, when its sender is dropped.
type Stop = Shared<oneshot::Receiver<()>>;

/// The limits for clients of the server.
fn config() -> Config {
    Config { window: 64 << 10, ..Config::default() }
}

fn main() -> ExitCode {
    cli::run(include_str!("main.rs"), |args| {
        let runtime = Runtime::builder().build()?;
        match *args {
            ["connect", addr] => runtime.block_on(connect(addr, "echo"))?,
            ["connect", addr, service] => runtime.block_on(connect(addr, service))?,
            ["measure"] => runtime.block_on(measure::measure())?,
            [] => run(&runtime, None)?,
            [addr] if addr.contains(':') => run(&runtime, Some(addr))?,
            _ => {
                let takes = "ADDRESS:PORT, connect ADDRESS:PORT [SERVICE], measure, or no arguments";
                return Err(cli::refuse(args, takes));
            }
        }
        Ok(())
    })
}

/// Serves on this address until Ctrl-C; without an address, talks to itself and ends.
fn run(runtime: &Runtime, addr: Option<&str>) -> io::Result<()> {
    let report = runtime.block_on(async {
        let listener = TcpListener::bind(addr.unwrap_or("127.0.0.1:0")).await?;
        let (stop, stopped) = oneshot::channel();
        let server = serve(&listener, stopped.shared());
        if addr.is_none() {
            let talk = demo::talk(listener.local_addr()?);
            select(pin!(server), pin!(talk)).await.factor_first().0?;
        } else {
            let asked = stop::asked()?.map(Ok);
            println!("serving on {}, until Ctrl-C", listener.local_addr()?);
            select(pin!(server), pin!(asked)).await.factor_first().0?;
        }
        // No client is accepted any more, and connected ones get a GOODBYE.
        drop((listener, stop));
        io::Result::Ok(runtime.drain(2 * GRACE).await)
    })?;
    println!("{report}");
    Ok(())
}

/// Accepts connections, and spawns a task for each.
async fn serve(listener: &TcpListener, stop: Stop) -> io::Result<()> {
    let room = Arc::new(());
    loop {
        match listener.accept().await {
            Ok((_, peer)) if Arc::strong_count(&room) > CONNECTIONS => eprintln!("{peer}: there is no room"),
            Ok((stream, peer)) => {
                let (place, connection) = (room.clone(), connection(stream, stop.clone()));
                spawn(async move {
                    let _place = place;
                    connection.await.unwrap_or_else(|error| eprintln!("{peer}: {error}"));
                })
                .detach();
            }
            // Perhaps no descriptor is free; that is reported once, and the listener continues.
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// Serves one client to its end.
async fn connection(stream: TcpStream, stop: Stop) -> Result<(), Error> {
    // Frames are sent at once. If the peer has already disconnected, the driver notices.
    let _ = stream.set_nodelay(true);
    let (connection, driver) = server(stream, config());
    let driver = spawn(driver);
    // The driver also returns the error that has ended the services.
    select(pin!(service::serve(&connection)), stop.clone()).await;
    // Sends GOODBYE, and ends after the last stream; after a stop the time for that is limited.
    drop(connection);
    match select(driver, stop).await {
        Either::Left((result, _)) => result,
        Either::Right((_, driver)) => timeout(GRACE, driver).await.unwrap_or(Err(Error::Abandoned)),
    }
}

/// Opens a stream to a service, copies stdin to it, and the answer to stdout.
async fn connect(addr: &str, service: &str) -> io::Result<()> {
    let stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let (connection, driver) = client(stream, Config::default());
    let driver = spawn(driver);
    let stream = connection.open().await?;
    let send = async {
        let mut writer = &stream;
        writer.write_all(format!("{service}\n").as_bytes()).await?;
        copy(Unblock::new(io::stdin()), &mut writer).await?;
        writer.close().await
    };
    let receive = async {
        let mut stdout = Unblock::new(io::stdout());
        copy(&stream, &mut stdout).await?;
        stdout.flush().await
    };
    try_join(send, receive).await?;
    drop((stream, connection));
    Ok(driver.await?)
}
