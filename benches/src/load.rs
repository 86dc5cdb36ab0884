//! The load generator: plain epoll, a closed loop per connection, a process of its own.
//!
//! Each connection sends a GET, waits for the whole answer, compares it byte by byte, and sends the next
//! request. Latency lasts from before the write to after the read that completes the answer; one clock
//! reading serves as the end of a request and the start of the next one.
//!
//! In the paced mode the generator sends one request at fixed times, to the connections in turn. A missed
//! request is left out: there is no burst, and later requests keep their times.
//!
//! Connections are opened a few at a time, and each gets one answer before the next ones are opened: no
//! backlog overflows, and the server has accepted all connections before the warm-up begins.
//!
//! The generator talks to the driver over its standard streams: it prints [`CONNECTED`], or why that failed,
//! waits for a line, prints `begin` after the warm-up, and one JSON object after the window.

use std::error::Error;
use std::io::{BufRead, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use serde_json::json;

use crate::driver::procfs::own_cpu;
use crate::handler::{HYPERS, RESPONSE};

mod pace;

use pace::Pace;

const USAGE: &str = "usage: load PORT PATH CONNECTIONS --warm MS --window MS [--threads N] [--executors N] \
    [--churn MOST] [--every US] [--hyper 1]";

/// What a load prints once each connection has had an answer.
pub const CONNECTED: &str = "connected";

/// The settings of one load process.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where the server listens, on 127.0.0.1.
    pub port: u16,
    /// How many servers the process hosts, on consecutive ports; connections are distributed among them in
    /// turn.
    pub executors: u16,
    /// The path of every request.
    pub path: String,
    /// Connections held open; with churn, connections attempted at the same time.
    pub connections: usize,
    /// Load before anything is recorded.
    pub warm: Duration,
    /// The duration of the recording.
    pub window: Duration,
    /// Threads of the generator.
    pub threads: usize,
    /// Opens a connection per request, at most so many, since each holds a local port for a minute.
    pub churn: Option<usize>,
    /// The time between two requests of each generator thread; `None` sends as soon as the previous request
    /// is answered.
    pub every: Option<Duration>,
    /// Whether the answers are hyper's.
    pub hyper: bool,
}

impl Plan {
    /// Returns the arguments that [`main`] parses.
    pub fn to_arguments(&self) -> Vec<String> {
        let mut words = vec![self.port.to_string(), self.path.clone(), self.connections.to_string()];
        let mut option = |name: &str, value: usize| words.extend([name.to_owned(), value.to_string()]);
        option("--warm", self.warm.as_millis() as usize);
        option("--window", self.window.as_millis() as usize);
        option("--threads", self.threads);
        option("--executors", self.executors.into());
        self.churn.into_iter().for_each(|most| option("--churn", most));
        self.every.into_iter().for_each(|every| option("--every", every.as_micros() as usize));
        if self.hyper {
            option("--hyper", 1);
        }
        words
    }

    fn from_arguments(words: &[String]) -> Result<Plan, Box<dyn Error>> {
        let [port, path, connections, options @ ..] = words else { return Err(USAGE.into()) };
        let mut plan = Plan {
            port: port.parse()?,
            executors: 1,
            path: path.clone(),
            connections: connections.parse()?,
            warm: Duration::from_millis(100),
            window: Duration::from_secs(1),
            threads: 1,
            churn: None,
            every: None,
            hyper: false,
        };
        for pair in options.chunks(2) {
            let [name, value] = pair else { return Err(USAGE.into()) };
            let value: usize = value.parse()?;
            match name.as_str() {
                "--warm" => plan.warm = Duration::from_millis(value as u64),
                "--window" => plan.window = Duration::from_millis(value as u64),
                "--threads" => plan.threads = value.max(1),
                "--executors" => plan.executors = u16::try_from(value)?.max(1),
                "--churn" => plan.churn = Some(value),
                "--every" => plan.every = Some(Duration::from_micros(value.max(1) as u64)),
                "--hyper" => plan.hyper = value != 0,
                _ => return Err(USAGE.into()),
            }
        }
        plan.threads = plan.threads.min(plan.connections.max(1));
        Ok(plan)
    }
}

