//! A discrete-event simulation of a server: how many requests a second would the pool handle on so many
//! cores?
//!
//! The code of the pool runs unchanged: leadership, promotion, lines of sleepers, readiness, runners, the
//! deputy. The door of [`sync`] runs its threads on [virtual cores](sync::cores), in the order of their
//! clocks, and charges each operation what it costs on a real machine. A request is read from a virtual pipe,
//! is handled, and is answered to a client, which sends the next one.
//!
//! Left out, so a real machine may be slower:
//!
//! - Caches, except that a line which another core has used last costs a transfer. Each atomic of the door
//!   has a line of its own (false sharing does not exist), and each transfer costs the same (no sockets, no
//!   NUMA, no SMT). Data without an atomic, the atomics of other crates (`async-task`, `concurrent-queue`),
//!   counts of `Arc`s, and counters of metrics move between cores for free.
//! - The kernel: TCP, the locks of sockets and of epoll, interrupts and memory have one fixed cost for each
//!   call, however many cores make it. The scheduler is a rough sketch of that of Linux.
//! - Locks: a thread that waits for one takes it as soon as it is free, without falling asleep.
//! - Noise: other programs, timer ticks, frequencies, hypervisors.
//!
//! `benches/simulate` measures the costs and the real server, and prints what the simulation makes of them.

mod report;
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use std::time::Duration;

use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

use super::stage::sleep;
use crate::current;
use crate::reactor::{Direction, Pipe, Source};
use crate::sync::cores::{Costs, EarliestFirst, Totals};
use crate::sync::thread::{JoinHandle, ThreadId};
use crate::sync::{self, Condvar, Instant, Mutex, clock, cores, thread};

/// Where the clients are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clients {
    /// Outside of the machine: the next request comes so many nanoseconds after an answer.
    Outside { delay: u64 },
    /// Threads on the machine, which need so many nanoseconds of processor time for each request.
    Threads { number: usize, cost: u64 },
}

/// One point of a simulation.
#[derive(Clone, Debug)]
struct Plan {
    cores: usize,
    workers: usize,
    connections: usize,
    clients: Clients,
    costs: Costs,
    /// Nanoseconds for the read and the write of a request, for the code of the server and of the pool that
    /// no other cost stands for, and for the handler.
    read: u64,
    write: u64,
    code: u64,
    handler: u64,
    /// Milliseconds before the window, and in it.
    warm: u32,
    window: u32,
}

/// The result of a simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Outcome {
    requests_per_second: f64,
    /// Per request: the processor time of the server in microseconds, wakes of sleeping threads, lines that a
    /// core got from another one, and microseconds of waiting for these.
    cpu: f64,
    wakes: f64,
    transfers: f64,
    transfer_micros: f64,
    events_per_wait: f64,
}

impl Plan {
    /// Simulates the server.
    fn run(&self) -> Outcome {
        let mut config = Config::new();
        config.failure_persistence = FailurePersistence::None;
        config.silence_warnings = true;
        config.stack_size = 0x4_0000;
        config.max_steps = MaxSteps::None;
        let outcome = Arc::new(StdMutex::new(Outcome::default()));
        let (plan, result) = (self.clone(), outcome.clone());
        let scheduler = EarliestFirst::new(self.cores, self.costs, clock::START);
        Runner::new(scheduler, config).run(move || {
            let scene = Arc::new(Scene::new(&plan));
            let (plan, result, machine) = (plan.clone(), result.clone(), scene.clone());
            super::spawn("scenario", move || {
                *result.lock().expect("no thread panics under it") = machine.measure(&plan);
            });
            scene.live();
            assert_eq!(sync::reported_fault(), None);
        });
        *outcome.lock().expect("no thread panics under it")
    }
}

/// The connections, and their clients.
#[derive(Debug)]
struct Scene {
    pipes: Vec<Pipe>,
    delay: u64,
    /// The next requests of clients outside of the machine: times and connections.
    due: StdMutex<BinaryHeap<Reverse<(u64, usize)>>>,
    /// The answers for each client thread; connections are distributed among them.
    inboxes: Vec<Inbox>,
    answers: AtomicU64,
}

#[derive(Debug, Default)]
struct Inbox {
    /// The connections that have answers; `None` once the client is to end.
    answered: Mutex<Option<Vec<usize>>>,
    bell: Condvar,
}

/// A moment of a run.
#[derive(Debug)]
struct Reading {
    at: Instant,
    answers: u64,
    totals: Totals,
    processor_time: Duration,
    waits: u64,
    events: u64,
}

impl Scene {
    fn new(plan: &Plan) -> Self {
        let (delay, threads) = match plan.clients {
            Clients::Outside { delay } => (delay, 0),
            Clients::Threads { number, .. } => (0, number),
        };
        let inbox = || Inbox { answered: Mutex::new(Some(Vec::new())), bell: Condvar::new() };
        Self {
            pipes: (0..plan.connections).map(|_| Pipe::new()).collect(),
            delay,
            due: StdMutex::default(),
            inboxes: (0..threads).map(|_| inbox()).collect(),
            answers: AtomicU64::new(0),
        }
    }

    /// The world: sends the requests of clients outside of the machine, and rings the alarms, each at its
    /// time.
    fn live(&self) {
        /// An alarm that is due may have been set before its thread waits: it is rung again after so long.
        const AGAIN: u64 = 10_000;
        let mut in_vain = 0;
        while thread::alive() > 0 {
            let now = cores::wait_for_event();
            let rings = clock::ring();
            if rings {
                cores::wake_world_at(now + AGAIN);
            }
            in_vain = if self.send_due(now) || rings { 0 } else { in_vain + 1 };
            assert!(
                in_vain < 100_000,
                "{} threads wait for each other: {:?}",
                thread::alive(),
                sync::reported_fault()
            );
        }
    }

