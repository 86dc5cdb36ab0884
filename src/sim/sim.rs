//! [`Sim`]: a simulation, as its test sees it.

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use super::control::Network;
use super::events::{CheckRun, FirstRun};
use super::files::Files;
use super::order::Order;
use super::presence::Presence;
use super::report::Report;
use super::rng::Rng;
use super::simulation::{Conditions, Simulated};
use super::story::Story;
use super::trace_file;
use super::way::SimulatedWay;
use crate::executor::Task;
use crate::io::Timer;
use crate::observed::{SpawnMeta, TaskKind};
use crate::pool::{EnterGuard, Pool, Tuning};
use crate::reactor::WayChoice;
use crate::runtime::Runtime;
use crate::waking;

/// How far the clock of a simulation moves on: 584 years, which still is a number of nanoseconds in 64 bits.
const END_OF_TIME: Duration = Duration::from_secs(584 * 365 * 24 * 60 * 60);

/// A simulation: a runtime on this thread. Its clock stands still, and jumps to the next timer or packet when
/// no task is ready; its choices come from a seed.
///
/// While a `Sim` exists, its thread is in the simulation: [`spawn`](crate::spawn()) and other free functions
/// act on it, and a [`Timer`] counts its time. If there are several on a thread, that holds for
/// the last one that was made. Tasks that are left when a `Sim` is dropped are cancelled, as in any runtime.
/// If a panic drops it, the seed is printed. If the simulation has failed and no call has said so, the drop
/// panics with the reason. The clock ends 584 years after the start; a timer for a later moment never fires.
///
/// ```
/// use std::time::Duration;
/// use paceline::sim::Sim;
/// use paceline::{Timer, clock, spawn};
///
/// let mut sim = Sim::new(7);
/// let answer = sim.block_on(async {
///     let begin = clock::now();
///     let task = spawn(Timer::after(Duration::from_secs(3600)));
///     task.await - begin
/// });
/// assert_eq!(answer, Duration::from_secs(3600));
/// assert_eq!(sim.report().elapsed, answer);
/// ```
pub struct Sim {
    simulation: Arc<Simulated>,
    /// `None` in the drop only.
    runtime: Option<Runtime>,
    // Both are not `Send`, so a simulation stays on its thread.
    _entered: EnterGuard,
    _presence: Presence,
}

impl Sim {
    /// Begins a simulation with this seed, in which nothing runs yet. The order is [`Order::Random`].
    ///
    /// # Panics
    ///
    /// If the process has no descriptor left for the runtime.
    pub fn new(seed: u64) -> Self {
        Self::begin(seed, &Conditions::default())
    }

    pub(super) fn begin(seed: u64, conditions: &Conditions) -> Self {
        let simulation = Arc::new(Simulated::new(seed, conditions));
        let presence = Presence::begin(&simulation);
        let mut builder = Runtime::builder().current_thread().tuning(Tuning::default().spin(Duration::ZERO));
        builder.prepare = Some(leave_to_the_simulation);
        builder.tuning.way = WayChoice::Other(SimulatedWay::make);
        let runtime = builder.build().unwrap_or_else(|error| panic!("a simulation cannot begin: {error}"));
        let pool = runtime.handle().pool().expect("the runtime exists");
        simulation.settle(runtime.handle(), pool.reactor.clone());
        Self { simulation, _entered: runtime.handle().enter(), runtime: Some(runtime), _presence: presence }
    }

    /// Returns the seed.
    ///
    /// ```
    /// assert_eq!(paceline::sim::Sim::new(7).seed(), 7);
    /// ```
    pub fn seed(&self) -> u64 {
        self.simulation.seed
    }

    /// Returns a generator of random numbers that the seed decides. Each call returns another one; give each
    /// task one of its own, so that the order of the tasks does not decide which numbers they get.
    ///
    /// ```
    /// use paceline::sim::Sim;
    /// let numbers = |seed| {
    ///     let mut sim = Sim::new(seed);
    ///     [(); 2].map(|()| sim.rng().next_u64())
    /// };
    /// assert_eq!(numbers(7), numbers(7));
    /// assert_ne!(numbers(7)[0], numbers(7)[1]);
    /// ```
    pub fn rng(&mut self) -> Rng {
        self.simulation.rng()
    }

    /// Sets which of the ready tasks is polled next, from now on.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use paceline::sim::{Order, Sim};
    ///
    /// let order_of = |order| {
    ///     let (mut sim, polled) = (Sim::new(7), Arc::new(Mutex::new(Vec::new())));
    ///     sim.order(order);
    ///     for number in 0..20 {
    ///         let polled = polled.clone();
    ///         sim.spawn(async move { polled.lock().unwrap().push(number) }).detach();
    ///     }
    ///     sim.run_for(std::time::Duration::from_secs(1));
    ///     drop(sim);
    ///     Arc::into_inner(polled).unwrap().into_inner().unwrap()
    /// };
    /// assert_eq!(order_of(Order::Fifo), (0..20).collect::<Vec<_>>());
    /// assert_ne!(order_of(Order::Random), order_of(Order::Fifo));
    /// ```
    pub fn order(&mut self, order: Order) -> &mut Self {
        self.simulation.set_order(order);
        self
    }

