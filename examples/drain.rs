//! A server that ends well: SIGTERM has it stop accepting, its clients finish, and a report says what did not.
//!
//! ```sh
//! cargo run --release --example drain    # has clients of its own, sends itself the signal, ends within a second
//! ```
//!
//! Look at `main`: the signal ends `accept`, and `drain` does the rest. Of the clients all but one are done in time; that
//! one never says another word, and is cut off at the deadline.

#[cfg(unix)]
fn main() -> std::io::Result<()> {
    unix::main()
}

#[cfg(not(unix))]
fn main() {
    println!("this example waits for a signal of Unix");
}

#[cfg(unix)]
mod unix {
    use std::io::{self, Read, Write};
    use std::net::SocketAddr;
    use std::thread;
    use std::time::Duration;

    use futures_lite::{AsyncReadExt, AsyncWriteExt, FutureExt};
    use paceline::net::{TcpListener, TcpStream};
    use paceline::signal::{Signal, Signals};
    use paceline::{Runtime, spawn};
    use rustix::process::{Signal as Number, getpid, kill_process};

    const CLIENTS: usize = 20;
    const ROUNDS: usize = 30;
    const GRACE: Duration = Duration::from_millis(500);

    pub(super) fn main() -> io::Result<()> {
        let runtime = Runtime::builder().threads(2).build()?;

        let report = runtime.block_on(async {
            let mut signals = Signals::new([Signal::Terminate])?;
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let addr = listener.local_addr()?;
            let clients: Vec<_> =
                (0..CLIENTS).map(|number| thread::spawn(move || talk(addr, number))).collect();
            let silent = TcpStream::connect(addr).await?;

            // The signal, in the middle of it all.
            let sender = thread::spawn(move || {
                thread::sleep(Duration::from_millis(50));
                kill_process(getpid(), Number::TERM)
            });
            let signal = async { signals.next().await.map(drop) };
            serve(&listener).or(signal).await?;
            sender.join().expect("it only sends")?;
            println!("SIGTERM: {} tasks are left, and have {GRACE:?}", runtime.metrics().tasks.unwrap_or(0));
            drop(listener);

            let report = runtime.drain(GRACE).await;
            let joined = clients.into_iter().map(|client| client.join().expect("no client panics"));
            let done = joined.filter(Result::is_ok).count();
            println!("{done} of {CLIENTS} clients had all their answers");
            drop(silent);
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

    /// A client: takes its time, and wants an answer to each word.
    fn talk(addr: SocketAddr, number: usize) -> io::Result<()> {
        let mut stream = std::net::TcpStream::connect(addr)?;
        for _ in 0..ROUNDS {
            thread::sleep(Duration::from_millis(1 + number as u64 % 5));
            stream.write_all(b"word")?;
            stream.read_exact(&mut [0; 4])?;
        }
        Ok(())
    }
}
