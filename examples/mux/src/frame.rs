//! Frames, and their encoding. The README specifies them; no other file knows the layout.

use crate::error::{Code, Violation};

/// The header of each frame: kind, zero, length of the payload, stream.
pub(crate) const HEADER: usize = 8;
/// The largest payload.
pub(crate) const MAX_PAYLOAD: usize = 16 << 10;
/// The largest window, and the largest number of streams at once.
pub(crate) const MAX_CREDIT: u32 = i32::MAX as u32;
/// The longest reason of a GOODBYE.
pub(crate) const MAX_REASON: usize = 256;

const MAGIC: &[u8; 4] = b"plmx";
const VERSION: u32 = 1;

/// A message between the sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Frame<'a> {
    Hello { window: u32, streams: u32 },
    Open,
    Data(&'a [u8]),
    Credit(u32),
    Fin,
    Reset(u32),
    Ping(u64),
    Pong(u64),
    Goodbye { code: u32, reason: &'a str },
}

/// The first bytes of a frame, which are known before its payload has arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Header {
    kind: u8,
    pub(crate) len: usize,
    pub(crate) stream: u32,
}

impl Header {
    /// Refuses headers that are wrong with any payload, so that the side does not wait for the payload.
    pub(crate) fn decode(bytes: [u8; HEADER]) -> Result<Self, Violation> {
        let [kind, zero, a, b, stream @ ..] = bytes;
        let header =
            Self { kind, len: u16::from_be_bytes([a, b]).into(), stream: u32::from_be_bytes(stream) };
        let wrong = |code, what: String| Err(Violation::new(code, what));
        let allowed = match kind {
            1 => 16..=16,
            2 | 5 => 0..=0,
            3 => 1..=MAX_PAYLOAD,
            4 | 6 => 4..=4,
            7 | 8 => 8..=8,
            9 => 4..=4 + MAX_REASON,
            _ => return wrong(Code::Protocol, format!("there is no frame of kind {kind}")),
        };
        if !allowed.contains(&header.len) {
            let what = format!("a frame of kind {kind} has {} bytes, and may have {allowed:?}", header.len);
            return wrong(Code::Length, what);
        }
        if zero != 0 {
            return wrong(Code::Protocol, format!("the second byte of a frame is {zero}, and has to be 0"));
        }
        // Credit is for a stream, or for the number of streams.
        let fits = match kind {
            2 | 3 | 5 | 6 => header.stream != 0,
            4 => true,
            _ => header.stream == 0,
        };
        match fits {
            true => Ok(header),
            false => wrong(Code::Protocol, format!("a frame of kind {kind} is for stream {}", header.stream)),
        }
    }

    /// Returns the frame with its payload, which must have the length in the header.
    pub(crate) fn frame(self, payload: &[u8]) -> Result<Frame<'_>, Violation> {
        let u32_at = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("four bytes"));
        let u64 = || u64::from_be_bytes(payload.try_into().expect("the header was checked"));
        Ok(match self.kind {
            1 if payload[..4] != *MAGIC => {
                return Err(Violation::new(Code::Protocol, "its HELLO is that of another protocol"));
            }
            1 if u32_at(4) != VERSION => {
                let what = format!("it speaks version {}, and this side version {VERSION}", u32_at(4));
                return Err(Violation::new(Code::Version, what));
            }
            1 => Frame::Hello { window: u32_at(8), streams: u32_at(12) },
            2 => Frame::Open,
            3 => Frame::Data(payload),
            4 => Frame::Credit(u32_at(0)),
            5 => Frame::Fin,
            6 => Frame::Reset(u32_at(0)),
            7 => Frame::Ping(u64()),
            8 => Frame::Pong(u64()),
            _ => match std::str::from_utf8(&payload[4..]) {
                Ok(reason) => Frame::Goodbye { code: u32_at(0), reason },
                Err(_) => {
                    return Err(Violation::new(Code::Protocol, "the reason of its GOODBYE is no UTF-8"));
                }
            },
        })
    }
}

impl Frame<'_> {
    /// Appends the encoded frame.
    pub(crate) fn encode(self, stream: u32, to: &mut Vec<u8>) {
        let start = to.len();
        to.extend([0; HEADER]);
        let kind = match self {
            Frame::Hello { window, streams } => {
                to.extend(MAGIC);
                to.extend([VERSION, window, streams].map(u32::to_be_bytes).as_flattened());
                1
            }
            Frame::Open => 2,
            Frame::Data(bytes) => {
                to.extend(bytes);
                3
            }
            Frame::Credit(more) => {
                to.extend(more.to_be_bytes());
                4
            }
            Frame::Fin => 5,
            Frame::Reset(code) => {
                to.extend(code.to_be_bytes());
                6
            }
            Frame::Ping(value) | Frame::Pong(value) => {
                to.extend(value.to_be_bytes());
                if matches!(self, Frame::Ping(_)) { 7 } else { 8 }
            }
            Frame::Goodbye { code, reason } => {
                to.extend(code.to_be_bytes());
                let mut len = reason.len().min(MAX_REASON);
                while !reason.is_char_boundary(len) {
                    len -= 1;
                }
                to.extend(&reason.as_bytes()[..len]);
                9
            }
        };
        let len = to.len() - start - HEADER;
        to[start..start + HEADER].copy_from_slice(&header(kind, len, stream));
    }
}

/// Returns the header of a DATA frame for an existing payload.
pub(crate) fn data_header(len: usize, stream: u32) -> [u8; HEADER] {
    header(3, len, stream)
}

fn header(kind: u8, len: usize, stream: u32) -> [u8; HEADER] {
    let [a, b] = u16::try_from(len).expect("no payload is that long").to_be_bytes();
    let [s, t, u, v] = stream.to_be_bytes();
    [kind, 0, a, b, s, t, u, v]
}
