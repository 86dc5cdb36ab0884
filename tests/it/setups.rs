//! The set-ups in which a behaviour must hold, a watchdog over each, and parts from which tests build their
//! scenes.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::io::{Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use paceline::{Async, Builder, Promotion, Runtime, Timer, Tuning};

#[cfg(unix)]
#[path = "../../examples/testing/src/programs.rs"]
mod programs;
#[cfg(unix)]
pub use programs::stacks;

use crate::given_time::{RecvSoon, wait_for};

/// How long a child may run.
const CHILD: Duration = Duration::from_secs(if cfg!(miri) { 3600 } else { 120 });

/// How long an answer may take. A broken runtime never answers.
pub const SOON: Duration = Duration::from_secs(if cfg!(miri) { 120 } else { 10 });

/// A stack for which no process has room.
pub const ENDLESS_STACK: usize = usize::MAX / 4 * 3;

/// A tick of the deputy that never comes, so that the deputy cannot repair a lost promotion.
const NEVER: Duration = Duration::from_secs(3600);

/// One way to configure a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    pub threads: usize,
    pub promotion: Promotion,
    pub portable: bool,
    pub deputy: bool,
}

impl Setup {
    fn of((threads, promotion, portable): (usize, Promotion, bool)) -> Self {
        Self { threads, promotion, portable, deputy: true }
    }

    pub fn builder(self) -> Builder {
        Runtime::builder().threads(self.threads).tuning(self.tuning()).thread_name("worker")
    }

    pub fn tuning(self) -> Tuning {
        let tuning = if self.deputy { Tuning::default() } else { without_looks() };
        tuning.promotion(self.promotion).portable(self.portable)
    }

    pub fn build(self) -> Runtime {
        self.builder().build().expect("a runtime can be built")
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.portable { "portable" } else { "epoll" };
        let deputy = if self.deputy { "" } else { ", no deputy" };
        write!(f, "{} threads, {:?}, {way}{deputy}", self.threads, self.promotion)
    }
}

/// Returns the settings with a deputy that never looks.
pub fn without_looks() -> Tuning {
    Tuning::default().max_blind(NEVER)
}

/// Four groups of three set-ups. Each group has each value of each part of a set-up, and together they are
/// all set-ups.
const GROUPS: [[(usize, Promotion, bool); 3]; 4] = {
    use Promotion::{Adaptive, Eager};
    [
        [(1, Adaptive, false), (2, Eager, true), (4, Adaptive, true)],
        [(1, Eager, true), (2, Adaptive, false), (4, Eager, false)],
        [(1, Adaptive, true), (2, Eager, false), (4, Adaptive, false)],
        [(1, Eager, false), (2, Adaptive, true), (4, Eager, true)],
    ]
};

