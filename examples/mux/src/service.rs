//! The services of the server. The first line of a stream names one:
//!
//! | service | does |
//! |---|---|
//! | `echo` | returns the bytes |
//! | `count` | reads to the end, and returns the number of bytes |
//! | `slow` | the same, with a pause of 100 ms after each KiB |

use std::io;
use std::time::Duration;

use example_mux::{Connection, Error, Stream};
use futures::io::{BufReader, copy, sink};
use paceline::prelude::*;
use paceline::{Timer, spawn};

/// The maximum length of the first line.
const LINE: u64 = 64;
/// The code for an unknown service.
const UNKNOWN: u32 = 16;

/// Runs a task for each stream, until the peer opens no more.
pub(crate) async fn serve(connection: &Connection) -> Result<(), Error> {
    while let Some(stream) = connection.accept().await? {
        // If a stream ends early, the peer has caused it or was told; the driver returns the error of the
        // connection.
        spawn(async { answer(stream).await.unwrap_or(()) }).detach();
    }
    Ok(())
}

async fn answer(stream: Stream) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(16 << 10, &stream);
    let mut writer = &stream;
    let mut line = String::new();
    (&mut reader).take(LINE).read_line(&mut line).await?;
    let count = match line.as_str() {
        "echo\n" => {
            copy(reader, &mut writer).await?;
            return writer.close().await;
        }
        "count\n" => copy(reader, &mut sink()).await?,
        "slow\n" => {
            let mut count = 0;
            loop {
                match copy((&mut reader).take(1024), &mut sink()).await? {
                    0 => break count,
                    read => count += read,
                }
                Timer::after(Duration::from_millis(100)).await;
            }
        }
        _ => {
            stream.reset(UNKNOWN);
            return Ok(());
        }
    };
    writer.write_all(format!("{count}\n").as_bytes()).await?;
    writer.close().await
}
