//! The responder that all servers share: bytes in, work, bytes out. Does no I/O.
//!
//! A server reads once into [`Exchange::space`], passes the number of bytes to [`Exchange::received`], and
//! writes the bytes that this returns. Every answer is the same, so the answer to a pipelined batch is a
//! slice of one static array.
//!
//! | path | work |
//! |---|---|
//! | `/` (and any other) | none |
//! | `/b` | the thread sleeps 20 ms |
//! | `/c` | 5 ms of CPU |
//! | `/wN` | N microseconds of CPU, N up to 9 999 |

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Bytes of request head a connection can hold. A longer head closes the connection.
pub const BUFFER: usize = 2048;

/// The answer to every request.
pub const RESPONSE: &[u8; 78] =
    b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\nContent-Type: text/plain\r\n\r\nHello, World!";

/// The body of the answer.
pub const BODY: &str = "Hello, World!";

/// The same answer with hyper's default headers; any date will do.
pub const HYPERS: &[u8; 115] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 13\r\n\
    date: ?????????????????????????????\r\n\r\nHello, World!";

const HEAD_END: &[u8; 4] = b"\r\n\r\n";
const MOST_REQUESTS: usize = BUFFER / HEAD_END.len();

static RESPONSES: [[u8; RESPONSE.len()]; MOST_REQUESTS] = [*RESPONSE; MOST_REQUESTS];

/// Close the connection: the head did not fit, or the client has closed its side.
#[derive(Debug)]
pub struct Close;

/// The state of one connection: bytes that were read and not yet answered.
#[derive(Debug)]
pub struct Exchange {
    buffer: [u8; BUFFER],
    filled: usize,
}

impl Default for Exchange {
    fn default() -> Self {
        Self::new()
    }
}

impl Exchange {
    /// An empty connection.
    pub fn new() -> Self {
        Exchange { buffer: [0; BUFFER], filled: 0 }
    }

    /// Returns the buffer for the next read, which is never empty.
    pub fn space(&mut self) -> &mut [u8] {
        &mut self.buffer[self.filled..]
    }

    /// Handles all complete requests after a read of `read` bytes, and returns the bytes to write. These are
    /// empty while a request is incomplete.
    pub fn received(&mut self, read: usize) -> Result<&'static [u8], Close> {
        self.received_by(read, work)
    }

    /// Does the same with another way to do the work of a path.
    pub fn received_by(&mut self, read: usize, mut work: impl FnMut(&[u8])) -> Result<&'static [u8], Close> {
        if read == 0 {
            return Err(Close);
        }
        self.filled += read;
        let mut start = 0;
        let mut requests = 0;
        while let Some(length) = head_length(&self.buffer[start..self.filled]) {
            work(path(&self.buffer[start..start + length]));
            start += length;
            requests += 1;
        }
        self.buffer.copy_within(start..self.filled, 0);
        self.filled -= start;
        if self.filled == BUFFER {
            return Err(Close);
        }
        Ok(RESPONSES[..requests].as_flattened())
    }

    /// Does the same, but leaves [`long`] work to the caller, and returns its path beside the answer.
    pub fn received_short(&mut self, read: usize) -> Result<(&'static [u8], Option<&'static [u8]>), Close> {
        let mut left = None;
        let answer = self.received_by(read, |path| match long(path) {
            None => work(path),
            path => left = path,
        })?;
        Ok((answer, left))
    }
}

/// Returns the length of the first complete request head in `bytes`. Requests have no bodies here.
fn head_length(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|&byte| byte == b'\r') {
        let end = from + at;
        if bytes[end..].starts_with(HEAD_END) {
            return Some(end + HEAD_END.len());
        }
        from = end + 1;
    }
    None
}

/// Returns the request target of `GET /path HTTP/1.1`, or `/` if there is none.
fn path(head: &[u8]) -> &[u8] {
    head.split(|&byte| byte == b' ' || byte == b'\r').nth(1).unwrap_or(b"/")
}

