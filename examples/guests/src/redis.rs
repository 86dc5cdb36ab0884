//! redis: its client, against a server of a few lines.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::{block_on, spawn};
use redis::aio::MultiplexedConnection;
use redis::{AsyncTypedCommands, Client, RedisConnectionInfo};

use crate::Outcome;

/// Without name and password. The connection is served while this exists.
static INFO: LazyLock<RedisConnectionInfo> = LazyLock::new(RedisConnectionInfo::default);

type Values = Arc<Mutex<HashMap<String, String>>>;

/// Answers SET and GET, and rejects the rest, such as the client's introduction.
async fn serve(stream: TcpStream, values: Values) -> Outcome {
    let mut write = stream.clone();
    let mut lines = futures::io::BufReader::new(stream).lines();
    // `*2`, then `$3`, `GET`, `$1`, `k`.
    while let Some(count) = lines.try_next().await? {
        let mut words = Vec::new();
        for _ in 0..count.trim_start_matches('*').parse::<usize>()? {
            let _len = lines.try_next().await?;
            words.push(lines.try_next().await?.ok_or("the command ends too soon")?);
        }
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let answer = match words[..] {
            ["SET", key, value] => {
                values.lock().unwrap().insert(key.to_owned(), value.to_owned());
                "+OK\r\n".to_owned()
            }
            ["GET", key] => match values.lock().unwrap().get(key) {
                Some(value) => format!("${}\r\n{value}\r\n", value.len()),
                None => "$-1\r\n".to_owned(),
            },
            _ => "-ERR unknown command\r\n".to_owned(),
        };
        write.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

async fn accept(listener: TcpListener) {
    let values = Values::default();
    loop {
        match listener.accept().await {
            Ok((stream, _peer)) => spawn(serve(stream, values.clone())).detach(),
            // Perhaps no descriptor is free; that is reported once, and the listener continues.
            Err(error) => eprintln!("{error}"),
        }
    }
}

/// Many tasks share one connection.
async fn asks(connection: MultiplexedConnection) -> Outcome {
    let sets = |n: usize| {
        let mut connection = connection.clone();
        spawn(async move {
            let key = format!("key {n}");
            connection.set(&key, n).await?;
            connection.get_int(&key).await
        })
    };
    for (n, task) in (0..20).map(sets).enumerate().collect::<Vec<_>>() {
        assert_eq!(task.await?, Some(n as isize));
    }
    let mut connection = connection;
    assert_eq!(connection.get("missing").await?, None);
    let unknown = redis::cmd("SHOUT").query_async::<()>(&mut connection).await;
    assert!(unknown.expect_err("it does not shout").to_string().contains("unknown command"));
    Ok(())
}

/// Connects with tokio, on whose thread the connection is served, too.
pub(crate) fn as_it_is() -> Outcome {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let _server = spawn(accept(listener));
        let client = Client::open(format!("redis://{addr}"))?;
        asks(client.get_multiplexed_async_connection().await?).await
    })
}

/// The client accepts any stream with tokio's traits; the future that serves the connection is a task of
/// paceline here.
pub(crate) fn on_our_socket() -> Outcome {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let addr = listener.local_addr()?;
        let _server = spawn(accept(listener));
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let (connection, driver) = MultiplexedConnection::new(&INFO, stream).await?;
        let _driver = spawn(driver);
        asks(connection).await
    })
}