/// Returns the set-ups of the running test: those of the group to which the hash of its name leads. So each
/// test runs in three of the twelve, and each set-up is that of a quarter of the tests. With
/// `PACELINE_SETUPS=all` these are all twelve.
fn all() -> impl Iterator<Item = Setup> {
    let hash = test_name().bytes().fold(0_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    let group = GROUPS[(hash >> 4) as usize % GROUPS.len()];
    let wanted = match std::env::var("PACELINE_SETUPS").as_deref() {
        Ok("all") => GROUPS.concat(),
        Ok(other) => panic!("PACELINE_SETUPS is {other:?}, and not \"all\""),
        // Miri supports only paceline's own wait, and is slow.
        Err(_) if cfg!(miri) => vec![(2, Promotion::Adaptive, false), (2, Promotion::Eager, false)],
        Err(_) => group.to_vec(),
    };
    wanted.into_iter().map(Setup::of)
}

/// Returns the name of the running test. A child that runs a test on its main thread has it from its parent.
fn test_name() -> String {
    let this = thread::current();
    std::env::var("PACELINE_TEST_CHILD").ok().or(this.name().map(str::to_owned)).unwrap_or_default()
}

/// Runs `body` with a fresh runtime in each of the test's set-ups.
pub fn for_each_setup(body: impl Fn(&Arc<Runtime>) + Send + Sync + 'static) {
    for_setups(|_| true, move |_, runtime| body(runtime));
}

/// Runs `body` in those of the test's set-ups that `wanted` picks.
pub fn for_setups(
    wanted: impl Fn(Setup) -> bool,
    body: impl Fn(Setup, &Arc<Runtime>) + Send + Sync + 'static,
) {
    let body = Arc::new(body);
    let mut setups: Vec<_> = all().filter(|setup| wanted(*setup)).collect();
    if setups.is_empty() {
        // The test's group has none of these.
        setups.extend(GROUPS.concat().into_iter().map(Setup::of).find(|setup| wanted(*setup)));
    }
    assert!(!setups.is_empty() || cfg!(miri), "no set-up is wanted");
    for setup in setups {
        run(setup, body.clone(), |setup, body| {
            let runtime = Arc::new(setup.build());
            (Arc::downgrade(&runtime), move || body(setup, &runtime))
        });
    }
}

/// The same without a deputy: a lost promotion stays lost, and the test hangs.
pub fn without_deputy(body: impl Fn(Setup, &Arc<Runtime>) + Send + Sync + 'static) {
    let body = Arc::new(body);
    for setup in all().map(|setup| Setup { deputy: false, ..setup }) {
        run(setup, body.clone(), |setup, body| {
            let runtime = Arc::new(setup.build());
            (Arc::downgrade(&runtime), move || body(setup, &runtime))
        });
    }
}

/// Runs `body` in each of the test's set-ups; `body` builds its own runtime.
pub fn for_each_builder(body: impl Fn(Setup) + Send + Sync + 'static) {
    let body = Arc::new(body);
    for setup in all() {
        run(setup, body.clone(), |setup, body| (Weak::new(), move || body(setup)));
    }
}

/// Runs the function that `prepare` returns on a thread of its own, and waits for its end.
fn run<B: Send + 'static, F: FnOnce()>(
    setup: Setup,
    body: B,
    prepare: impl FnOnce(Setup, B) -> (Weak<Runtime>, F) + Send + 'static,
) {
    let (tell, told) = mpsc::channel();
    let watched = Arc::new(Mutex::new(Weak::new()));
    let prepared = watched.clone();
    let worker = thread::Builder::new().name(format!("test in {setup}"));
    let started = worker.spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(|| {
            let (runtime, body) = prepare(setup, body);
            *prepared.lock().unwrap() = runtime;
            body();
        }));
        let _ = tell.send(result);
    });
    started.expect("a test can start a thread");
    let ended = catch_unwind(AssertUnwindSafe(|| told.recv_soon()));
    match ended {
        Ok(Ok(Ok(()))) => {}
        Ok(Ok(Err(panic))) => panic!("[{setup}] {}", text_of(&*panic)),
        Ok(Err(mpsc::RecvError)) => unreachable!("the thread tells how it ends"),
        Err(hang) => {
            let runtime = watched.lock().unwrap().upgrade();
            let metrics = runtime.map_or(String::new(), |runtime| format!("\n{}", runtime.metrics()));
            panic!("[{setup}] {}{metrics}", text_of(&*hang));
        }
    }
}

/// Returns the message of a panic.
pub fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("(no text)")
}

/// A gate that is closed until it is opened. Waiting for it blocks the thread on purpose.
#[derive(Debug, Default, Clone)]
pub struct Latch(Arc<(Mutex<bool>, Condvar)>);