/// The hidden subcommand.
pub fn main(words: &[String]) -> Result<(), Box<dyn Error>> {
    let plan = Plan::from_arguments(words)?;
    let request = format!("GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", plan.path).into_bytes();
    let lanes = (0..plan.threads).map(|index| Lane::open(&plan, index, &request));
    let lanes = match lanes.collect::<std::io::Result<Vec<_>>>() {
        Ok(lanes) => lanes,
        Err(error) => return Ok(say(&error.to_string())?),
    };
    say(CONNECTED)?;
    let mut go = String::new();
    if std::io::stdin().lock().read_line(&mut go)? == 0 {
        return Err("the driver went away before the start".into());
    }
    let begin = Instant::now() + plan.warm;
    let end = begin + plan.window;
    let (lanes, cpu) = std::thread::scope(|scope| {
        let lanes: Vec<_> = lanes.into_iter().map(|lane| scope.spawn(move || lane.run(begin, end))).collect();
        std::thread::sleep(begin.saturating_duration_since(Instant::now()));
        say("begin")?;
        let before = own_cpu();
        let lanes = lanes.into_iter().map(|lane| lane.join().expect("a lane does not panic"));
        std::io::Result::Ok((lanes.collect::<std::io::Result<Vec<_>>>()?, own_cpu() - before))
    })?;
    report(&lanes, begin, end, cpu)
}

fn say(line: &str) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()
}

/// The lanes still hold their connections, so the server sees no close before the driver has measured.
fn report(lanes: &[Lane], begin: Instant, end: Instant, cpu: Duration) -> Result<(), Box<dyn Error>> {
    let mut latency = histogram();
    for lane in lanes {
        latency.add(&lane.latency)?;
    }
    let finished = lanes.iter().filter_map(|lane| lane.finished).max().unwrap_or(end).min(end);
    let seconds = finished.saturating_duration_since(begin).as_secs_f64();
    let micros = |quantile: f64| latency.value_at_quantile(quantile) as f64 / 1e3;
    let sum = |of: fn(&Lane) -> u64| lanes.iter().map(of).sum::<u64>();
    say(&json!({
        "requests": latency.len(),
        "seconds": seconds,
        "total": sum(|lane| lane.total),
        "errors": sum(|lane| lane.errors),
        "starved": sum(Lane::starved),
        "busy": cpu.as_secs_f64() / seconds / lanes.len() as f64,
        "p50": micros(0.5), "p99": micros(0.99), "p999": micros(0.999), "max": latency.max() as f64 / 1e3,
    })
    .to_string())?;
    Ok(())
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are in order")
}

struct Client {
    stream: TcpStream,
    sent: Instant,
    /// The bytes received of the answer; all of them while no answer is awaited.
    received: usize,
    /// Answers within the window.
    answers: u64,
}

/// The key of a lane's pace, which no descriptor has.
const TICK: u64 = u64::MAX;

/// One thread's share of the connections.
struct Lane {
    ports: std::iter::Cycle<std::ops::Range<u16>>,
    request: Vec<u8>,
    /// The expected answer.
    answer: &'static [u8],
    epoll: OwnedFd,
    /// The connections by descriptor.
    clients: Vec<Option<Client>>,
    pace: Option<Pace>,
    /// Where the search for the next connection in turn starts.
    turn: usize,
    /// How many connections churn may still open; `None` keeps connections.
    churn_left: Option<usize>,
    open: usize,
    /// The begin and the end of the recording; `None` while the connections are opened.
    window: Option<[Instant; 2]>,
    latency: Histogram<u64>,
    total: u64,
    errors: u64,
    /// When churn used up its connections, if before the end of the window.
    finished: Option<Instant>,
}

impl Lane {
    fn open(plan: &Plan, index: usize, request: &[u8]) -> std::io::Result<Lane> {
        let share = |count: usize| count / plan.threads + usize::from(index < count % plan.threads);
        let mut lane = Lane {
            ports: (plan.port..plan.port + plan.executors).cycle(),
            request: request.to_vec(),
            answer: if plan.hyper { HYPERS } else { RESPONSE },
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            clients: Vec::new(),
            pace: plan.every.map(Pace::new).transpose()?,
            turn: 0,
            churn_left: plan.churn.map(share),
            open: share(plan.connections),
            window: None,
            latency: histogram(),
            total: 0,
            errors: 0,
            finished: None,
        };
        if lane.churn_left.is_none() {
            lane.connect_all()?;
        }
        if let Some(pace) = &lane.pace {
            let data = epoll::EventData::new_u64(TICK);
            epoll::add(&lane.epoll, pace, data, epoll::EventFlags::IN)?;
        }
        Ok(lane)
    }

