//! One scene: tasks that compute, yield and go on, and beside them one wait of each kind, again and again.
//!
//! The code is the same on each runtime, behind [`Rival`]. All kinds of waits go on at the same time. At the
//! end of the window no further wait begins, while the computing tasks go on until the waits in progress have
//! ended, or [`LIMIT`] is over. Then the process prints a line for each kind, and ends itself.

use std::future::{Future, poll_fn};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::panic;
use std::process;
use std::str::FromStr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::waits::{Clock, Summary, Waits};

/// A wait that takes longer than this has not ended.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// The kinds of waits, by the first word of the line that the process prints.
pub(crate) const PING: &str = "ping";
pub(crate) const READY: &str = "ready-socket";
pub(crate) const TIMER: &str = "timer";
pub(crate) const SPAWNED: &str = "spawned";
pub(crate) const BY_TASK: &str = "woken-by-task";
pub(crate) const BY_THREAD: &str = "woken-by-thread";
pub(crate) const UNBLOCK: &str = "unblock";
pub(crate) const YIELD: &str = "yield";

/// The last argument for a scene with tasks that are always ready.
pub(crate) const BUSY: &str = "busy";
/// The last argument for a scene without such tasks.
pub(crate) const PACED: &str = "paced";

/// Pause between two waits of the same kind.
const PAUSE: Duration = Duration::from_millis(5);
const TIMEOUT: Duration = Duration::from_millis(10);
/// Number of yields between two pauses, in a scene without tasks that are always ready.
const YIELDS: usize = 100;

/// A runtime.
pub(crate) trait Rival: Sized + Send + Sync + 'static {
    type Socket: Send + 'static;

    fn start(workers: usize) -> io::Result<Self>;
    /// Spawns a task that goes on by itself. May be called on any thread.
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static);

    // The others must be called in a task.
    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send;
    fn yield_now() -> impl Future<Output = ()> + Send;
    /// Calls a closure that does nothing on a thread that may block.
    fn unblock() -> impl Future<Output = ()> + Send;
    fn open(stream: UnixStream) -> io::Result<Self::Socket>;
    fn read(socket: &mut Self::Socket, buf: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send;
    fn write(socket: &mut Self::Socket, buf: &[u8]) -> impl Future<Output = io::Result<()>> + Send;
}

/// The arguments of a scene.
struct Settings {
    workers: usize,
    tasks: usize,
    poll: Duration,
    window: Duration,
    /// Whether some tasks are always ready: the reader of a socket that a peer floods, and loops that yield.
    is_busy: bool,
}

impl Settings {
    fn parse(arguments: &[String]) -> io::Result<Settings> {
        let usage = || io::Error::other(format!("usage: WORKERS TASKS POLL_US WINDOW_MS ({PACED} | {BUSY})"));
        let [workers, tasks, poll, window, variant] = arguments else { return Err(usage()) };
        if ![PACED, BUSY].contains(&variant.as_str()) {
            return Err(usage());
        }
        Ok(Settings {
            workers: number(workers)?,
            tasks: number(tasks)?,
            poll: Duration::from_micros(number(poll)?),
            window: Duration::from_millis(number(window)?),
            is_busy: variant == BUSY,
        })
    }
}

fn number<N: FromStr>(word: &str) -> io::Result<N> {
    word.parse().map_err(|_| io::Error::other(format!("{word} is not a valid number")))
}

