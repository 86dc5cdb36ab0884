//! What the layers of a runtime tell a simulation, and ask it.

use std::collections::VecDeque;
use std::panic::Location;
use std::task::Waker;
use std::thread;
use std::time::Duration;

use async_task::Runnable;

use super::closures;
use super::events::{SimEventKind, name, place};
use super::journal::Incident;
use super::simulation::{MOST_POLLS_AT_ONCE, SimState, Simulated};
use crate::simulated::files::FileCalls;
use crate::simulated::{BlockingPiece, ReadyTask, Simulation, SocketCalls};

impl Simulated {
    /// Adds an entry to the journal of a run whose trace is wanted.
    #[inline]
    fn trace(&self, state: &mut SimState, what: Incident) {
        if state.journal.keeps_all {
            let host = state.host();
            self.record(state, host, what);
        }
    }
}

impl Simulation for Simulated {
    fn spawns(&self, number: u64, at: &'static Location<'static>) {
        let mut state = self.state();
        let priority = state.choices.first_priority();
        let host = state.host();
        let task = state.tasks.add(number, at, host, priority);
        if state.down.contains(&host) {
            state.tasks.cancel_one(number);
        }
        (state.last, state.rested) = (number, None);
        self.trace(&mut state, Incident::Spawned(task));
        self.add(state, SimEventKind::Spawned, task, place(at));
    }

    fn wakes(&self, number: u64) {
        let mut state = self.state();
        state.last = number;
        if state.rested.take() == Some(number) {
            let priority = state.choices.next_lowest();
            if let Some(task) = state.tasks.get(number) {
                task.priority = priority;
            }
        }
        let (task, by) = (state.tasks.id(number), state.polled_id());
        if task != 0 {
            self.trace(&mut state, Incident::Woken(task));
            self.add(state, SimEventKind::Woken, task, by.into());
        }
    }

    fn begins_poll(&self, number: u64) {
        let now = self.elapsed();
        let mut state = self.state();
        state.polls += 1;
        state.leaps = 0;
        state.polled.push(number);
        state.rested = None;
        self.system.set(now, state.wall_offset());
        state.at_once = if state.at_once.0 == now { (now, state.at_once.1 + 1) } else { (now, 1) };
        let task = state.tasks.id(number);
        if state.at_once.1 > MOST_POLLS_AT_ONCE {
            let text = format!(
                "the clock of the simulation with seed {} stands {now:?} after its start: tasks wake each other for \
                 ever, among them {} which is polled now",
                self.seed,
                name(task, state.tasks.lines())
            );
            return Self::fail(state, text);
        }
        self.trace(&mut state, Incident::PollBegins(task));
        self.add(state, SimEventKind::Polled, task, 0);
    }

    fn ends_poll(&self) {
        let mut state = self.state();
        if thread::panicking() {
            let (host, task) = (state.host(), state.polled_id());
            self.record(&mut state, host, Incident::Panicked(task));
        }
        self.trace(&mut state, Incident::PollEnds);
        state.rested = state.polled.pop();
        // The task below may be on another node.
        if !state.wall_offsets.is_empty() {
            self.system.set(self.elapsed(), state.wall_offset());
        }
    }

    fn ends(&self, number: u64) -> Option<Waker> {
        let mut state = self.state();
        let task = state.tasks.remove(number)?;
        state.rested = None;
        self.trace(&mut state, Incident::Ended(task.id));
        self.add(state, SimEventKind::Ended, task.id, 0);
        task.waker
    }

    fn queues(&self, task: &Runnable) -> u64 {
        let waker = task.waker();
        let address = waker.data().addr();
        let mut state = self.state();
        let number = state.last;
        let Some(known) = state.tasks.get(number) else { return 0 };
        if known.address == 0 {
            known.address = address;
            known.waker = Some(waker);
        }
        // The schedule function of a foreign task has not said that the task was woken.
        if known.address == address { number } else { 0 }
    }

    fn find_cancelled(&self, ready: &VecDeque<ReadyTask>) -> Option<usize> {
        self.state().tasks.find_cancelled(ready)
    }

    fn cancels(&self, (number, task): ReadyTask) {
        let host = self.state().tasks.get(number).map(|task| task.host);
        match host {
            Some(host) => {
                self.state().cancels = true;
                self.on_host(host, || drop(task));
                self.state().cancels = false;
            }
            None => drop(task),
        }
    }

    fn picks(&self, ready: &VecDeque<ReadyTask>) -> usize {
        let mut state = self.state();
        let SimState { choices, tasks, is_over, .. } = &mut *state;
        let at = if *is_over { 0 } else { choices.pick(ready, tasks) };
        if at > 0 && choices.is_planned() {
            let [chosen, first] = [at, 0].map(|at| tasks.get(ready[at].0).map(|task| (task.host, task.id)));
            if let (Some((host, chosen)), Some((_, first))) = (chosen, first) {
                let [chosen, first] = [chosen, first].map(|task| name(task, tasks.lines()));
                let text = format!("{chosen} is polled before {first} which was ready before");
                self.record(&mut state, host, Incident::Chosen(text));
            }
        }
        at
    }

    fn note_outsider(&self, task: &Runnable) -> u64 {
        let found = self.state().tasks.find(task.waker().data().addr());
        let state = self.state();
        let here = thread::current();
        if here.id() == self.thread || state.is_over {
            let Some((number, id)) = found else { return 0 };
            self.add(state, SimEventKind::Woken, id, 0);
            return number;
        }
        let thread = match here.name() {
            Some(name) => format!("the thread {name:?} ({:?})", here.id()),
            None => format!("a thread without a name ({:?})", here.id()),
        };
        let what = match found {
            Some((_, id)) => format!("{thread} has woken {}", name(id, state.tasks.lines())),
            None => format!("{thread} has spawned a task"),
        };
        let text = format!(
            "{what} from outside of the simulation with seed {}, {:?} after its start: when that happens is not decided \
             by the seed",
            self.seed,
            state.events.last()
        );
        Self::fail(state, text);
        found.map_or(0, |(number, _)| number)
    }

    fn would_sleep(&self) -> String {
        self.deadlock()
    }

    fn takes(&self, piece: Box<dyn BlockingPiece>) {
        closures::spawn(self.handle(), piece, [(); 2].map(|()| self.duration()));
    }

    fn elapsed(&self) -> Duration {
        Simulated::elapsed(self)
    }

    fn sockets(&self) -> &dyn SocketCalls {
        self
    }

    fn files(&self) -> &dyn FileCalls {
        self
    }

    fn random(&self) -> u64 {
        self.system.random()
    }

    fn monotonic(&self) -> Duration {
        self.system.monotonic()
    }

    fn wall(&self) -> Duration {
        self.system.wall()
    }
}
