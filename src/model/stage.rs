//! Building blocks of scenarios.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::reactor::{Direction, Pipe, Source};
use crate::sync::clock::{self, SlowTicks};
use crate::sync::thread::JoinHandle;
use crate::sync::{self, Condvar, Instant, Mutex};
use crate::{Runtime, current};

/// How many ticks it may take until the deputy has repaired a broken promise: two looks, and a tick in which
/// a thread comes.
pub(crate) const SOON: u32 = 4;

/// So many ticks of the clock's.
pub(crate) fn ticks(number: u32) -> Duration {
    number * clock::TICK
}

/// Prints the longest time that `what` took in any run, if `PACELINE_LONGEST` is set. Shows how tight a bound
/// is.
fn note_longest(what: &str, took: u64) {
    static LONGEST: std::sync::Mutex<std::collections::BTreeMap<String, u64>> =
        std::sync::Mutex::new(std::collections::BTreeMap::new());
    if std::env::var_os("PACELINE_LONGEST").is_none() {
        return;
    }
    let mut longest = LONGEST.lock().expect("nobody panics under it");
    let known = longest.entry(what.into()).or_default();
    if took > *known {
        *known = took;
        eprintln!("{what}: {took} ticks");
    }
}

/// Measures how long something takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace(SlowTicks);

impl Pace {
    pub(crate) fn new() -> Self {
        Self(SlowTicks::now())
    }

    /// # Panics
    ///
    /// Reports a fault if more than `limit` ticks of a slow clock have gone by, even if the panic is caught.
    #[track_caller]
    pub(crate) fn at_most(self, limit: u32, what: impl fmt::Display) {
        let took = self.0.elapsed();
        note_longest(&format!("{what} ({limit})"), took);
        if took > limit.into() {
            let place = std::panic::Location::caller();
            sync::fault(&format!("{place}: {what}: after {took} ticks, instead of {limit}"));
        }
    }
}

/// Asserts that `code` takes no more than so many ticks.
#[track_caller]
pub(crate) fn within<R>(limit: u32, what: impl fmt::Display, code: impl FnOnce() -> R) -> R {
    let pace = Pace::new();
    let result = code();
    pace.at_most(limit, what);
    result
}

/// Writes to the pipe after so many ticks; joined, it measures from that moment on.
pub(crate) fn writes_in(number: u32, pipe: &Pipe) -> JoinHandle<Pace> {
    let pipe = pipe.clone();
    super::spawn("writer", move || {
        sleep(number);
        pipe.write();
        Pace::new()
    })
}

/// Blocks the thread for so many ticks, whatever tokens it gets.
pub(crate) fn sleep(number: u32) {
    let until = Instant::now() + ticks(number);
    let (lock, bell) = (Mutex::new(()), Condvar::new());
    let mut guard = sync::lock(&lock);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        guard = bell.wait_timeout(guard, left).expect("nobody panics under it").0;
    }
}

/// Something that happens once. Threads wait for it, or tasks; a one-shot channel without a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latch(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<(bool, Vec<Waker>)>,
    bell: Condvar,
}

impl Latch {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn open(&self) {
        let wakers = {
            let mut state = sync::lock(&self.0.state);
            state.0 = true;
            std::mem::take(&mut state.1)
        };
        self.0.bell.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_open(&self) -> bool {
        sync::lock(&self.0.state).0
    }

    /// Blocks the thread, as the channels of std do.
    pub(crate) fn wait(&self) {
        let mut state = sync::lock(&self.0.state);
        while !state.0 {
            state = self.0.bell.wait(state).expect("nobody panics under it");
        }
    }

    /// Waits as a task does.
    pub(crate) async fn opened(&self) {
        poll_fn(|cx| {
            let waker = cx.waker().clone();
            let mut state = sync::lock(&self.0.state);
            if state.0 {
                return Poll::Ready(());
            }
            state.1.push(waker);
            Poll::Pending
        })
        .await;
    }
}

/// Stands for another library's `block_on`: polls, and blocks the thread until its own waker is called.
pub(crate) fn foreign_block_on<T>(future: impl Future<Output = T>) -> T {
    #[derive(Default)]
    struct Signal(Mutex<bool>, Condvar);
    impl Wake for Signal {
        fn wake(self: Arc<Self>) {
            *sync::lock(&self.0) = true;
            self.1.notify_one();
        }
    }
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(signal.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let mut woken = sync::lock(&signal.0);
        while !std::mem::take(&mut *woken) {
            woken = signal.1.wait(woken).expect("nobody panics under it");
        }
    }
}

/// Comes back at the next poll.
pub(crate) async fn yields() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The read end of a pipe, registered in the pool where it was made.
#[derive(Debug)]
pub(crate) struct Reader(Source, Pipe);

impl Reader {
    /// Registers it in the reactor of the thread's pool.
    pub(crate) fn new(pipe: &Pipe) -> Self {
        let reactor = current::current_reactor().expect("a poller is made of memory only");
        // SAFETY: a number stays what it is.
        let source = unsafe { Source::new(reactor, pipe.raw()) }.expect("there is such a pipe");
        Self(source, pipe.clone())
    }

    pub(crate) fn source(&self) -> &Source {
        &self.0
    }

    /// Waits for a byte and takes it.
    pub(crate) async fn byte(&self) -> io::Result<()> {
        poll_fn(|cx| self.0.poll_io(Direction::Read, cx, || self.1.read())).await
    }
}

/// A runtime, of which nothing may be left when the run is over.
pub(crate) fn runtime(threads: usize, max_threads: usize) -> Runtime {
    let builder = Runtime::builder().threads(threads).max_threads(max_threads);
    let runtime = builder.build().expect("threads start");
    super::remember(&runtime.pool);
    runtime
}

/// Returns whether nothing is open in the runtime: no thread is awake, no task is left, and all runners that
/// take tasks are in the line.
pub(crate) fn is_at_rest(runtime: &Runtime) -> bool {
    let pool = &runtime.pool;
    let state = &pool.crew().expect("a runtime has one").state;
    let (mut takers, mut are_empty) = (0, true);
    state.find_in_runners(|runner| -> Option<()> {
        takers += usize::from(!runner.is_standby());
        are_empty &= !runner.has_tasks();
        None
    });
    pool.is_quiet()
        && are_empty
        && !state.has_queued()
        && state.unfinished() == Some(0)
        && state.idle.waiting().len() >= takers
}

/// Asserts that the runtime comes to rest: its workers sleep, and no work is left for them.
#[track_caller]
pub(crate) fn settles(runtime: &Runtime) {
    let pace = Pace::new();
    while !is_at_rest(runtime) {
        pace.at_most(6, "the runtime comes to rest");
        sleep(1);
    }
}