/// Runs a scene, prints its figures, and ends the process.
pub(crate) fn run<R: Rival>(arguments: &[String]) -> io::Result<()> {
    let settings = Settings::parse(arguments)?;
    abort_at_panics();
    end_after(settings.window + LIMIT + Duration::from_secs(15));
    // Never dropped: the process ends while tasks compute.
    let runtime: &R = Box::leak(Box::new(R::start(settings.workers)?));
    let clock: &Clock = Box::leak(Box::new(Clock::start()));
    let waits = || -> &[Waits; 1] { Box::leak(Box::new([Waits::new(clock)])) };
    let yields: &[Waits; 2] = Box::leak(Box::new([Waits::new(clock), Waits::new(clock)]));

    let mut kinds: Vec<(&str, &'static [Waits])> = Vec::new();
    let mut add = |name, waits: &'static [Waits; 1]| {
        kinds.push((name, waits));
        &waits[0]
    };
    ping(runtime, add(PING, waits()))?;
    if settings.is_busy {
        ready_socket(runtime, add(READY, waits()))?;
    }
    timer(runtime, add(TIMER, waits()));
    spawned(runtime, add(SPAWNED, waits()));
    let by_task = woken_by_task(runtime, add(BY_TASK, waits()));
    woken_by_thread(runtime, add(BY_THREAD, waits()));
    unblock(runtime, add(UNBLOCK, waits()));
    for loops in yields {
        yields_in_a_loop(runtime, loops, settings.is_busy);
    }
    kinds.push((YIELD, yields));

    let is_running =
        |(name, waits): &(&str, &[Waits])| *name == BY_TASK || waits.iter().all(Waits::is_running);
    let start = Instant::now();
    while !kinds.iter().all(is_running) {
        if start.elapsed() > Duration::from_secs(5) {
            return Err(io::Error::other("the scene has not begun within 5 s"));
        }
        thread::sleep(Duration::from_millis(2));
    }
    clock.is_measuring.store(true, SeqCst);
    for _ in 0..settings.tasks {
        compute::<R>(runtime, by_task.clone(), settings.poll);
    }
    thread::sleep(settings.window);
    clock.is_over.store(true, SeqCst);
    let is_in_time = |waits: &Waits| waits.age().is_some_and(|age| age < LIMIT);
    while kinds.iter().any(|(_, waits)| waits.iter().any(is_in_time)) {
        thread::sleep(Duration::from_millis(2));
    }
    for (name, waits) in kinds {
        let Summary { longest, median, count, is_ended } = Summary::of(waits);
        println!("{name} {} {} {count} {is_ended}", longest.as_nanos(), median.as_nanos());
    }
    process::exit(0)
}

/// Otherwise a wait would never end because its task has panicked.
fn abort_at_panics() {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        hook(info);
        process::abort();
    }));
}

/// Ends the process after that time, in case its main thread does not.
fn end_after(time: Duration) {
    thread::spawn(move || {
        thread::sleep(time);
        eprintln!("the scene has not ended within {} s", time.as_secs());
        process::abort();
    });
}

/// Computes for as long as a poll takes by the clock, yields, and goes on. Each poll first rings the bell.
fn compute<R: Rival>(runtime: &R, bell: Arc<Bell>, poll: Duration) {
    runtime.spawn(async move {
        loop {
            bell.ring();
            let start = Instant::now();
            while start.elapsed() < poll {
                std::hint::spin_loop();
            }
            R::yield_now().await;
        }
    });
}

/// A thread sends a byte to a task, and waits for the answer.
fn ping<R: Rival>(runtime: &R, waits: &'static Waits) -> io::Result<()> {
    let (mut client, server) = UnixStream::pair()?;
    runtime.spawn(async move {
        let mut socket = R::open(server).expect("a socket can be registered");
        let mut byte = [0];
        while R::read(&mut socket, &mut byte).await.expect("the client is there") > 0 {
            R::write(&mut socket, &byte).await.expect("the client is there");
        }
    });
    thread::spawn(move || {
        let mut byte = [1];
        loop {
            let from = Instant::now();
            if !waits.begin(from) {
                return;
            }
            client.write_all(&byte).expect("the server is there");
            client.read_exact(&mut byte).expect("the server is there");
            waits.end(from);
            thread::sleep(PAUSE);
        }
    });
    Ok(())
}

/// A task reads from a socket that always has more. A wait is the time from one read to the next.
fn ready_socket<R: Rival>(runtime: &R, waits: &'static Waits) -> io::Result<()> {
    let (mut peer, socket) = UnixStream::pair()?;
    runtime.spawn(async move {
        let mut socket = R::open(socket).expect("a socket can be registered");
        let mut buf = [0; 512];
        let mut from = Instant::now();
        while waits.begin(from) {
            R::read(&mut socket, &mut buf).await.expect("the peer is there");
            from = waits.end(from);
        }
        // The socket stays open until the process ends, or the peer would have an error.
        std::mem::forget(socket);
    });
    thread::spawn(move || {
        loop {
            peer.write_all(&[0; 4096]).expect("the reader is there");
        }
    });
    Ok(())
}

/// A wait is the time from the deadline to the poll.
fn timer<R: Rival>(runtime: &R, waits: &'static Waits) {
    runtime.spawn(async move {
        loop {
            let due = Instant::now() + TIMEOUT;
            if !waits.begin(due) {
                return;
            }
            R::sleep(TIMEOUT).await;
            waits.end(due);
        }
    });
}

