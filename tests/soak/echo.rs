//! Clients of the [servers](crate::server): each request gets one answer, in order, with the matching
//! content.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use futures_lite::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, future};
use paceline::{Async, IoSafe, spawn};

use crate::scene::{Dice, Scene, some_wait};
use crate::server::{Head, Server, WAYS, body, is_gone};

/// Answers that clients have received.
pub static GOT: AtomicU64 = AtomicU64::new(0);

/// Requests, complete or not, of clients that did not wait for all answers.
pub static UNHEARD: AtomicU64 = AtomicU64::new(0);

/// Both kinds of stream.
trait HalfClose {
    fn half_close(&self) -> io::Result<()>;
}

impl HalfClose for TcpStream {
    fn half_close(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl HalfClose for UnixStream {
    fn half_close(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// Runs many clients at once.
pub async fn crowd(scene: Scene, mut dice: Dice) {
    let count = 2 + dice.roll(30);
    let clients: Vec<_> = (0..count).map(|_| spawn(client(scene.clone(), dice.fork()))).collect();
    for client in clients {
        client.await;
    }
}

/// Runs one client with a longer conversation.
pub async fn client(scene: Scene, mut dice: Dice) {
    let requests = 1 + dice.roll(30);
    if dice.coin() {
        let stream = Async::<TcpStream>::connect(scene.server.tcp).await.unwrap();
        talk(stream, dice, requests).await;
    } else {
        let stream = Async::<UnixStream>::connect(&scene.server.unix).await.unwrap();
        talk(stream, dice, requests).await;
    }
}

/// A connection that ends in one of many ways; the client's side blocks or does not.
pub async fn churn(scene: Scene, mut dice: Dice) {
    for _ in 0..1 + dice.roll(4) {
        let mut dice = dice.fork();
        match dice.roll(4) {
            0 => {
                let server = scene.server.clone();
                let (tell, told) = async_channel::bounded(1);
                thread::spawn(move || {
                    blocking_client(&server, &mut dice);
                    tell.send_blocking(()).unwrap();
                });
                told.recv().await.unwrap();
            }
            1 => {
                let stream = Async::<UnixStream>::connect(&scene.server.unix).await.unwrap();
                breaks_off(stream, dice).await;
            }
            _ => {
                let stream = Async::<TcpStream>::connect(scene.server.tcp).await.unwrap();
                breaks_off(stream, dice).await;
            }
        }
    }
}

fn request(dice: &mut Dice, number: u64) -> (Head, Vec<u8>) {
    let length = match dice.roll(8) {
        0 => 0,
        1 => dice.roll(30_000),
        _ => dice.roll(300),
    };
    let head = Head { number, length: length as u16, way: dice.roll(WAYS) as u8 };
    let mut bytes = head.to_bytes().to_vec();
    bytes.extend(body(number, length as usize, false));
    (head, bytes)
}

async fn check(mut stream: impl AsyncRead + Unpin, heads: &[Head]) -> io::Result<()> {
    for expected in heads {
        let mut head = [0; Head::SIZE];
        stream.read_exact(&mut head).await?;
        assert_eq!(Head::from_bytes(head), *expected, "an answer to another request, or in the wrong order");
        let mut answer = vec![0; expected.length.into()];
        stream.read_exact(&mut answer).await?;
        assert!(answer == body(expected.number, answer.len(), true), "another answer to {expected:?}");
        GOT.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// Checks that nothing comes after the last answer.
async fn ends(mut stream: impl AsyncRead + Unpin) {
    match stream.read(&mut [0; 64]).await {
        Ok(0) => {}
        other => panic!("more than was asked for, or no end: {other:?}"),
    }
}

/// Sends requests while the answers to others arrive, and then shuts the write side down.
async fn talk<S>(stream: Async<S>, mut dice: Dice, requests: u64)
where
    S: HalfClose + IoSafe + Read + Write,
    for<'a> &'a Async<S>: AsyncRead + AsyncWrite,
{
    let base = dice.roll(1 << 40);
    let (heads, sent): (Vec<_>, Vec<_>) =
        (0..requests).map(|number| request(&mut dice, base + number)).unzip();
    if dice.coin() {
        // One after the other.
        for (head, bytes) in heads.iter().zip(&sent) {
            (&stream).write_all(bytes).await.unwrap();
            check(&stream, std::slice::from_ref(head)).await.unwrap();
        }
        stream.get_ref().half_close().unwrap();
    } else {
        let write = async {
            for bytes in &sent {
                (&stream).write_all(bytes).await?;
                if dice.roll(8) == 0 {
                    some_wait(&mut dice).await;
                }
            }
            stream.get_ref().half_close()
        };
        future::try_zip(write, check(&stream, &heads)).await.unwrap();
    }
    ends(&stream).await;
}

/// Sends some requests and a part of one more. Then it disconnects, or waits for the answers.
async fn breaks_off<S>(stream: Async<S>, mut dice: Dice)
where
    S: HalfClose + IoSafe + Read + Write,
    for<'a> &'a Async<S>: AsyncRead + AsyncWrite,
{
    let base = dice.roll(1 << 40);
    let (heads, sent): (Vec<_>, Vec<_>) =
        (0..dice.roll(5)).map(|number| request(&mut dice, base + number)).unzip();
    let mut bytes: Vec<u8> = sent.concat();
    let (_, part) = request(&mut dice, base + heads.len() as u64);
    bytes.extend(&part[..dice.roll(part.len() as u64) as usize]);
    match dice.roll(3) {
        // All answers are read; the incomplete request gets none.
        0 => {
            let write = async {
                (&stream).write_all(&bytes).await?;
                stream.get_ref().half_close()
            };
            future::try_zip(write, check(&stream, &heads)).await.unwrap();
            ends(&stream).await;
        }
        // The client disconnects, perhaps while the server answers; the server can still write meanwhile.
        1 => {
            UNHEARD.fetch_add(heads.len() as u64, Relaxed);
            let until = dice.micros(2_000);
            let _ = paceline::timeout(until, (&stream).write_all(&bytes)).await;
        }
        _ => {
            let heard = dice.roll(1 + heads.len() as u64) as usize;
            UNHEARD.fetch_add((heads.len() - heard) as u64, Relaxed);
            let mut writer = &stream;
            match future::try_zip(writer.write_all(&bytes), check(&stream, &heads[..heard])).await {
                Err(error) if !is_gone(&error) => panic!("a connection that is to be dropped: {error}"),
                _ => {}
            }
        }
    }
}

/// A client with plain blocking I/O.
fn blocking_client(server: &Server, dice: &mut Dice) {
    let (head, bytes) = request(dice, 7);
    let mut stream = TcpStream::connect(server.tcp).unwrap();
    stream.write_all(&bytes).unwrap();
    let mut answer = vec![0; bytes.len()];
    stream.read_exact(&mut answer).unwrap();
    assert!(answer[..Head::SIZE] == head.to_bytes(), "an answer to another request");
    assert!(answer[Head::SIZE..] == body(7, head.length.into(), true), "another answer to {head:?}");
    GOT.fetch_add(1, Relaxed);
}
