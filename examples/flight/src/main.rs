//! A flight recorder: which task has blocked its thread, and what did the other threads do meanwhile?
//!
//! ```sh
//! cargo run --release -p example-flight              # writes to a folder for temporary files
//! cargo run --release -p example-flight -- FOLDER    # writes to this folder
//! ```
//!
//! A server with two workers echoes the lines of 16 clients. After a while a handler blocks its thread for 80
//! milliseconds. The runtime reports that after 10 ms, and when the block is over the program writes what its
//! flight recorder has:
//!
//! | file | for |
//! |---|---|
//! | `flight.pftrace` | Perfetto: open it in <https://ui.perfetto.dev> |
//! | `flight.dial9.bin` | the viewer of dial9 |
//! | `flight.plain.bin` | the scripts of dial9 that do not expect events of others |
//! | `flight.svg` | the block, and what came before and after it, as a picture |

#[path = "../../common/cli.rs"]
mod cli;
mod picture;

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, io, thread};

use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use paceline::trace::{Action, FlightRecorder, ThreadTrace, Trace};
use paceline::{Async, Runtime, Timer};

const WORKERS: usize = 2;
const CLIENTS: usize = 16;
const BLOCK: Duration = Duration::from_millis(80);
/// How long the clients talk before the block, and after its beginning.
const BEFORE: Duration = Duration::from_millis(60);
const AFTER: Duration = Duration::from_millis(140);
/// How much of the time before and after the block is in the picture.
const AROUND: Duration = Duration::from_millis(10);

fn main() -> ExitCode {
    cli::run(include_str!("main.rs"), |args| match args {
        [] => Ok(run(&env::temp_dir().join("paceline-flight"))?),
        [folder] if !folder.starts_with('-') => Ok(run(Path::new(folder))?),
        _ => Err(cli::refuse(args, "a FOLDER, or no arguments")),
    })
}

fn run(folder: &Path) -> io::Result<()> {
    let (tell, stalled) = mpsc::channel();
    let runtime =
        Runtime::builder().threads(WORKERS).on_stall(move |stall| _ = tell.send(stall.clone())).build()?;
    let recorder = FlightRecorder::new().start(&runtime);

    let addr = serve(&runtime)?;
    for _ in 0..CLIENTS {
        runtime.spawn(talk(addr)).detach();
    }
    thread::sleep(BEFORE);
    // The task to be found: it blocks its thread instead of awaiting a timer.
    runtime.spawn(async { thread::sleep(BLOCK) }).detach();
    match stalled.recv_timeout(Duration::from_secs(10)) {
        Ok(stall) => println!("{stall}"),
        Err(_) => return Err(io::Error::other("the block was not reported")),
    }
    thread::sleep(AFTER);

    let trace = recorder.snapshot();
    fs::create_dir_all(folder)?;
    if let Some((begin, end)) = describe(&trace) {
        let (from, to) = (begin.saturating_sub(AROUND), end + AROUND);
        fs::write(folder.join("flight.svg"), picture::svg(&trace, from, to))?;
    }
    trace.write_perfetto(File::create(folder.join("flight.pftrace"))?)?;
    trace.write_dial9(File::create(folder.join("flight.dial9.bin"))?)?;
    trace.write_dial9_plain(File::create(folder.join("flight.plain.bin"))?)?;
    println!(
        "written to {}: flight.pftrace, flight.dial9.bin, flight.plain.bin, flight.svg",
        folder.display()
    );
    Ok(())
}

/// Starts the server. Returns its address.
fn serve(runtime: &Runtime) -> io::Result<std::net::SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let addr = listener.local_addr()?;
    let server = async move {
        let listener = Async::new(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            paceline::spawn(echo(stream)).detach();
        }
    };
    runtime.spawn(future::or(server, future::pending::<io::Result<()>>())).detach();
    Ok(addr)
}

async fn echo(mut stream: Async<TcpStream>) -> io::Result<()> {
    let mut buffer = [0; 64];
    loop {
        let number = stream.read(&mut buffer).await?;
        if number == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..number]).await?;
    }
}

/// Sends a line every millisecond, and waits for its echo.
async fn talk(addr: std::net::SocketAddr) -> io::Result<()> {
    let mut stream = Async::<TcpStream>::connect(addr).await?;
    let mut buffer = [0; 5];
    loop {
        stream.write_all(b"hello").await?;
        stream.read_exact(&mut buffer).await?;
        Timer::after(Duration::from_millis(1)).await;
    }
}

/// A poll of a task: when it began and ended, and where the task was spawned.
type Poll = (Duration, Duration, &'static std::panic::Location<'static>);

/// Returns the polls of a thread that have begun and ended. No task of this program polls other tasks.
fn polls(thread: &ThreadTrace) -> Vec<Poll> {
    let mut begun = None;
    let mut polls = Vec::new();
    for event in &thread.events {
        match event.action {
            Action::PollBegins { spawned_at, .. } => begun = Some((event.at, spawned_at)),
            Action::PollEnds => {
                polls.extend(begun.take().map(|(begin, spawned_at)| (begin, event.at, spawned_at)));
            }
            _ => {}
        }
    }
    polls
}

/// Says which poll was the longest, and what the other threads did meanwhile. Returns when that poll began
/// and ended; `None` if there was none.
fn describe(trace: &Trace) -> Option<(Duration, Duration)> {
    let of_threads: Vec<_> = trace.threads.iter().map(polls).collect();
    let all = || of_threads.iter().flatten();
    let &(begin, end, place) = all().max_by_key(|(begin, end, _)| *end - *begin)?;
    let events: usize = trace.threads.iter().map(|thread| thread.events.len()).sum();
    println!("{} threads, {events} events, {} polls of tasks", trace.threads.len(), all().count());
    println!("the longest poll took {:.1?}, of the task spawned at {place}", end - begin);
    let meanwhile = all().filter(|(other, ..)| begin < *other && *other < end).count();
    println!("meanwhile other threads polled tasks {meanwhile} times");
    Some((begin, end))
}
