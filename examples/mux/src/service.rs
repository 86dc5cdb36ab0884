//! What the server does with streams. The first line of each names a service:
//!
//! | service | does |
//! |---|---|
//! | `echo` | sends back what comes |
//! | `count` | reads to the end, and says how many bytes these were |
//! | `slow` | the same, with a rest of 100 ms after each KiB |

use std::io;
use std::time::Duration;

use example_mux::{Connection, Error, Stream};
use futures::io::{BufReader, copy, sink};
use paceline::prelude::*;
use paceline::{Timer, spawn};

/// The first line is not longer.
const LINE: u64 = 64;
/// The code for a stream that asks for something else.
const UNKNOWN: u32 = 16;

/// Has a task for each stream, until the peer opens no more.
pub(crate) async fn serve(connection: &Connection) -> Result<(), Error> {
    while let Some(stream) = connection.accept().await? {
        // Whatever ends a stream early, its peer knows: it has done it, or was told. What ends the connection, the driver says.
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
