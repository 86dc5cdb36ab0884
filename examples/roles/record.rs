//! The role of each thread over time: repeated looks at `Runtime::threads`.

use std::thread::ThreadId;
use std::time::{Duration, Instant};

use paceline::{Role, ThreadInfo, ThreadKind};

pub struct Record {
    began: Instant,
    pub lanes: Vec<Lane>,
    /// Events of the server, with their times.
    pub marks: Vec<(Duration, &'static str)>,
}

/// One thread.
pub struct Lane {
    id: ThreadId,
    pub name: String,
    pub kind: ThreadKind,
    /// In order; in a gap the thread did not exist.
    pub spans: Vec<Span>,
    /// As found last.
    pub last: ThreadInfo,
}

#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub from: Duration,
    pub to: Duration,
    pub role: Role,
}

impl Record {
    pub fn new() -> Self {
        Self { began: Instant::now(), lanes: Vec::new(), marks: Vec::new() }
    }

    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn mark(&mut self, what: &'static str) {
        self.marks.push((self.now(), what));
    }

    /// Returns the time of the last look, if there was one.
    pub fn looked(&self) -> Option<Duration> {
        self.lanes.iter().filter_map(Lane::end).max()
    }

    /// Each thread has its current role now, and is assumed to have had it since the last look.
    pub fn look(&mut self, threads: Vec<ThreadInfo>) {
        let now = self.now();
        let looked = self.looked().unwrap_or(now);
        for thread in threads {
            let lane = self.lane(&thread);
            match lane.spans.last_mut() {
                Some(span) if span.to == looked && span.role == thread.role => span.to = now,
                _ => lane.spans.push(Span { from: looked, to: now, role: thread.role }),
            }
            // A reserve may become a normal worker; the record keeps that it was added.
            if thread.kind != ThreadKind::Worker {
                lane.kind = thread.kind;
            }
            lane.last = thread;
        }
    }

    /// Returns the lane of a thread, in numerical order: "rider-2" comes before "rider-10".
    fn lane(&mut self, thread: &ThreadInfo) -> &mut Lane {
        let known = self.lanes.iter().position(|lane| lane.id == thread.id);
        let at = known.unwrap_or_else(|| {
            let name = thread.name.clone().unwrap_or_default();
            let at = self.lanes.partition_point(|lane| (lane.name.len(), &lane.name) < (name.len(), &name));
            let (id, kind, last) = (thread.id, thread.kind, thread.clone());
            self.lanes.insert(at, Lane { id, name, kind, spans: Vec::new(), last });
            at
        });
        &mut self.lanes[at]
    }

    /// Drops older spans, and threads that had ended by then.
    pub fn forget(&mut self, age: Duration) {
        let before = self.now().saturating_sub(age);
        for lane in &mut self.lanes {
            lane.spans.retain(|span| span.to >= before);
        }
        self.lanes.retain(|lane| !lane.spans.is_empty());
    }
}

impl Lane {
    pub fn end(&self) -> Option<Duration> {
        self.spans.last().map(|span| span.to)
    }
}