    /// Spawns a task, which is polled in the next [`run_for`](Self::run_for) or
    /// [`block_on`](Self::block_on). Dropping the [`Task`] cancels it; [`Task::detach`] lets it run on its
    /// own.
    ///
    /// ```
    /// let mut sim = paceline::sim::Sim::new(7);
    /// let task = sim.spawn(async { 6 * 7 });
    /// assert_eq!(sim.block_on(task), 42);
    /// ```
    #[track_caller]
    pub fn spawn<T: Send + 'static>(&mut self, future: impl Future<Output = T> + Send + 'static) -> Task<T> {
        let _presence = Presence::begin(&self.simulation);
        let meta = SpawnMeta::new(TaskKind::Task, Location::caller());
        self.simulation.handle().spawn_with(future, meta)
    }

    /// Adds a host of this name to the network, and spawns a program on it. After a [crash](Network::crash),
    /// [`Network::restart`] calls `main` again.
    ///
    /// The tasks that the program spawns, directly or indirectly, run on its host. Other hosts reach it by
    /// its name. If the program returns, the node stays up. If it panics, the simulation goes on:
    /// [`Report::panics`] counts that.
    ///
    /// ```
    /// use paceline::net::{TcpListener, TcpStream};
    /// use paceline::prelude::*;
    /// use paceline::sim::Sim;
    ///
    /// let mut sim = Sim::new(7);
    /// sim.node("server", || async {
    ///     let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
    ///     while let Ok((mut stream, _peer)) = listener.accept().await {
    ///         stream.write_all(b"hello").await.unwrap();
    ///     }
    /// });
    /// let answer = sim.block_on(async {
    ///     let mut answer = String::new();
    ///     TcpStream::connect("server:80").await?.read_to_string(&mut answer).await?;
    ///     std::io::Result::Ok(answer)
    /// });
    /// assert_eq!(answer.unwrap(), "hello");
    /// ```
    ///
    /// # Panics
    ///
    /// If there is a node of that name.
    #[track_caller]
    pub fn node<F>(&mut self, name: &str, mut main: impl FnMut() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let _presence = Presence::begin(&self.simulation);
        self.simulation.add_node(name, Location::caller(), Box::new(move || Box::pin(main())));
    }

    /// Adds a host of this name to the network, and spawns `future` as a task on it. Dropping the [`Task`]
    /// cancels it: await it, pass it to [`block_on`](Self::block_on), or [detach](Task::detach) it. After a
    /// crash of the host nothing runs on it again. Code that awaits the task of a host that crashes panics.
    ///
    /// ```
    /// use paceline::net::UdpSocket;
    /// use paceline::sim::Sim;
    ///
    /// let mut sim = Sim::new(7);
    /// let sends = sim.client("sender", async {
    ///     let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
    ///     socket.send_to(b"hello", "test:7").await.unwrap()
    /// });
    /// assert_eq!(sim.block_on(sends), 5);
    /// ```
    ///
    /// # Panics
    ///
    /// If there is a node of that name.
    #[track_caller]
    pub fn client<T: Send + 'static>(
        &mut self,
        name: &str,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        let _presence = Presence::begin(&self.simulation);
        let host = self.simulation.add_host(name);
        let meta = SpawnMeta::new(TaskKind::Task, Location::caller());
        self.simulation.on_host(host, || self.simulation.handle().spawn_with(future, meta))
    }

    /// Returns a handle to the network: for latency, loss, partitions and crashes. It keeps nothing alive.
    pub fn network(&self) -> Network {
        Network(Arc::downgrade(&self.simulation))
    }

    /// Returns a handle to the files of the nodes: for what a crash leaves of them, for full disks, and for
    /// inspection. It keeps nothing alive.
    pub fn files(&self) -> Files {
        Files(Arc::downgrade(&self.simulation))
    }

    /// Calls `event` in a task of its own, so long after the start of the simulation; or, if that is over, as
    /// soon as the simulation runs.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::sim::Sim;
    ///
    /// let (mut sim, (tell, told)) = (Sim::new(7), async_channel::bounded(1));
    /// sim.at(Duration::from_secs(5), move || tell.try_send("stop").unwrap());
    /// assert_eq!(sim.block_on(async move { told.recv().await }), Ok("stop"));
    /// assert_eq!(sim.report().elapsed, Duration::from_secs(5));
    /// ```
    #[track_caller]
    pub fn at(&mut self, since_start: Duration, event: impl FnOnce() + Send + 'static) {
        let time = self.simulation.time(since_start);
        self.spawn(async move {
            time.map_or_else(Timer::never, Timer::at).await;
            event();
        })
        .detach();
    }

    /// Runs the tasks until the clock has moved on by `duration`, and returns what the simulation has done so
    /// far. Timers that are due at the end itself belong to the next run, so with zero nothing
    /// runs. If nothing is left to do, the clock moves on all the same, up to its end.
    ///
    /// ```
    /// use std::time::Duration;
    /// use paceline::Timer;
    /// use paceline::sim::Sim;
    ///
    /// let mut sim = Sim::new(7);
    /// let task = sim.spawn(Timer::after(Duration::from_secs(90)));
    /// sim.run_for(Duration::from_secs(60));
    /// assert!(!task.is_finished());
    /// let report = sim.run_for(Duration::from_secs(60));
    /// assert!(task.is_finished());
    /// assert_eq!(report.elapsed, Duration::from_secs(120));
    /// ```
    ///
    /// # Panics
    ///
    /// If the simulation fails: see the [module](super#what-is-an-error). A panic of a task does not panic
    /// here; [`Report::panics`] counts it.
    #[track_caller]
    pub fn run_for(&mut self, duration: Duration) -> Report {
        let end = self.simulation.elapsed().saturating_add(duration).min(END_OF_TIME);
        let end = self.simulation.time(end).map_or_else(Timer::never, Timer::at);
        self.drive(end);
        self.report()
    }

    /// Runs `future` as a task, and the others beside it, until it is done. Returns its output.
    ///
    /// ```
    /// let mut sim = paceline::sim::Sim::new(7);
    /// let told = sim.block_on(async {
    ///     let (tell, told) = async_channel::bounded(1);
    ///     paceline::spawn(async move { tell.send(1).await }).detach();
    ///     told.recv().await
    /// });
    /// assert_eq!(told, Ok(1));
    /// ```
    ///
    /// # Panics
    ///
    /// If the future panics; and if the simulation fails: see the [module](super#what-is-an-error). If the
    /// future waits, no task is ready and no timer is armed, that is a deadlock, and the message lists the
    /// tasks.
    #[track_caller]
    pub fn block_on<T: Send + 'static>(&mut self, future: impl Future<Output = T> + Send + 'static) -> T {
        let task = self.spawn(future);
        self.drive(task)
    }

    /// Returns what the simulation has done so far.
    pub fn report(&self) -> Report {
        self.simulation.report()
    }

    /// Cancels the tasks that are left.
    fn cancel_tasks(&self) {
        if let Some(pool) = self.simulation.handle().pool() {
            if let Some(crew) = pool.crew() {
                crew.cancel_all(&pool);
            }
        }
    }

    /// Runs the tasks until `end` is done, and returns its output. Panics if the simulation fails.
    #[track_caller]
    fn drive<T>(&mut self, end: impl Future<Output = T>) -> T {
        let simulation = &self.simulation;
        let _presence = Presence::begin(simulation);
        let mut end = pin!(end);
        let driver = poll_fn(|cx| match simulation.failure(cx.waker()) {
            Some(failure) => Poll::Ready(Err(failure)),
            None => end.as_mut().poll(cx).map(Ok),
        });
        let runtime = self.runtime.as_ref().expect("it is not dropped");
        // A guard, so that it happens after a panic, too.
        let _shows = ShowsTime(simulation);
        match runtime.block_on(driver) {
            Ok(output) => output,
            Err(failure) => panic!("{failure}"),
        }
    }
}