    /// Opens the connections, and waits for one answer on each.
    fn connect_all(&mut self) -> std::io::Result<()> {
        const AT_ONCE: usize = 64;
        const LONGEST: Duration = Duration::from_secs(5);
        let mut events = Vec::with_capacity(AT_ONCE);
        for first in (0..self.open).step_by(AT_ONCE) {
            let wanted = self.open.min(first + AT_ONCE);
            for _ in first..wanted {
                let key = self.connect()?;
                self.send(key, Instant::now());
            }
            let end = Instant::now() + LONGEST;
            while self.total + self.errors < wanted as u64 {
                if Instant::now() > end {
                    let text = format!("{} of {wanted} connections were answered", self.total);
                    return Err(std::io::Error::other(format!("{text}, and no other within {LONGEST:?}")));
                }
                self.wait(&mut events, LONGEST)?;
            }
        }
        self.total = 0;
        Ok(())
    }

    /// Does not wait for the server: the kernel completes the handshake over loopback.
    fn connect(&mut self) -> std::io::Result<usize> {
        let sent = Instant::now();
        let port = self.ports.next().expect("a cycle has no end");
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nonblocking(true)?;
        let key = stream.as_raw_fd() as usize;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.epoll, &stream, epoll::EventData::new_u64(key as u64), flags)?;
        if self.clients.len() <= key {
            self.clients.resize_with(key + 1, || None);
        }
        self.clients[key] = Some(Client { stream, sent, received: self.answer.len(), answers: 0 });
        Ok(key)
    }

    /// Returns the number of connections without one answer in the window. Their waits are in no quantile, so
    /// they are counted separately.
    fn starved(&self) -> u64 {
        if self.churn_left.is_some() {
            return 0;
        }
        self.clients.iter().flatten().filter(|client| client.answers == 0).count() as u64
    }

    fn run(mut self, begin: Instant, end: Instant) -> std::io::Result<Lane> {
        if let Some(pace) = &self.pace {
            pace.start()?;
        } else if self.churn_left.is_some() {
            for _ in 0..self.open {
                self.replace()?;
            }
        } else {
            for key in 0..self.clients.len() {
                self.send(key, Instant::now());
            }
        }
        self.window = Some([begin, end]);
        let mut events = Vec::with_capacity(256);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || self.finished.is_some() {
                return Ok(self);
            }
            self.wait(&mut events, left)?;
        }
    }

    /// Handles the next events, if some come within 100 ms or the time that is left.
    fn wait(&mut self, events: &mut Vec<epoll::Event>, left: Duration) -> std::io::Result<()> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: left.as_nanos().clamp(1_000_000, 100_000_000) as _ };
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout)) {
            Err(Errno::INTR) => return Ok(()),
            other => other?,
        };
        for event in events.iter() {
            match event.data.u64() {
                TICK => self.send_next()?,
                key => self.receive(key as usize)?,
            }
        }
        Ok(())
    }

    /// In the paced mode: sends the next connection's request, unless its previous one is still unanswered.
    fn send_next(&mut self) -> std::io::Result<()> {
        if !self.pace.as_ref().map_or(Ok(false), Pace::ticked)? {
            return Ok(());
        }
        let mut turns = (self.turn..self.clients.len()).chain(0..self.turn);
        let Some(key) = turns.find(|key| self.clients[*key].is_some()) else { return Ok(()) };
        self.turn = key + 1;
        if self.clients[key].as_ref().is_some_and(|client| client.received == self.answer.len()) {
            self.send(key, Instant::now());
        }
        Ok(())
    }

    /// With churn: opens the next connection, or ends.
    fn replace(&mut self) -> std::io::Result<()> {
        match &mut self.churn_left {
            Some(0) => {
                self.open -= 1;
                if self.open == 0 {
                    self.finished = Some(Instant::now());
                }
            }
            Some(left) => {
                *left -= 1;
                let key = self.connect()?;
                let sent = self.clients[key].as_ref().map_or_else(Instant::now, |client| client.sent);
                self.send(key, sent);
            }
            None => {}
        }
        Ok(())
    }

    fn send(&mut self, key: usize, now: Instant) {
        let Some(client) = &mut self.clients[key] else { return };
        (client.sent, client.received) = (now, 0);
        if !matches!(rustix::io::write(&client.stream, &self.request), Ok(sent) if sent == self.request.len())
        {
            self.errors += 1;
            self.clients[key] = None;
        }
    }

    fn receive(&mut self, key: usize) -> std::io::Result<()> {
        let Some(client) = &mut self.clients[key] else { return Ok(()) };
        let mut bytes = [0; 512];
        let read = match rustix::io::read(&client.stream, &mut bytes) {
            Err(Errno::AGAIN) => return Ok(()),
            other => other.unwrap_or(0),
        };
        let expected = &self.answer[client.received..];
        // Surplus bytes are an error, too.
        if read == 0 || !begins(expected, &bytes[..read]) {
            self.errors += 1;
            self.clients[key] = None;
            return self.replace();
        }
        client.received += read;
        if client.received < self.answer.len() {
            return Ok(());
        }
        let now = Instant::now();
        self.total += 1;
        if self.window.is_some_and(|[begin, end]| (begin..=end).contains(&now)) {
            self.latency.saturating_record((now - client.sent).as_nanos() as u64);
            client.answers += 1;
        }
        if self.churn_left.is_some() {
            self.clients[key] = None;
            return self.replace();
        }
        if self.pace.is_none() && self.window.is_some() {
            self.send(key, now);
        }
        Ok(())
    }
}

