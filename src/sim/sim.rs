//! [`Sim`]: a simulation, as its test sees it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use super::control::Network;
use super::files::Files;
use super::order::Order;
use super::presence::Presence;
use super::report::Report;
use super::rng::Rng;
use super::simulation::{Conditions, END_OF_TIME, Simulated};
use super::way::SimulatedWay;
use crate::executor::Task;
use crate::io::Timer;
use crate::observed::{SpawnMeta, TaskKind};
use crate::pool::{EnterGuard, Pool, Tuning};
use crate::reactor::WayChoice;
use crate::runtime::Runtime;
use crate::waking;

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
    pub(super) simulation: Arc<Simulated>,
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
    /// future waits, no task is ready and no timer can fire, that is a deadlock, and the message lists the
    /// tasks. It counts the timers that are awaited and never fire.
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
    pub(super) fn cancel_tasks(&self) {
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
    let clock = &pool.reactor.clock;
    if let Some(end) = clock.now().checked_add(END_OF_TIME) {
        clock.end_at(end);
    }
    Ok(())
}
