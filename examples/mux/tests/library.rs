//! Both halves of the library, over transports that cut bytes anywhere, with peers that are silent, do not
//! read, or break rules.
#![cfg(unix)]

#[path = "library/limits.rs"]
mod limits;
#[path = "../src/random.rs"]
mod random;
#[path = "library/streams.rs"]
mod streams;
#[path = "library/transport.rs"]
mod transport;

use std::time::Duration;

use example_mux::{Config, Connection, Driver, Error, Stream, client, server};
use paceline::net::unix::UnixStream;
use paceline::{Task, block_on, spawn, timeout};

use random::{Random, rounds};
use transport::{Cut, Memory};

/// Longer than any step should take, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for a future that must complete soon: a lost wake-up would wait for ever.
#[track_caller]
fn soon<T>(what: impl Future<Output = T>) -> T {
    block_on(timeout(PATIENCE, what)).expect("it happens")
}

type Driving = Task<Result<(), Error>>;

fn drive(driver: Driver<Cut<UnixStream>>) -> Driving {
    spawn(driver)
}

/// Returns a connection, its client first, over a transport that cuts.
fn pair(config: &Config, random: &mut Random) -> [(Connection, Driving); 2] {
    let (ours, theirs) = UnixStream::pair().expect("the system has sockets");
    let (ours, theirs) = (Cut::new(ours, random.next()), Cut::new(theirs, random.next()));
    let (here, driver) = client(ours, config.clone());
    let (there, other) = server(theirs, config.clone());
    [(here, drive(driver)), (there, drive(other))]
}

/// Opens a stream, and returns both ends.
async fn stream(here: &Connection, there: &Connection) -> (Stream, Stream) {
    let ours = here.open().await.expect("there is room");
    let theirs = there.accept().await.expect("it lives").expect("it was opened");
    assert_eq!(ours.id(), theirs.id());
    (ours, theirs)
}

/// Small limits, and no clock, which could wake a driver and hide a lost wake-up.
fn small() -> Config {
    Config { window: 1000, streams: 4, keep_alive: Duration::MAX }
}
