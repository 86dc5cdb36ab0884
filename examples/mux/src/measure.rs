//! Measures streams over one connection beside one TCP stream, and streams beside a stalled one. All runs are
//! in one process, over loopback, and alternate, so that disturbances affect all alike. The last output is
//! the median of the rounds.

use std::io;
use std::time::{Duration, Instant};

use example_mux::{Config, Connection, client, server};
use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::{Task, spawn};

use crate::service;

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_millis(700);
const MESSAGE: usize = 16 << 10;
const STREAMS: usize = 100;

pub(crate) async fn measure() -> io::Result<()> {
    let names = [
        "one TCP stream, messages of 16 KiB".to_owned(),
        format!("{STREAMS} streams over a connection, messages of 16 KiB"),
        "one stream over a connection, messages of 16 KiB".to_owned(),
        "one TCP stream, messages of 256 KiB".to_owned(),
    ];
    let mut speeds = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        speeds[0].push(tcp(MESSAGE).await?);
        speeds[1].push(streams(STREAMS).await?);
        speeds[2].push(streams(1).await?);
        speeds[3].push(tcp(16 * MESSAGE).await?);
    }
    let speeds = speeds.map(median);
    for (name, speed) in names.iter().zip(speeds) {
        println!("{name}: {:.0} MB/s, {:.2} of the first", speed / 1e6, speed / speeds[0]);
    }
    println!("wanted for {STREAMS} streams: at least 0.50\n");

    let mut p99s = [const { Vec::new() }; 2];
    for round in 0..2 * ROUNDS {
        // In turns, so that each is equally often the first.
        let stalled = [false, true, true, false][round % 4];
        let mut times = echoes(stalled).await?;
        times.sort_unstable();
        let share = |percent| times[times.len() * percent / 100];
        let beside = if stalled { "beside one that stalls" } else { "with none that stalls" };
        println!("{} echoes {beside}: p50 {:?}, p99 {:?}", times.len(), share(50), share(99));
        p99s[usize::from(stalled)].push(share(99).as_secs_f64());
    }
    let [without, with] = p99s.map(median);
    println!("p99 beside one that stalls: {:.2} of that without; wanted: at most 1.50", with / without);
    Ok(())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures[figures.len() / 2]
}

async fn tcp_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let ours = TcpStream::connect(listener.local_addr()?).await?;
    let (theirs, _) = listener.accept().await?;
    ours.set_nodelay(true)?;
    theirs.set_nodelay(true)?;
    Ok((ours, theirs))
}

/// Connects over TCP to the services.
async fn connection() -> io::Result<Connection> {
    let (ours, theirs) = tcp_pair().await?;
    let (there, driver) = server(theirs, Config::default());
    spawn(driver).detach();
    spawn(async move { service::serve(&there).await }).detach();
    let (here, driver) = client(ours, Config::default());
    spawn(driver).detach();
    Ok(here)
}

/// Returns the bytes per second over one TCP stream, read and written in messages.
async fn tcp(message: usize) -> io::Result<f64> {
    let (mut ours, mut theirs) = tcp_pair().await?;
    let reader = spawn(async move {
        let (mut buffer, mut count) = (vec![0; message], 0);
        while theirs.read_exact(&mut buffer).await.is_ok() {
            count += message;
        }
        count
    });
    let start = Instant::now();
    let writer: Task<io::Result<()>> = spawn(async move {
        let message = vec![7; message];
        while start.elapsed() < ROUND {
            ours.write_all(&message).await?;
        }
        ours.close().await
    });
    writer.await?;
    Ok(reader.await as f64 / start.elapsed().as_secs_f64())
}

/// The same over streams of one connection, as counted by the service.
async fn streams(streams: usize) -> io::Result<f64> {
    let connection = connection().await?;
    let start = Instant::now();
    let mut writers = Vec::new();
    for _ in 0..streams {
        let mut stream = connection.open().await?;
        writers.push(spawn(async move {
            let message = vec![7; MESSAGE];
            stream.write_all(b"count\n").await?;
            while start.elapsed() < ROUND {
                stream.write_all(&message).await?;
            }
            stream.close().await?;
            let mut count = String::new();
            stream.read_to_string(&mut count).await?;
            count.trim_end().parse::<usize>().map_err(io::Error::other)
        }));
    }
    let mut count = 0;
    for writer in writers {
        count += writer.await?;
    }
    let speed = count as f64 / start.elapsed().as_secs_f64();
    connection.close().await?;
    Ok(speed)
}

/// Returns how long each echo takes on all of the streams but one, which stalls or does not exist.
async fn echoes(stalled: bool) -> io::Result<Vec<Duration>> {
    let connection = connection().await?;
    let stalls: Option<Task<io::Result<()>>> = match stalled {
        false => None,
        true => {
            let mut stream = connection.open().await?;
            Some(spawn(async move {
                stream.write_all(b"slow\n").await?;
                // Always more than there is room for.
                loop {
                    stream.write_all(&[7; MESSAGE]).await?;
                }
            }))
        }
    };
    let start = Instant::now();
    let mut talks = Vec::new();
    for _ in 1..STREAMS {
        let mut stream = connection.open().await?;
        talks.push(spawn(async move {
            let (message, mut back, mut times) = (vec![7; MESSAGE], vec![0; MESSAGE], Vec::new());
            stream.write_all(b"echo\n").await?;
            while start.elapsed() < ROUND {
                let begin = Instant::now();
                stream.write_all(&message).await?;
                stream.read_exact(&mut back).await?;
                times.push(begin.elapsed());
            }
            io::Result::Ok(times)
        }));
    }
    let mut times = Vec::new();
    for talk in talks {
        times.extend(talk.await?);
    }
    drop(stalls);
    Ok(times)
}