/// Returns a path whose work takes milliseconds, and `None` for others.
pub fn long(path: &[u8]) -> Option<&'static [u8]> {
    [b"/b", b"/c"].into_iter().find(|long| *long == path).map(|long| &long[..])
}

/// Does the work of a path.
pub fn work(path: &[u8]) {
    match path {
        b"/" => {}
        b"/b" => std::thread::sleep(Duration::from_millis(20)),
        b"/c" => burn(5_000),
        [b'/', b'w', digits @ ..] if (1..=4).contains(&digits.len()) => {
            burn(std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).unwrap_or(0));
        }
        _ => {}
    }
}

/// Burns about `micros` of CPU: a fixed number of steps, not a wait for the clock, so that a descheduled
/// handler still does all of its work.
fn burn(micros: u64) {
    steps(micros * steps_per_micro());
}

fn steps(count: u64) {
    let mut state = 1_u64;
    for _ in 0..count {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}

/// Returns how many steps take a microsecond: the value of [`set_steps_per_micro`], or else that of a short
/// calibration. Call this before the first request, which would otherwise pay for the calibration.
pub fn steps_per_micro() -> u64 {
    *STEPS.get_or_init(|| calibrate(Duration::from_millis(30)))
}

/// Sets the result of an earlier calibration, so that several processes do the same work. Has no effect after
/// the first request.
pub fn set_steps_per_micro(steps: u64) {
    // The first call wins.
    let _ = STEPS.set(steps.max(1));
}

/// Calibrates for so long and returns the fastest try: disturbances only make a try slower.
pub fn calibrate(time: Duration) -> u64 {
    const TRY: u64 = 20_000;
    let begin = Instant::now();
    let mut fastest = Duration::MAX;
    while begin.elapsed() < time {
        let start = Instant::now();
        steps(TRY);
        fastest = fastest.min(start.elapsed());
    }
    (TRY * 1_000 / fastest.as_nanos().max(1) as u64).max(1)
}

static STEPS: OnceLock<u64> = OnceLock::new();

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(exchange: &mut Exchange, bytes: &[u8]) -> usize {
        exchange.space()[..bytes.len()].copy_from_slice(bytes);
        exchange.received(bytes.len()).unwrap().len()
    }

    #[test]
    fn a_request_split_over_reads_is_answered_once() {
        let mut exchange = Exchange::new();
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        for byte in &request[..request.len() - 1] {
            assert_eq!(feed(&mut exchange, std::slice::from_ref(byte)), 0);
        }
        assert_eq!(feed(&mut exchange, b"\n"), RESPONSE.len());
    }

    #[test]
    fn pipelined_requests_are_all_answered_and_the_rest_is_kept() {
        let mut exchange = Exchange::new();
        let one = b"GET /w1 HTTP/1.1\r\n\r\n";
        let mut bytes = one.repeat(3);
        bytes.extend_from_slice(&one[..7]);
        assert_eq!(feed(&mut exchange, &bytes), 3 * RESPONSE.len());
        assert_eq!(feed(&mut exchange, &one[7..]), RESPONSE.len());
    }

    #[test]
    fn a_head_that_does_not_fit_closes() {
        let mut exchange = Exchange::new();
        exchange.space().fill(b'a');
        assert!(exchange.received(BUFFER).is_err());
    }

    #[test]
    fn the_declared_length_is_the_body_s() {
        let text = std::str::from_utf8(RESPONSE).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
    }

    /// One of many tries must match: a busy machine may be half as fast a moment later.
    #[test]
    fn a_calibrated_microsecond_lasts_one() {
        let micros = |_| {
            let per_micro = calibrate(Duration::from_millis(5));
            let start = Instant::now();
            steps(per_micro * 500);
            start.elapsed().as_micros()
        };
        let tries: Vec<u128> = (0..50).map(micros).collect();
        assert!(tries.iter().any(|micros| (450..600).contains(micros)), "{tries:?}");
    }

    #[test]
    fn the_path_is_the_second_word() {
        assert_eq!(path(b"GET /w20 HTTP/1.1\r\n\r\n"), b"/w20");
    }
}