/// Its drop shows the program the virtual time, and the wall clock of the test.
struct ShowsTime<'a>(&'a Simulated);

impl Drop for ShowsTime<'_> {
    fn drop(&mut self) {
        self.0.show_time();
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim").field("report", &self.report()).finish_non_exhaustive()
    }
}

impl Drop for Sim {
    /// Cancels the tasks that are left, on this thread. Panics if the simulation has failed and no call has
    /// reported that. During a panic it prints the seed instead, which the panic's message may not have.
    fn drop(&mut self) {
        if thread::panicking() {
            // Fails if standard error is closed.
            let (seed, story) = (self.simulation.seed, self.simulation.story(""));
            waking::call(|| eprint!("a panic ends the simulation with seed {seed}\n{}", story.page));
        }
        let _presence = Presence::begin(&self.simulation);
        let failure = self.simulation.unreported().filter(|_| !thread::panicking());
        self.simulation.end();
        self.cancel_tasks();
        drop(self.runtime.take());
        if let Some(failure) = failure {
            panic!("{failure}");
        }
    }
}

/// Prepares the pool of a simulation. Its clock stands, and there is no deputy: another thread that looks at
/// the pool would act by the time that it measures.
fn leave_to_the_simulation(pool: &Pool) -> io::Result<()> {
    pool.deputy.duty.end();
    pool.reactor.stop_clock();
    Ok(())
}

