//! The program without arguments: a client of its own, with one connection.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use example_mux::{Config, Connection, Stream, client};
use paceline::net::TcpStream;
use paceline::prelude::*;
use paceline::{spawn, timeout};

const STREAMS: usize = 100;
const ECHOES: usize = 100;
const MESSAGE: usize = 4 << 10;

pub(crate) async fn talk(addr: SocketAddr) -> io::Result<()> {
    let stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let (connection, driver) = client(stream, Config::default());
    spawn(driver).detach();

    // A stream that is hardly read: it sends as much as fits into the window, and then no more.
    let mut slow = ask(&connection, "slow").await?;
    let mut taken = 0;
    while let Ok(written) = timeout(Duration::from_millis(200), slow.write(&[7; MESSAGE])).await {
        taken += written?;
    }
    println!("a stream that is hardly read has taken {taken} bytes, and waits");

    // The other streams continue.
    let start = Instant::now();
    let mut talks = Vec::new();
    for number in 0..STREAMS {
        let mut stream = ask(&connection, "echo").await?;
        talks.push(spawn(async move {
            let (sent, mut back) = (vec![number as u8; MESSAGE], vec![0; MESSAGE]);
            for _ in 0..ECHOES {
                stream.write_all(&sent).await?;
                stream.read_exact(&mut back).await?;
                assert_eq!(back, sent);
            }
            stream.close().await?;
            assert_eq!(stream.read(&mut back).await?, 0, "it has said all");
            io::Result::Ok(())
        }));
    }
    for talk in talks {
        talk.await?;
    }
    println!("{} echoes beside it on {STREAMS} streams, in {:.0?}", STREAMS * ECHOES, start.elapsed());

    // Ends of one direction, and of both.
    let mut counted = ask(&connection, "count").await?;
    counted.write_all(&vec![7; 100 * MESSAGE]).await?;
    counted.close().await?;
    let mut count = String::new();
    counted.read_to_string(&mut count).await?;
    println!("a stream that is closed for writing is still answered: {} bytes", count.trim_end());
    let error = ask(&connection, "nonsense").await?.read(&mut [0]).await.expect_err("the service is unknown");
    println!("an unknown service: {error}");

    drop((slow, counted));
    Ok(connection.close().await?)
}

async fn ask(connection: &Connection, service: &str) -> io::Result<Stream> {
    let mut stream = connection.open().await?;
    stream.write_all(format!("{service}\n").as_bytes()).await?;
    Ok(stream)
}
