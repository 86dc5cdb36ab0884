//! Blocking readers and writers as streams.

use std::io::{self, Read, SeekFrom};
use std::panic::AssertUnwindSafe;

use futures_lite::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, FutureExt, StreamExt, future};
use paceline::{Runtime, Unblock, block_on, unblock};

use crate::blocking::{panic_of, runtime};
use crate::setups::{ENDLESS_STACK, Latch, OpenOnDrop, for_each_setup};

/// Fails if a read, a write or a seek panics when no thread can be started, or loses the value.
#[test]
fn without_a_thread_a_stream_is_an_error_and_keeps_its_value() {
    // No system has room for such a stack.
    let runtime = Runtime::builder().current_thread().stack_size(ENDLESS_STACK).build().unwrap();
    let mut stream = Unblock::new(io::Cursor::new(vec![7; 10]));
    runtime.block_on(async {
        let mut byte = [0];
        let errors = [
            stream.read(&mut byte).await.unwrap_err(),
            stream.write(&byte).await.unwrap_err(),
            stream.seek(SeekFrom::Start(1)).await.unwrap_err(),
            stream.read(&mut byte).await.unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().contains("cannot start a thread"), "{error}");
            assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "a caller would wait");
        }
    });
    let mut byte = [0];
    block_on(stream.read_exact(&mut byte)).unwrap();
    assert_eq!(byte, [7]);
}

/// Slowly, and through a buffer that is smaller than all transfers.
#[test]
fn bytes_pass_an_unblock_both_ways() {
    for_each_setup(|runtime| {
        let all: Vec<u8> = (0..100_000u32).map(|number| number as u8).collect();
        runtime.block_on(async move {
            for capacity in [0, 1, 7, 4096, 1 << 20] {
                let some = if capacity <= 7 { 500 } else { all.len() };
                let mut reads = Unblock::with_capacity(capacity, io::Cursor::new(all[..some].to_vec()));
                let mut read = Vec::new();
                reads.read_to_end(&mut read).await.unwrap();
                assert!(read == all[..some]);
                assert_eq!(reads.read(&mut []).await.unwrap(), 0);
                let mut writes = Unblock::with_capacity(capacity, io::Cursor::new(Vec::new()));
                writes.write_all(&all[..some]).await.unwrap();
                writes.flush().await.unwrap();
                assert_eq!(writes.seek(SeekFrom::Start(3)).await.unwrap(), 3);
                let mut byte = [0];
                writes.read_exact(&mut byte).await.unwrap();
                assert_eq!(byte, [3]);
                assert!(writes.into_inner().await.into_inner() == all[..some]);
            }
        });
    });
}

/// A failed read or write returns its error once, and the value can be taken back.
#[test]
fn errors_of_an_unblock() {
    #[derive(Debug)]
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("no bytes"))
        }
    }
    impl io::Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("no room"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    block_on(async {
        let mut broken = Unblock::new(Broken);
        assert_eq!(format!("{broken:?}"), "Unblock { io: Broken }");
        assert_eq!(broken.read(&mut [0]).await.unwrap_err().to_string(), "no bytes");
        broken.write_all(b"x").await.unwrap();
        assert_eq!(broken.flush().await.unwrap_err().to_string(), "no room");
        assert_eq!(broken.with_mut(|_| 7).await, 7);
        broken.close().await.unwrap();
        assert_eq!(format!("{broken:?}"), "Unblock { io: <closed> }");
        assert!(AssertUnwindSafe(broken.into_inner()).catch_unwind().await.is_err());
    });
}

/// The text is that of the `blocking` crate.
#[test]
fn a_panic_of_with_mut_says_what_has_panicked() {
    let mut number = Unblock::new(7);
    let text = panic_of(|| block_on(number.with_mut(|_| panic!("on purpose"))));
    assert_eq!(text, "`Unblock::with_mut()` operation has panicked: RecvError");
}

/// Taking the value back stops the thread, which returns it.
#[test]
fn an_endless_iterator_stops_when_it_is_taken_back() {
    block_on(async {
        let mut numbers = Unblock::with_capacity(4, 0u64..);
        for number in 0..10 {
            assert_eq!(numbers.next().await, Some(number));
        }
        let next = numbers.get_mut().await.start;
        assert!((10..=15).contains(&next), "{next}");
        assert_eq!(numbers.next().await, Some(next));
        drop(numbers);
    });
}

/// A panic of the inner reader is raised in the task that reads.
#[test]
fn a_panic_of_the_inner_reader_is_raised_in_the_read() {
    struct Panics;
    impl Read for Panics {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("nothing to read");
        }
    }
    assert_eq!(panic_of(|| block_on(Unblock::new(Panics).read(&mut [0]))), "nothing to read");
}

/// A value on a thread of a runtime that ends is lost, and the error says so.
#[test]
fn an_unblock_whose_runtime_has_ended() {
    struct Silent(Latch);
    impl Read for Silent {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            self.0.wait();
            buf[0] = 1;
            Ok(1)
        }
    }
    let runtime = runtime(1);
    let gate = Latch::new();
    let _open = OpenOnDrop(gate.clone());
    let wait = gate.clone();
    runtime.block_on(async move { unblock(move || wait.wait()).detach() });
    let mut silent = Unblock::new(Silent(gate.clone()));
    runtime.block_on(async { assert!(future::poll_once(silent.read(&mut [0])).await.is_none()) });
    drop(runtime);
    // The second time, too: fails if a lost value makes the next read panic.
    for _ in 0..2 {
        let error = pollster::block_on(silent.read(&mut [0])).unwrap_err();
        assert!(error.to_string().contains("shut down"), "{error}");
    }
}

/// Fails if an iterator that was lost before its end looks like one that has ended.
#[test]
fn an_iterator_whose_runtime_has_ended_is_no_shorter() {
    let runtime = runtime(1);
    let gate = Latch::new();
    let _open = OpenOnDrop(gate.clone());
    let wait = gate.clone();
    runtime.block_on(async move { unblock(move || wait.wait()).detach() });
    let mut numbers = Unblock::new(0..3);
    runtime.block_on(async { assert!(future::poll_once(numbers.next()).await.is_none()) });
    drop(runtime);
    let panic = panic_of(|| pollster::block_on(numbers.next()));
    assert!(panic.contains("shut down"), "{panic}");
}
