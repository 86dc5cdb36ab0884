//! The state of a thread, as Linux tells it.

use std::ffi::{OsStr, c_int, c_long};
use std::fs::File;
use std::io::{Cursor, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::str;
use std::time::Duration;

use super::syscall::Syscall;
use crate::sync::thread_local;

thread_local! {
    static THIS_THREAD: ThreadState = ThreadState(rustix::thread::gettid().as_raw_nonzero().get());
}

/// How many bytes of a file about a thread are read. `syscall` has a number and eight addresses, which are up
/// to 170. `stat` may be longer, but what is wanted of it is behind the name, which has up to 64 bytes.
const MOST_READ: usize = 512;

/// A thread, and ways to ask what it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadState(i32);

/// Whether [`Timespec`] is that of C: two `long`s. The type is larger on x32, and on 32-bit architectures so
/// new that seconds never had 32 bits (riscv32, hexagon).
const IS_TIMESPEC_KNOWN: bool = cfg!(any(
    target_pointer_width = "64",
    target_arch = "arm",
    target_arch = "m68k",
    target_arch = "mips",
    target_arch = "powerpc",
    target_arch = "sparc",
    target_arch = "x86",
));

/// C's `timespec`.
#[repr(C)]
struct Timespec {
    seconds: c_long,
    nanos: c_long,
}

impl ThreadState {
    /// Returns the state of the current thread.
    pub(crate) fn here() -> Self {
        THIS_THREAD.with(|here| *here)
    }

    /// Returns the number of the thread in the system, if the system tells.
    pub(crate) fn number(self) -> Option<u32> {
        u32::try_from(self.0).ok()
    }

    /// Returns the processor time that the thread has used so far, up to this moment even while it runs.
    /// `None` if the system does not tell, or if the thread is gone. One cheap system call: some 0.3 us.
    pub(crate) fn processor_time(self) -> Option<Duration> {
        // rustix has the clocks of processes and of descriptors, but not those of other threads.
        unsafe extern "C" {
            fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
        }
        // See `MAKE_THREAD_CPUCLOCK` of the kernel: 2 is the scheduler's own clock, 4 selects a thread.
        const OF_A_THREAD: c_int = 4;
        const BY_THE_SCHEDULER: c_int = 2;
        if !IS_TIMESPEC_KNOWN {
            return None;
        }
        let clock = !self.0 << 3 | OF_A_THREAD | BY_THE_SCHEDULER;
        let mut time = Timespec { seconds: 0, nanos: 0 };
        // SAFETY: the declaration is POSIX's, and `time` belongs to this call. A thread that is gone gives an
        // error.
        let result = unsafe { clock_gettime(clock, &raw mut time) };
        (result == 0).then(|| Duration::new(time.seconds as u64, time.nanos as u32))
    }

    /// Returns whether the thread runs, or waits for nothing but a processor. `None` if the system does not
    /// tell (`/proc` is not mounted), or if the thread is gone.
    ///
    /// A thread that a tracer or a signal has stopped (`t`, `T`) counts as one that waits for a processor:
    /// another thread would not help, because it would be stopped as well. `strace -f` stops each thread at
    /// each of its calls.
    pub(crate) fn is_running(self) -> Option<bool> {
        let mut buffer = [0; MOST_READ];
        let stat = self.read("stat", &mut buffer)?;
        // The name before it is set by the program, and may contain anything; only numbers follow.
        let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
        Some(matches!(stat.get(name_ends + 2)?, b'R' | b't' | b'T'))
    }

    /// Returns the system call in which the thread sleeps; `None` if it runs or sleeps outside of a call, or
    /// if the system does not tell.
    pub(crate) fn syscall(self) -> Option<Syscall> {
        // "running"; or "-1 ..." if the thread sleeps outside any call (a page fault); or the number and the
        // arguments.
        let mut buffer = [0; MOST_READ];
        let text = str::from_utf8(self.read("syscall", &mut buffer)?).ok()?;
        text.split_whitespace().next()?.parse().ok().map(Syscall::new)
    }

    /// Reads the beginning of a file about the thread, as far as it fits: one system call each to open, to
    /// read and to close it. Allocates nothing. `fs::read` asks for the length, which such a file does not
    /// have, and reads by small pieces up to the end: nine calls.
    fn read<'a>(self, file: &str, buffer: &'a mut [u8; MOST_READ]) -> Option<&'a [u8]> {
        let mut path = Cursor::new([0; 64]);
        write!(path, "/proc/self/task/{}/{file}", self.0).ok()?;
        let path = &path.get_ref()[..path.position() as usize];
        let read = File::open(OsStr::from_bytes(path)).ok()?.read(buffer).ok()?;
        buffer.get(..read)
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_thread_that_blocks_does_not_run() {
        let here = ThreadState::here();
        assert_eq!(here.is_running(), Some(true));
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let blocks = thread::Builder::new().name("x) R (y".into()).spawn(move || {
            tell.send(ThreadState::here()).unwrap();
            let _ = ended.recv();
        });
        let state = told.recv().unwrap();
        while state.is_running().unwrap() {
            thread::yield_now();
        }
        let call = state.syscall().expect("it is in a call");
        // Not every architecture has its names in the table.
        assert_eq!(call.name().unwrap_or("futex"), "futex");
        // The system may count the last moments before the call a little later.
        let mut used = state.processor_time().expect("the system tells");
        loop {
            thread::sleep(Duration::from_millis(2));
            match state.processor_time() {
                Some(now) if now == used => break,
                now => used = now.expect("it tells again"),
            }
        }
        drop(end);
        blocks.unwrap().join().unwrap();
        let gone = || state.processor_time().is_none() && state.is_running().is_none();
        while !gone() {
            thread::yield_now();
        }
    }

    /// Fails if a file is read up to its end.
    #[test]
    fn a_question_reads_once() {
        // Returns how often this thread has read so far, which is once more at each call. A kernel without
        // the accounting of I/O has no such file.
        let reads = || {
            let (mut io, mut buffer) = (File::open("/proc/thread-self/io").ok()?, [0; MOST_READ]);
            let read = io.read(&mut buffer).ok()?;
            let mut lines = str::from_utf8(&buffer[..read]).unwrap().lines();
            lines.find_map(|line| line.strip_prefix("syscr: ")?.parse::<u64>().ok())
        };
        let here = ThreadState::here();
        let before = reads();
        assert_eq!(here.is_running(), Some(true));
        assert!(here.syscall().is_some(), "this thread is in the call that asks");
        let (Some(before), Some(after)) = (before, reads()) else { return };
        assert_eq!(after - before, 1 + 2);
    }

    #[test]
    fn a_thread_that_computes_uses_processor_time() {
        let here = ThreadState::here();
        let begin = here.processor_time().unwrap();
        while here.processor_time().unwrap() - begin < Duration::from_millis(2) {}
        assert!(begin > Duration::ZERO);
    }
}
