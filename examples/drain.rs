//! A server that ends gracefully: SIGTERM stops accepting, clients finish, and a report lists those that did
//! not.
//!
//! ```sh
//! cargo run --release --example drain          # runs its own clients, sends itself the signal, ends within a second
//! cargo run --release --example drain -- 30    # clients have 30 seconds to finish: time to press Ctrl-C
//! ```
//!
//! Look at `run`: the signal ends `accept`, and `drain` does the rest. All clients but one finish in time;
//! the last one stays silent, and is disconnected at the deadline. A second signal, such as Ctrl-C, ends the
//! program at once.

#[path = "common/cli.rs"]
mod cli;

use std::process::ExitCode;
use std::time::Duration;

/// How long clients have to finish.
const GRACE: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    cli::run(include_str!("drain.rs"), |args| {
        let seconds =
            |arg: &str| arg.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let grace = match args {
            [] => Some(GRACE),
            [arg] => seconds(arg),
            _ => None,
        };
        let grace = grace
            .ok_or_else(|| cli::refuse(args, "the SECONDS that clients have to finish, or no arguments"))?;
        Ok(unix::run(grace)?)
    })
}

#[cfg(not(unix))]
mod unix {
    pub(super) fn run(_grace: std::time::Duration) -> std::io::Result<()> {
        println!("this example waits for a signal of Unix");
        Ok(())
    }
}

#[cfg(unix)]
mod unix {
    use std::io::{self, Read, Write};
    use std::net::{SocketAddr, TcpStream as StdStream};
    use std::sync::mpsc::{self, Sender};
    use std::time::Duration;
    use std::{process, thread};

    use futures_lite::{AsyncReadExt, AsyncWriteExt, FutureExt};
    use paceline::net::{TcpListener, TcpStream};
    use paceline::signal::{Signal, Signals};
    use paceline::{Runtime, block_on, spawn};
    use rustix::process::{Signal as Number, getpid, kill_process};

    const CLIENTS: usize = 20;
    const ROUNDS: usize = 30;

    pub(super) fn run(grace: Duration) -> io::Result<()> {
        let runtime = Runtime::builder().threads(2).build()?;

        let report = runtime.block_on(async {
            let mut signals = Signals::new([Signal::Interrupt, Signal::Terminate])?;
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let addr = listener.local_addr()?;
            let (served, is_served) = mpsc::channel();
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    let served = served.clone();
                    thread::spawn(move || talk(addr, number, &served))
                })
                .collect();
            let silent = thread::spawn(move || stay_silent(addr, served));

            // Sends the signal while the clients are busy: each has had its first answer.
            let sender = thread::spawn(move || {
                is_served.iter().take(CLIENTS + 1).for_each(drop);
                kill_process(getpid(), Number::TERM)
            });
            let signal = async { signals.next().await.map(drop) };
            serve(&listener).or(signal).await?;
            sender.join().expect("it only sends")?;
            println!("SIGTERM: {} tasks are left, and have {grace:?}", runtime.metrics().tasks.unwrap_or(0));
            drop(listener);
            // Waits for the second signal. On a thread of its own, because `drain` would wait for a task.
            thread::spawn(move || {
                if block_on(signals.next()).is_ok() {
                    eprintln!("ended at once by a second signal");
                    process::exit(130);
                }
            });

            let report = runtime.drain(grace).await;
            let joined = clients.into_iter().map(|client| client.join().expect("no client panics"));
            let done = joined.filter(Result::is_ok).count();
            println!("{done} of {CLIENTS} clients had all their answers");
            silent.join().expect("it does not panic")?;
            io::Result::Ok(report)
        })?;
        println!("{report}");
        Ok(())
    }

    /// Accepts connections, and spawns a task for each.
    async fn serve(listener: &TcpListener) -> io::Result<()> {
        loop {
            let (stream, _peer) = listener.accept().await?;
            spawn(echo(stream)).detach();
        }
    }

    async fn echo(mut stream: TcpStream) -> io::Result<()> {
        let mut buffer = [0; 64];
        loop {
            match stream.read(&mut buffer).await? {
                0 => return Ok(()),
                n => stream.write_all(&buffer[..n]).await?,
            }
        }
    }

    /// Runs a client that pauses between its messages, and waits for an answer to each.
    fn talk(addr: SocketAddr, number: usize, served: &Sender<()>) -> io::Result<()> {
        let mut stream = connect(addr, served)?;
        for _ in 1..ROUNDS {
            thread::sleep(Duration::from_millis(1 + number as u64 % 5));
            ask(&mut stream)?;
        }
        Ok(())
    }

    /// Runs a client that sends one message, and then only waits until the server disconnects it.
    fn stay_silent(addr: SocketAddr, served: Sender<()>) -> io::Result<()> {
        let mut stream = connect(addr, &served)?;
        // Otherwise the sender of the signal would wait for ever if another client fails.
        drop(served);
        let _reads = stream.read(&mut [0; 4])?;
        Ok(())
    }

    /// Connects, and tells the sender of the signal that there was an answer.
    fn connect(addr: SocketAddr, served: &Sender<()>) -> io::Result<StdStream> {
        let mut stream = StdStream::connect(addr)?;
        ask(&mut stream)?;
        // After the signal, no thread receives this.
        let _ = served.send(());
        Ok(stream)
    }

    fn ask(stream: &mut StdStream) -> io::Result<()> {
        stream.write_all(b"word")?;
        stream.read_exact(&mut [0; 4])
    }
}