/// Runs a simulation twice with the same seed, and fails unless both runs do the same. Returns the report,
/// which is that of either run.
///
/// ```
/// use std::time::Duration;
/// use paceline::{Timer, sim};
///
/// sim::check(7, |sim| {
///     let mut rng = sim.rng();
///     sim.spawn(async move {
///         for _ in 0..100 {
///             Timer::after(Duration::from_millis(rng.below(50))).await;
///         }
///     })
///     .detach();
///     sim.run_for(Duration::from_secs(10));
/// });
/// ```
///
/// Each run is on a new thread, with new thread-locals; `RUST_MIN_STACK` sets the size of its stack. The
/// events of the first run are kept in memory, in 24 bytes each.
///
/// # Panics
///
/// If `run` panics; if a thread cannot be started; and if the runs differ, also in when they end, and in what
/// the destructors of the tasks that are left then do. Then the message has the seed, and the first event
/// that differs: its time, what happened in either run, and the spawn lines of the tasks.
#[track_caller]
pub fn check(seed: u64, run: impl FnMut(&mut Sim) + Send) -> Report {
    check_run(seed, run).unwrap_or_else(|failed| {
        // Fails if standard error is closed.
        waking::call(|| eprint!("the simulation with seed {seed} fails\n{}", failed.story.page));
        let Failed { panic, is_printed, .. } = *failed;
        match panic.downcast::<String>() {
            Ok(text) if !is_printed => panic!("{text}"),
            Ok(text) => resume_unwind(text),
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Does what [`check`] does, and returns the run that has failed.
pub(super) fn check_run(seed: u64, mut run: impl FnMut(&mut Sim) + Send) -> Result<Report, Box<Failed>> {
    let conditions = |check| Conditions { check, ..Conditions::default() };
    let (report, recording) = run_once(seed, &conditions(CheckRun::First), &mut run)?;
    let recording = recording.expect("the first run is recorded");
    run_once(seed, &conditions(CheckRun::Second(Arc::new(recording))), run)?;
    Ok(report)
}

/// A run that has failed.
pub(super) struct Failed {
    pub(super) panic: Box<dyn Any + Send>,
    /// Whether there was a panic, whose message was printed.
    is_printed: bool,
    pub(super) story: Story,
    /// The names of its faults.
    pub(super) faults: Vec<String>,
    /// The polls at which its order did not choose the task that was ready for longest.
    pub(super) picks: Vec<u64>,
}

/// Runs a simulation on a new thread. Returns its report, and the recording of the first run of a check.
#[track_caller]
pub(super) fn run_once(
    seed: u64,
    conditions: &Conditions,
    run: impl FnOnce(&mut Sim) + Send,
) -> Result<(Report, Option<FirstRun>), Box<Failed>> {
    on_new_thread(|| {
        let mut sim = Sim::begin(seed, conditions);
        let outcome = catch_unwind(AssertUnwindSafe(|| run(&mut sim)));
        let report = sim.report();
        let story = outcome.as_ref().err().map(|panic| sim.simulation.story(text_of(&**panic)));
        if let Some(path) = &conditions.trace {
            trace_file::write(&sim.simulation, path);
        }
        sim.cancel_tasks();
        let (recording, failure) = sim.simulation.end_reported();
        let (panic, is_printed): (Box<dyn Any + Send>, _) = match (outcome, failure) {
            (Ok(()), None) => {
                drop(sim);
                return Ok((report, recording));
            }
            (Err(panic), Some(failure)) if panic.downcast_ref() == Some(&failure) => (panic, true),
            (_, Some(failure)) => (Box::new(failure), false),
            (Err(panic), None) => (panic, true),
        };
        let story = story.unwrap_or_else(|| sim.simulation.story(text_of(&*panic)));
        let faults = sim.simulation.faults().happened.clone();
        let picks = sim.simulation.state().choices.picked.clone();
        Err(Box::new(Failed { panic, is_printed, story, faults, picks }))
    })
}

/// Returns the message of a panic.
pub(super) fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

/// Calls `run` on a new thread of the same name, where all thread-locals, also the keys of the standard
/// library's hash maps, have their first values. If `run` panics, so does this call.
#[track_caller]
fn on_new_thread<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    let name = thread::current().name().unwrap_or("simulation").into();
    thread::scope(|scope| {
        let started = thread::Builder::new().name(name).spawn_scoped(scope, run);
        match started.expect("a thread for the simulation can be started").join() {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    })
}