/// A thread spawns a task. A wait ends with the task's first poll.
fn spawned<R: Rival>(runtime: &'static R, waits: &'static Waits) {
    thread::spawn(move || {
        let (told, polled) = channel();
        loop {
            let from = Instant::now();
            if !waits.begin(from) {
                return;
            }
            let told = told.clone();
            runtime.spawn(async move {
                waits.end(from);
                told.send(()).expect("the thread waits");
            });
            polled.recv().expect("the thread holds a sender");
            thread::sleep(PAUSE);
        }
    });
}

/// Returns the bell that wakes the task. A wait is the time from the first ring to the poll.
fn woken_by_task<R: Rival>(runtime: &R, waits: &'static Waits) -> Arc<Bell> {
    let bell = Arc::new(Bell { waits, state: Mutex::default() });
    let rung = bell.clone();
    runtime.spawn(async move {
        loop {
            rung.heard().await;
        }
    });
    bell
}

/// A thread rings the bell, and goes on when the task has heard it.
fn woken_by_thread<R: Rival>(runtime: &R, waits: &'static Waits) {
    let bell = Arc::new(Bell { waits, state: Mutex::default() });
    let rung = bell.clone();
    let (heard, is_heard): (Sender<()>, Receiver<()>) = channel();
    runtime.spawn(async move {
        loop {
            rung.heard().await;
            // The thread is gone if the scene is over.
            let _ = heard.send(());
        }
    });
    thread::spawn(move || {
        while bell.ring() {
            is_heard.recv().expect("the task goes on");
            thread::sleep(PAUSE);
        }
    });
}

/// A wait is the time from the call to the result.
fn unblock<R: Rival>(runtime: &R, waits: &'static Waits) {
    runtime.spawn(async move {
        loop {
            let from = Instant::now();
            if !waits.begin(from) {
                return;
            }
            R::unblock().await;
            waits.end(from);
            R::sleep(PAUSE).await;
        }
    });
}

/// A wait is the time from one yield to the poll after it.
fn yields_in_a_loop<R: Rival>(runtime: &R, waits: &'static Waits, is_busy: bool) {
    runtime.spawn(async move {
        loop {
            let mut from = Instant::now();
            for _ in 0..YIELDS {
                if !waits.begin(from) {
                    return;
                }
                R::yield_now().await;
                from = waits.end(from);
            }
            if !is_busy {
                R::sleep(PAUSE).await;
            }
        }
    });
}

/// Wakes one task.
struct Bell {
    waits: &'static Waits,
    state: Mutex<Rung>,
}

#[derive(Default)]
struct Rung {
    /// When the bell rang that was not heard yet.
    at: Option<Instant>,
    waker: Option<Waker>,
}

impl Bell {
    /// Wakes the task, unless it was woken and has not been polled yet. Returns false if the scene is over.
    fn ring(&self) -> bool {
        let mut state = self.lock();
        if state.at.is_none() {
            let now = Instant::now();
            if !self.waits.begin(now) {
                return false;
            }
            state.at = Some(now);
            let waker = state.waker.take();
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        true
    }

    /// Returns when the bell has rung.
    fn heard(&self) -> impl Future<Output = ()> + Send + '_ {
        poll_fn(|context| {
            let mut state = self.lock();
            match state.at.take() {
                Some(at) => {
                    self.waits.end(at);
                    Poll::Ready(())
                }
                None => {
                    state.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Rung> {
        self.state.lock().expect("a panic ends the process")
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    fn parsed(line: &str) -> io::Result<Settings> {
        Settings::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_scene_has_all_of_its_settings() {
        let settings = parsed("2 8 100 2000 busy").unwrap();
        assert_eq!((settings.workers, settings.tasks, settings.is_busy), (2, 8, true));
        assert_eq!((settings.poll.as_micros(), settings.window.as_millis()), (100, 2_000));
        for line in ["2 8 100 2000", "2 8 100 2000 lazy", "2 eight 100 2000 busy"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_wait_for_the_bell_begins_with_its_first_ring() {
        let clock: &Clock = Box::leak(Box::new(Clock::start()));
        let waits: &Waits = Box::leak(Box::new(Waits::new(clock)));
        let bell = Bell { waits, state: Mutex::default() };
        assert!(bell.ring());
        let first = bell.lock().at;
        assert!(bell.ring());
        assert_eq!(bell.lock().at, first);
        let mut heard = pin!(bell.heard());
        assert!(heard.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        assert!(waits.is_running() && waits.age().is_none());
        clock.is_over.store(true, SeqCst);
        assert!(!bell.ring());
    }
}
