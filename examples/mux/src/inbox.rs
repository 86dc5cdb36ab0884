//! Bytes that have arrived and are no complete frame yet.

use crate::error::Violation;
use crate::frame::{Frame, HEADER, Header};

/// The size of a read: at least one frame, or a frame would never be complete.
const SIZE: usize = 128 << 10;

/// The transport puts bytes in, cut anywhere, and frames come out.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Box<[u8]>,
    /// The unparsed bytes.
    start: usize,
    end: usize,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; SIZE].into(), start: 0, end: 0 }
    }

    /// Returns the room for the next bytes, which [`filled`](Inbox::filled) then adds: at least enough for
    /// the rest of the current frame.
    pub(crate) fn space(&mut self) -> &mut [u8] {
        // Less than a frame, so little is moved; and nothing if the frame begins at the front.
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    pub(crate) fn filled(&mut self, len: usize) {
        self.end += len;
        assert!(self.end <= self.bytes.len(), "the transport has read more than there was room for");
    }

    /// Discards all bytes, so that there is room for a whole read.
    pub(crate) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Returns the next frame and its stream, if it is complete.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Frame<'_>)>, Violation> {
        let there = &self.bytes[self.start..self.end];
        let Some(header) = there.first_chunk::<HEADER>() else { return Ok(None) };
        let header = Header::decode(*header)?;
        let Some(payload) = there.get(HEADER..HEADER + header.len) else { return Ok(None) };
        self.start += HEADER + header.len;
        Ok(Some((header.stream, header.frame(payload)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::frame::MAX_PAYLOAD;
    use crate::random::{Random, rounds};

    /// Returns a valid frame, and its stream.
    fn frame<'a>(random: &mut Random, bytes: &'a [u8]) -> (u32, Frame<'a>) {
        let stream = 1 + random.below(1 << 20) as u32;
        let number = random.next() as u32;
        match random.below(10) {
            0 => (0, Frame::Hello { window: number, streams: stream }),
            1 => (stream, Frame::Open),
            2..4 => (stream, Frame::Data(&bytes[..1 + random.below(MAX_PAYLOAD)])),
            4 => (stream, Frame::Data(&bytes[..1 + random.below(10)])),
            5 => (stream * random.below(2) as u32, Frame::Credit(number)),
            6 => (stream, Frame::Fin),
            7 => (stream, Frame::Reset(number)),
            8 => (0, Frame::Ping(random.next())),
            9 if random.chance(2) => (0, Frame::Pong(random.next())),
            _ => (0, Frame::Goodbye { code: number, reason: &"it was time to go"[..random.below(18)] }),
        }
    }

    #[test]
    fn wherever_the_bytes_are_cut_the_frames_are_the_same() {
        rounds(200, |random| {
            let bytes = random.bytes(MAX_PAYLOAD);
            let sent: Vec<_> = (0..1 + random.below(60)).map(|_| frame(random, &bytes)).collect();
            let mut wire = Vec::new();
            sent.iter().for_each(|(stream, frame)| frame.encode(*stream, &mut wire));

            let (mut inbox, mut heard) = (Inbox::new(), 0);
            let mut rest = &wire[..];
            let most = [1, 7, 9, 1000, 40_000, SIZE][random.below(6)];
            while !rest.is_empty() {
                let space = inbox.space();
                assert!(!space.is_empty(), "there is room for the rest of a frame");
                let len = (1 + random.below(most)).min(space.len()).min(rest.len());
                space[..len].copy_from_slice(&rest[..len]);
                inbox.filled(len);
                rest = &rest[len..];
                while let Some(frame) = inbox.next().expect("they follow the rules") {
                    assert_eq!(frame, sent[heard]);
                    heard += 1;
                }
            }
            assert_eq!((heard, inbox.start), (sent.len(), inbox.end), "all of them, and nothing else");
        });
    }

    /// Returns the error of a frame, of which perhaps only the header has arrived.
    fn wrong(bytes: &[u8]) -> Option<Code> {
        let mut inbox = Inbox::new();
        inbox.space()[..bytes.len()].copy_from_slice(bytes);
        inbox.filled(bytes.len());
        inbox.next().err().map(|violation| violation.code)
    }

    #[test]
    fn a_header_that_nothing_can_make_right_is_refused_at_once() {
        let header = |kind, zero, len: u16, stream: u32| {
            [&[kind, zero], &len.to_be_bytes()[..], &stream.to_be_bytes()].concat()
        };
        // Each kind, the lengths nearest to the valid ones, and the streams that it may have.
        let kinds = [
            (1, 16, 16, false, true),
            (2, 0, 0, true, false),
            (3, 1, 16384, true, false),
            (4, 4, 4, true, true),
            (5, 0, 0, true, false),
            (6, 4, 4, true, false),
            (7, 8, 8, false, true),
            (8, 8, 8, false, true),
            (9, 4, 260, false, true),
        ];
        for (kind, least, most, any, none) in kinds {
            let stream = if any { 5 } else { 0 };
            for len in [least, most] {
                // Frames without a payload are complete; the others wait for it.
                assert_eq!(wrong(&header(kind, 0, len, stream)), None, "kind {kind} of {len} bytes");
            }
            for len in [least.wrapping_sub(1), most + 1, u16::MAX] {
                assert_eq!(
                    wrong(&header(kind, 0, len, stream)),
                    Some(Code::Length),
                    "kind {kind} of {len} bytes"
                );
            }
            assert_eq!(wrong(&header(kind, 1, most, stream)), Some(Code::Protocol));
            assert_eq!(wrong(&header(kind, 0, most, 5)).is_none(), any, "kind {kind} for a stream");
            assert_eq!(wrong(&header(kind, 0, most, 0)).is_none(), none, "kind {kind} for none");
        }
        for kind in (10..=255).chain([0]) {
            assert_eq!(wrong(&header(kind, 0, 0, 0)), Some(Code::Protocol));
        }
        // An incomplete header is not wrong yet.
        assert_eq!(wrong(&header(0, 0, 0, 0)[..7]), None);
    }

    #[test]
    fn a_payload_that_is_wrong_is_refused() {
        let hello = |magic: &[u8], version: u32| {
            let payload = [magic, &version.to_be_bytes()[..], &[0, 0, 0, 1, 0, 0, 0, 1]].concat();
            [&[1, 0, 0, 16, 0, 0, 0, 0], &payload[..]].concat()
        };
        assert_eq!(wrong(&hello(b"plmx", 1)), None);
        assert_eq!(wrong(&hello(b"plmy", 1)), Some(Code::Protocol));
        assert_eq!(wrong(&hello(b"plmx", 2)), Some(Code::Version));
        assert_eq!(wrong(&[9, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]), Some(Code::Protocol));
    }

    #[test]
    fn a_reason_that_is_too_long_is_cut_between_letters() {
        let mut wire = Vec::new();
        Frame::Goodbye { code: 1, reason: &"x€".repeat(100) }.encode(0, &mut wire);
        let mut inbox = Inbox::new();
        inbox.space()[..wire.len()].copy_from_slice(&wire);
        inbox.filled(wire.len());
        let frame = inbox.next().expect("it is right").expect("it is there");
        assert_eq!(frame, (0, Frame::Goodbye { code: 1, reason: &"x€".repeat(64) }));
    }
}
