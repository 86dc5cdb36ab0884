//! [`SimTasks`]: the unfinished tasks of a simulation, and the spawn lines of all tasks so far.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::Location;
use std::task::Waker;

use super::net::HostId;
use crate::simulated::ReadyTask;

/// A task as reports name it: tasks count from 1 in the order in which they were spawned. 0 stands for the
/// simulation itself: for a timer, and for the code around the simulation.
pub(super) type TaskId = u32;

/// What a simulation knows of an unfinished task.
#[derive(Debug)]
pub(super) struct TaskRecord {
    pub(super) id: TaskId,
    /// The address that its waker points to; 0 until it is queued for the first time. Only compared.
    pub(super) address: usize,
    /// `None` until it is queued for the first time.
    pub(super) waker: Option<Waker>,
    /// Its host has crashed. It is not polled again.
    pub(super) is_cancelled: bool,
    /// The host of the network on which it runs.
    pub(super) host: HostId,
    /// For [`Order::Pct`](super::Order::Pct): the ready task with the highest priority is polled.
    pub(super) priority: u64,
}

/// The tasks of a simulation, by the numbers that the process gives them.
#[derive(Debug, Default)]
pub(super) struct SimTasks {
    known: HashMap<u64, TaskRecord, BuildHasherDefault<NumberHasher>>,
    /// The spawn line of each task, also of those that have ended.
    lines: Vec<&'static Location<'static>>,
    /// How many of the known tasks are cancelled.
    cancelled: usize,
}

impl SimTasks {
    pub(super) fn add(
        &mut self,
        number: u64,
        at: &'static Location<'static>,
        host: HostId,
        priority: u64,
    ) -> TaskId {
        self.lines.push(at);
        let id = TaskId::try_from(self.lines.len()).expect("fewer than 2^32 tasks");
        self.known
            .insert(number, TaskRecord { id, address: 0, waker: None, is_cancelled: false, host, priority });
        id
    }

    pub(super) fn get(&mut self, number: u64) -> Option<&mut TaskRecord> {
        self.known.get_mut(&number)
    }

    /// Returns the task's id; 0 for a task that the simulation does not know.
    pub(super) fn id(&self, number: u64) -> TaskId {
        self.known.get(&number).map_or(0, |task| task.id)
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<TaskRecord> {
        let task = self.known.remove(&number)?;
        self.cancelled -= usize::from(task.is_cancelled);
        Some(task)
    }

    /// Marks the tasks of a host as cancelled. Returns their wakers in the order of their ids.
    pub(super) fn cancel(&mut self, host: HostId) -> Vec<Waker> {
        let is_left = |task: &&mut TaskRecord| task.host == host && !task.is_cancelled;
        let mut all: Vec<_> = self.known.values_mut().filter(is_left).collect();
        all.sort_unstable_by_key(|task| task.id);
        all.iter_mut().for_each(|task| task.is_cancelled = true);
        self.cancelled += all.len();
        all.into_iter().filter_map(|task| task.waker.clone()).collect()
    }

    pub(super) fn cancel_one(&mut self, number: u64) {
        if let Some(task) = self.known.get_mut(&number).filter(|task| !task.is_cancelled) {
            task.is_cancelled = true;
            self.cancelled += 1;
        }
    }

    /// Returns the position of the first cancelled task.
    pub(super) fn find_cancelled(&self, ready: &VecDeque<ReadyTask>) -> Option<usize> {
        if self.cancelled == 0 {
            return None;
        }
        ready.iter().position(|(number, _)| self.known.get(number).is_some_and(|task| task.is_cancelled))
    }

    /// Returns the number and the id of the task with a waker that points to that address.
    pub(super) fn find(&self, address: usize) -> Option<(u64, TaskId)> {
        let mut all = self.known.iter();
        all.find(|(_, task)| task.address == address).map(|(number, task)| (*number, task.id))
    }

    /// Returns the ids of all unfinished tasks, in order.
    pub(super) fn unfinished(&self) -> Vec<TaskId> {
        let mut all: Vec<_> = self.known.values().map(|task| task.id).collect();
        all.sort_unstable();
        all
    }

    /// Returns the line that spawned a task; `None` for the simulation itself.
    pub(super) fn line(&self, task: TaskId) -> Option<&'static Location<'static>> {
        (task as usize).checked_sub(1).and_then(|at| self.lines.get(at)).copied()
    }

    pub(super) fn lines(&self) -> &[&'static Location<'static>] {
        &self.lines
    }
}

/// Hashes numbers that are counted up. The order of the map decides nothing.
#[derive(Debug, Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are numbers")
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