/// Returns whether the expected answer starts with these bytes. A question mark matches any byte.
fn begins(expected: &[u8], bytes: &[u8]) -> bool {
    let same = |(expected, byte): (&u8, &u8)| expected == byte || *expected == b'?';
    bytes.len() <= expected.len() && expected.iter().zip(bytes).all(same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    fn plan(words: &str) -> Plan {
        Plan::from_arguments(&words.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_plan_survives_its_own_words() {
        for words in
            ["12000 /w5 64 --warm 100 --window 500 --threads 2 --executors 3 --churn 9", "1 / 1 --every 1500"]
        {
            let plan = plan(words);
            let again = Plan::from_arguments(&plan.to_arguments()).unwrap();
            assert_eq!(format!("{again:?}"), format!("{plan:?}"));
        }
    }

    /// Fails if the warm-up begins with a connection that the server has perhaps not accepted.
    #[test]
    fn every_connection_has_had_an_answer_before_the_warm_up_begins() {
        const MANY: usize = 150;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let plan = Plan { port: listener.local_addr().unwrap().port(), ..plan(&format!("0 / {MANY}")) };
        let server = std::thread::spawn(move || {
            let answered = |_| {
                let mut stream = listener.accept().unwrap().0;
                assert!(stream.read(&mut [0; 512]).unwrap() > 0);
                stream.write_all(RESPONSE).unwrap();
                stream
            };
            (0..MANY).map(answered).collect::<Vec<_>>()
        });
        let lane = Lane::open(&plan, 0, b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let clients = || lane.clients.iter().flatten();
        assert!(clients().count() == MANY && clients().all(|client| client.received == RESPONSE.len()));
        // The answers are none of the measured time.
        assert_eq!((lane.total, lane.errors, lane.latency.len()), (0, 0, 0));
        server.join().unwrap();
    }

    /// Twenty of the forty ticks come while the server is busy with one request.
    #[test]
    fn a_paced_load_does_not_send_later_what_it_could_not_send_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, mut requests) = (listener.accept().unwrap().0, 0);
            while stream.read(&mut [0; 512]).is_ok_and(|read| read > 0) {
                requests += 1;
                if requests == 5 {
                    std::thread::sleep(Duration::from_millis(200));
                }
                stream.write_all(RESPONSE).unwrap();
            }
        });
        let plan = Plan { port, ..plan("0 / 1 --every 10000") };
        let lane = Lane::open(&plan, 0, b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let begin = Instant::now();
        let lane = lane.run(begin, begin + Duration::from_millis(400)).unwrap();
        assert_eq!((lane.errors, lane.starved()), (0, 0));
        assert!((5..25).contains(&lane.total), "{}", lane.total);
        drop(lane);
        server.join().unwrap();
    }
}
