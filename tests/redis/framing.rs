//! The parser alone, from the example's own file.

#[path = "../../examples/redis/resp.rs"]
mod resp;

use resp::{MAX_BULK, Parser};

/// The result of parsing: commands, and the error at their end, if there is one.
type Outcome = (Vec<Vec<Vec<u8>>>, Option<String>);

/// Reads in pieces of these lengths, repeating the last one, and asks for commands after each piece.
fn parse(mut bytes: &[u8], pieces: impl IntoIterator<Item = usize>) -> Outcome {
    let (mut parser, mut commands) = (Parser::new(), Vec::new());
    let mut pieces = pieces.into_iter();
    while !bytes.is_empty() {
        let mut piece = pieces.next().unwrap_or(usize::MAX).clamp(1, bytes.len());
        while piece > 0 {
            let space = parser.space();
            let some = piece.min(space.len());
            space[..some].copy_from_slice(&bytes[..some]);
            parser.filled(some);
            bytes = &bytes[some..];
            piece -= some;
            loop {
                match parser.next() {
                    Ok(Some(command)) => {
                        commands.push(command.from(0).map(<[u8]>::to_vec).collect::<Vec<_>>());
                        assert_eq!(command.len(), commands[commands.len() - 1].len());
                    }
                    Ok(None) => break,
                    Err(error) => return (commands, Some(error.to_string())),
                }
            }
        }
    }
    (commands, None)
}

fn command(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend(format!("${}\r\n", arg.len()).bytes());
        bytes.extend_from_slice(arg);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// A small deterministic generator, for repeatable tests: SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ bits >> 31) % bound as u64) as usize
    }
}

/// Generates commands, inline commands, empty input, and sometimes an error.
fn conversation(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.below(12) {
        match random.below(40) {
            0..=19 => {
                let args: Vec<_> = (0..1 + random.below(5))
                    .map(|_| {
                        let len = if random.below(20) == 0 { random.below(9000) } else { random.below(6) };
                        (0..len).map(|_| b"a*$\r\n0 "[random.below(7)]).collect::<Vec<u8>>()
                    })
                    .collect();
                bytes.extend(command(&args.iter().map(|arg| &**arg).collect::<Vec<_>>()));
            }
            20..=26 => bytes.extend(b"SET  a\tb\r\n"),
            27..=30 => bytes.extend(b"PING\n"),
            31..=33 => bytes.extend(b"  \r\n"),
            34 => bytes.extend(b"*0\r\n"),
            35 => bytes.extend(b"*-1\r\n"),
            36 => bytes.extend(b"*1\r\n$-1\r\n"),
            37 => bytes.extend(b"*1\r\n:1\r\n"),
            38 => bytes.extend(b"*2\r\n$1\r\nab\r\n"),
            _ => bytes.extend(b"*x\r\n"),
        }
    }
    let kept = bytes.len() - random.below(8).min(bytes.len());
    bytes.truncate(kept);
    bytes
}

#[test]
fn any_cut_gives_the_same() {
    let mut random = Random(11);
    for round in 0..2000 {
        let bytes = conversation(&mut random);
        let whole = parse(&bytes, []);
        assert_eq!(parse(&bytes, std::iter::repeat(1)), whole, "byte by byte, round {round}");
        let largest = 1 + random.below(300);
        let pieces: Vec<_> = (0..bytes.len()).map(|_| 1 + random.below(largest)).collect();
        assert_eq!(parse(&bytes, pieces), whole, "by chance, round {round}");
    }
    let bytes =
        [command(&[b"SET", b"k", b"\r\n$*"]), b"GET k\r\n*1\r\n$4\r\nPING\r\n*x\r\n".to_vec()].concat();
    let whole = parse(&bytes, []);
    assert_eq!((whole.0.len(), whole.1.as_deref()), (3, Some("Protocol error: invalid multibulk length")));
    (1..bytes.len()).for_each(|cut| assert_eq!(parse(&bytes, [cut]), whole, "cut at {cut}"));
}

/// Checks for an error with redis's text, for each way to cut the bytes.
fn assert_error(bytes: &[u8], what: &str) {
    for largest in [usize::MAX, 1000, 1] {
        let (commands, error) = parse(bytes, std::iter::repeat(largest));
        assert!(commands.is_empty());
        assert_eq!(
            error.as_deref(),
            Some(format!("Protocol error: {what}").as_str()),
            "{}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn what_is_no_command_is_an_error() {
    for count in ["x", "", "65537", "99999999999999999999", "1 ", "+1", "01", "-", "-0"] {
        assert_error(format!("*{count}\r\n").as_bytes(), "invalid multibulk length");
    }
    for len in ["-1", "", "4194305", "9223372036854775808", "0x1", "00"] {
        assert_error(format!("*1\r\n${len}\r\n").as_bytes(), "invalid bulk length");
    }
    assert_error(b"*1\r\n:1\r\n", "expected '$', got ':'");
    assert_error(b"*1\r\n\r\n", "expected '$', got an empty line");
    assert_error(b"*1\r\n$1\r\nabc", "expected the end of a bulk");
    assert_error(&[b'a'; 64 * 1024], "too big inline request");
    assert_error(format!("*{}", "1".repeat(64 * 1024)).as_bytes(), "too big mbulk count string");
    assert_error(format!("*1\r\n${}", "1".repeat(64 * 1024)).as_bytes(), "too big bulk count string");
}

#[test]
fn a_command_as_large_as_it_may_be_fits_and_a_larger_one_does_not() {
    let large = vec![b'x'; MAX_BULK as usize];
    let bytes = command(&[b"SET", b"key", &large]);
    let (commands, error) = parse(&bytes, std::iter::repeat(5000));
    assert_eq!((commands.len(), error), (1, None));
    assert!(commands[0][2] == large);
    let (commands, error) = parse(&command(&[b"SET", &large, &large]), std::iter::repeat(5000));
    assert_eq!((commands.len(), error.as_deref()), (0, Some("Protocol error: too big request")));
}

/// Fails, by its time limit, if a command is parsed anew for each byte.
#[test]
fn many_arguments_byte_by_byte() {
    let args = vec![b"".as_slice(); 60_000];
    let (commands, error) = parse(&command(&args), std::iter::repeat(1));
    assert_eq!((commands.len(), commands[0].len(), error), (1, 60_000, None));
}
