//! A server of streams over few connections, and a client of it.
//!
//! ```sh
//! cargo run --release -p example-mux                                    # talks to itself and ends
//! cargo run --release -p example-mux -- 127.0.0.1:7002                  # serves until Ctrl-C
//! cargo run --release -p example-mux -- connect 127.0.0.1:7002 count    # a stream to it, from stdin and to stdout
//! cargo run --release -p example-mux -- measure                         # the figures, in half a minute
//! ```
//!
//! The library beside it does the work (`src/lib.rs`), by the protocol that the package's README specifies. Look at `connection`: one task
//! for the transport, one for each stream (`src/service.rs`), and a stop that lets both end.

mod demo;
mod measure;
mod service;

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
use paceline::signal::{Signal, Signals};
use paceline::{Runtime, Unblock, spawn, timeout};

/// So many connections at once. Each has 14 MiB at most: by `config` 80 KiB for each of 128 streams, 16 KiB more for what serves it, and
/// 2 MiB.
const CONNECTIONS: usize = 100;
/// What streams have to end in when the server is asked to stop.
const GRACE: Duration = Duration::from_secs(2);

/// Is ready, for all that have a clone, when its sender is dropped.
type Stop = Shared<oneshot::Receiver<()>>;

/// What the server allows its clients.
fn config() -> Config {
    Config { window: 64 << 10, ..Config::default() }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let runtime = Runtime::builder().build()?;
    match args[..] {
        ["connect", addr] => return runtime.block_on(connect(addr, "echo")),
        ["connect", addr, service] => return runtime.block_on(connect(addr, service)),
        ["measure"] => return runtime.block_on(measure::measure()),
        [] | [_] => {}
        _ => {
            return Err(io::Error::other(
                "what it takes is ADDRESS, or connect ADDRESS [SERVICE], or measure",
            ));
        }
    }
    let report = runtime.block_on(async {
        let listener = TcpListener::bind(*args.first().unwrap_or(&"127.0.0.1:0")).await?;
        let (stop, stopped) = oneshot::channel();
        let server = serve(&listener, stopped.shared());
        if args.is_empty() {
            let talk = demo::talk(listener.local_addr()?);
            select(pin!(server), pin!(talk)).await.factor_first().0?;
        } else {
            let mut signals = Signals::new([Signal::Interrupt, Signal::Terminate])?;
            println!("serving on {}, until Ctrl-C", listener.local_addr()?);
            let stopped = async { signals.next().await.map(drop) };
            select(pin!(server), pin!(stopped)).await.factor_first().0?;
        }
        // Nobody comes in any more, and those who are here are told.
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
            // No descriptor left, perhaps, which is told once: the listener itself works on.
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// One client, to its end.
async fn connection(stream: TcpStream, stop: Stop) -> Result<(), Error> {
    // Frames go out when they are there. A peer that is gone already is found out by the driver.
    let _ = stream.set_nodelay(true);
    let (connection, driver) = server(stream, config());
    let driver = spawn(driver);
    // What has ended the services, the driver says as well.
    select(pin!(service::serve(&connection)), stop.clone()).await;
    // It says GOODBYE, and ends after the last stream; once asked to stop, it has not for ever.
    drop(connection);
    match select(driver, stop).await {
        Either::Left((result, _)) => result,
        Either::Right((_, driver)) => timeout(GRACE, driver).await.unwrap_or(Err(Error::Abandoned)),
    }
}

/// A stream to a service, to which goes what comes from stdin, and from which comes what goes to stdout.
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