impl Latch {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn open(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    pub fn is_open(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks until the latch is open. A latch that stays closed fails the test.
    #[track_caller]
    pub fn wait(&self) {
        wait_for("a latch opens", |slice| {
            let guard = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = self.0.1.wait_timeout_while(guard, slice, |open| !*open);
            let (open, _) = waited.unwrap_or_else(PoisonError::into_inner);
            open.then_some(())
        });
    }
}

/// Opens the latch when it is dropped, so that a failed assertion frees the blocked threads, too.
#[derive(Debug)]
pub struct OpenOnDrop(pub Latch);

impl Drop for OpenOnDrop {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Waits until `holds` returns true, by polling it; for conditions without a channel.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, |slice| {
        let start = Instant::now();
        while !holds() {
            if start.elapsed() >= slice {
                return None;
            }
            thread::sleep(Duration::from_micros(200));
        }
        Some(())
    });
}

/// Sends the calling thread's number, for [`AsleepThread::wait`].
#[derive(Debug)]
pub struct AsleepThread(mpsc::Receiver<u32>);

impl AsleepThread {
    /// Returns a function that the thread to be watched calls at the end of the last code that it runs before
    /// it sleeps.
    pub fn new() -> (impl Fn() + Clone + Send + Sync + 'static, Self) {
        let (tell, told) = mpsc::channel();
        let tell = Mutex::new(tell);
        let tell = Arc::new(tell);
        (move || _ = tell.lock().unwrap().send(number_of_thread()), Self(told))
    }

    /// Waits until the thread has called the function, and then until it sleeps.
    #[track_caller]
    pub fn wait(&self) {
        let number = self.0.recv_soon().expect("it calls that");
        if number == 0 {
            return thread::sleep(Duration::from_millis(20));
        }
        eventually("it sleeps", || {
            let stat = std::fs::read_to_string(format!("/proc/self/task/{number}/stat")).unwrap();
            // The name is in parentheses, and may contain parentheses.
            stat.rsplit(')').next().unwrap().trim_start().starts_with('S')
        });
    }
}

/// Returns the system's number of the calling thread; 0 on systems that do not report what a thread does.
pub fn number_of_thread() -> u32 {
    #[cfg(all(target_os = "linux", not(miri)))]
    return rustix::thread::gettid().as_raw_nonzero().get() as u32;
    #[cfg(not(all(target_os = "linux", not(miri))))]
    return 0;
}

/// One end of a connection within the process.
#[cfg(all(unix, not(miri)))]
pub type Socket = std::os::unix::net::UnixStream;

/// Returns both ends of a connection.
#[cfg(all(unix, not(miri)))]
pub fn sockets() -> (Socket, Socket) {
    Socket::pair().unwrap()
}

/// One end of a connection within the process. Miri has `UnixStream::pair`, but the standard library writes
/// to it with `send`, which miri has for TCP only; Windows has no such pair in the standard library.
#[cfg(any(miri, not(unix)))]
pub type Socket = std::net::TcpStream;

/// Returns both ends of a connection.
#[cfg(any(miri, not(unix)))]
pub fn sockets() -> (Socket, Socket) {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let ours = Socket::connect(listener.local_addr().unwrap()).unwrap();
    (ours, listener.accept().unwrap().0)
}

/// Returns both ends of a connection, registered with the current runtime.
pub fn pair() -> (Async<Socket>, Async<Socket>) {
    let (one, other) = sockets();
    (Async::new(one).unwrap(), Async::new(other).unwrap())
}

/// A connection to a task of the runtime that sends back what it receives: proof that a thread leads.
#[derive(Debug)]
pub struct Ping(Socket);

impl Ping {
    pub fn new(runtime: &Runtime) -> Self {
        Self::echoed_by(runtime, |echo| echo)
    }