    /// Sends the requests that are due. Returns whether there are any.
    fn send_due(&self, now: u64) -> bool {
        let mut sent = false;
        let next = || {
            let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
            due.peek().is_some_and(|Reverse((at, _))| *at <= now).then(|| due.pop()).flatten()
        };
        while let Some(Reverse((_, connection))) = next() {
            self.pipes[connection].write();
            sent = true;
        }
        sent
    }

    /// Delivers the answer of a connection, or the reason for its first request, to its client.
    fn answer(&self, connection: usize) {
        sync::step();
        self.answers.fetch_add(1, Relaxed);
        let Some(inbox) = connection.checked_rem(self.inboxes.len()).map(|index| &self.inboxes[index]) else {
            let at = cores::now().expect("this is a simulation") + self.delay;
            self.due.lock().unwrap_or_else(PoisonError::into_inner).push(Reverse((at, connection)));
            return cores::wake_world_at(at);
        };
        if let Some(answered) = &mut *sync::lock(&inbox.answered) {
            answered.push(connection);
        }
        inbox.bell.notify_one();
    }

    /// A client thread.
    fn request(&self, inbox: &Inbox, cost: u64) {
        let next = || {
            let mut answered = sync::lock(&inbox.answered);
            while answered.as_ref().is_some_and(Vec::is_empty) {
                answered = inbox.bell.wait(answered).expect("no thread panics under it");
            }
            answered.as_mut().map(std::mem::take)
        };
        while let Some(answered) = next() {
            cores::charge(|costs| costs.wait);
            for connection in answered {
                cores::charge(|_| cost);
                self.pipes[connection].write();
            }
        }
    }

    /// Serves one connection for ever.
    async fn serve(self: Arc<Self>, connection: usize, read: u64, handler: u64) {
        let reactor = current::current_reactor().expect("inside of a runtime");
        let pipe = &self.pipes[connection];
        // SAFETY: a number stays what it is.
        let source = unsafe { Source::new(reactor, pipe.raw()) }.expect("there is such a pipe");
        // There was room for more than the one byte, so the pipe is empty after it.
        let take = || {
            cores::charge(|_| read);
            pipe.read().map(|()| 1)
        };
        loop {
            let request = poll_fn(|cx| source.poll_transfer(Direction::Read, cx, 2, take));
            request.await.expect("reading a pipe does not fail");
            cores::charge(|_| handler);
            self.answer(connection);
        }
    }

    /// Runs server and clients, and returns what happens within the window.
    fn measure(self: &Arc<Self>, plan: &Plan) -> Outcome {
        let runtime = super::runtime(plan.workers, plan.workers + 4);
        for connection in 0..plan.connections {
            let serves = self.clone().serve(connection, plan.read, plan.code + plan.handler + plan.write);
            runtime.spawn(serves).detach();
        }
        let clients = self.start_clients(plan);
        (0..plan.connections).for_each(|connection| self.answer(connection));
        sleep(plan.warm);
        let ids: Vec<ThreadId> = clients.iter().map(|client| client.thread().id()).collect();
        let before = self.read(&runtime, &ids);
        sleep(plan.window);
        let after = self.read(&runtime, &ids);
        drop(runtime);
        for inbox in &self.inboxes {
            sync::lock(&inbox.answered).take();
            inbox.bell.notify_one();
        }
        clients.into_iter().for_each(|client| client.join().expect("a client does not panic"));
        after.since(&before)
    }

    fn start_clients(self: &Arc<Self>, plan: &Plan) -> Vec<JoinHandle<()>> {
        let Clients::Threads { number, cost } = plan.clients else { return Vec::new() };
        let start = |index: usize| {
            let scene = self.clone();
            super::spawn("client", move || scene.request(&scene.inboxes[index], cost))
        };
        (0..number).map(start).collect()
    }

    fn read(&self, runtime: &crate::Runtime, clients: &[ThreadId]) -> Reading {
        let totals = cores::totals();
        let used = |client: &ThreadId| thread::usage(*client).map_or(Duration::ZERO, |(used, _)| used);
        let metrics = runtime.metrics();
        Reading {
            at: Instant::now(),
            answers: self.answers.load(Relaxed),
            totals,
            processor_time: Duration::from_nanos(totals.used) - clients.iter().map(used).sum::<Duration>(),
            waits: metrics.waits,
            events: metrics.events,
        }
    }
}

impl Reading {
    fn since(&self, before: &Self) -> Outcome {
        let seconds = (self.at - before.at).as_secs_f64();
        let answers = (self.answers - before.answers) as f64;
        let per_answer = |now: u64, before: u64| (now - before) as f64 / answers;
        Outcome {
            requests_per_second: answers / seconds,
            cpu: (self.processor_time - before.processor_time).as_secs_f64() * 1e6 / answers,
            wakes: per_answer(self.totals.wakes, before.totals.wakes),
            transfers: per_answer(self.totals.transfers, before.totals.transfers),
            transfer_micros: per_answer(self.totals.transfer_nanos, before.totals.transfer_nanos) / 1e3,
            events_per_wait: (self.events - before.events) as f64 / (self.waits - before.waits) as f64,
        }
    }
}