    /// Spawns what `wrap` makes of the echo.
    pub fn echoed_by<F>(
        runtime: &Runtime,
        wrap: impl FnOnce(Pin<Box<dyn Future<Output = ()> + Send>>) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (ours, theirs) = sockets();
        // Miri has no such limit.
        assert!(cfg!(miri) || ours.set_read_timeout(Some(SOON)).is_ok());
        let (registered, is_registered) = mpsc::channel();
        let echo = async move {
            let mut stream = Async::new(theirs).unwrap();
            registered.send(()).unwrap();
            let mut buf = [0; 64];
            while let Ok(n @ 1..) = stream.read(&mut buf).await {
                stream.write_all(&buf[..n]).await.unwrap();
            }
        };
        runtime.spawn(wrap(Box::pin(echo))).detach();
        is_registered.recv_soon().expect("the echo task starts");
        let mut ping = Self(ours);
        ping.ping();
        ping
    }

    /// Sends a byte, waits for its return, and returns how long that took.
    #[track_caller]
    pub fn ping(&mut self) -> Duration {
        let start = Instant::now();
        self.0.write_all(b"ping").unwrap();
        let mut buf = [0; 4];
        if let Err(error) = self.0.read_exact(&mut buf) {
            panic!("no answer to a ping: no thread leads? {error}");
        }
        start.elapsed()
    }
}

struct Does<F>(F);

impl<F: Fn() + Send + Sync + 'static> Wake for Does<F> {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        (self.0)();
    }
}

/// Returns a waker that calls a function.
pub fn waker_that(does: impl Fn() + Send + Sync + 'static) -> Waker {
    Waker::from(Arc::new(Does(does)))
}

/// Polls `timer` with `waker` while its deadline is far away, and then sets it to fire after `duration`. So
/// the waker is called even on a slow machine; a timer past its deadline at the first poll would be ready and
/// call no waker.
#[track_caller]
pub fn arm(timer: &mut Timer, duration: Duration, waker: &Waker) {
    timer.set_after(Duration::from_secs(3600));
    assert!(Pin::new(&mut *timer).poll(&mut Context::from_waker(waker)).is_pending());
    timer.set_after(duration);
}

/// Runs a test's body in a process of its own: starts this test again, with a variable in the environment.
/// Returns true in the child, where the body runs, and false in the parent, after the child has ended well.
/// `shell` is run before the test, for limits.
#[track_caller]
pub fn is_child(test: &str, shell: &str) -> bool {
    if std::env::var("PACELINE_TEST_CHILD").is_ok_and(|name| name == test) {
        return true;
    }
    let output = output(child(test, shell));
    let text =
        format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "the child of {test} failed:\n{text}");
    assert!(text.contains("1 passed"), "there is no test {test}:\n{text}");
    false
}

/// Runs a program until it ends. A program that hangs fails the test.
#[track_caller]
pub fn output(mut command: Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    ends(child.expect("it can be started"))
}

/// Waits for the end of a child, and returns what it prints until then. On Unix, a child that hangs fails the
/// test.
#[track_caller]
pub fn ends(child: Child) -> Output {
    #[cfg(unix)]
    return programs::output(child, CHILD);
    #[cfg(not(unix))]
    return child.wait_with_output().unwrap();
}

#[cfg(not(unix))]
pub fn stacks(_process: u32) -> String {
    String::new()
}

/// Returns the command that runs `test` as a child. For a foreign processor `PACELINE_TEST_RUNNER` has the
/// emulator and its arguments. On Windows, where there is no such shell, `shell` has to be ":".
pub fn child(test: &str, shell: &str) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut command = Command::new(if cfg!(unix) { Path::new("sh") } else { &this });
    if cfg!(unix) {
        command.arg("-c").arg(format!("{shell}; exec $PACELINE_TEST_RUNNER \"$0\" \"$@\"")).arg(this);
    } else {
        assert_eq!(shell, ":");
    }
    command.args(["--exact", test, "--include-ignored", "--nocapture", "--test-threads=1"]);
    command.env("PACELINE_TEST_CHILD", test);
    // The symbols of a backtrace take memory and time, which some tests measure.
    command.env("RUST_BACKTRACE", "0").env_remove("RUST_LIB_BACKTRACE");
    command
}
