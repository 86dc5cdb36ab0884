//! How a runtime ends: what may finish does, what may not is cancelled, and all callers get one report.
//!
//! [`drain`] is the graceful way. A thread of its own conducts it ([`conductor`]), however many callers ask
//! and from whatever role. Until the report is published that thread runs no user code, unless no other
//! thread can be started, so no blocking code can delay it. The conductor parks until the last task ends,
//! which unparks it (`executor/vigil.rs`), or the last closure that [blocks](crate::blocking), or until the
//! deadline: so it needs neither a worker nor the reactor.
//!
//! 1. *Closed*: new tasks are cancelled at once.
//! 2. *The wait*: until no task is left but those that wait for this very report, and no closure that
//!    blocks; or until the deadline.
//! 3. *The cancel*: the workers stop after the polls they are in, and drop all tasks that no thread polls.
//!    Closures that block and have not begun never run; closures that run are told. This step is over when
//!    only stuck threads are left ([`Patience`](crate::probe::Patience)). If tasks are left, a thread is
//!    hired that drops them beside the workers, and another one whenever all of these are stuck in a poll or
//!    a destructor.
//! 4. *The report* is published, and all callers that wait for it are woken.
//!
//! If no thread can be started for the conductor, the callers try again, until one can. When nothing is
//! left to wait for, or the deadline has passed, the first caller conducts in its own poll, which then
//! takes as long as the third step.
//!
//! [`shut_down`] is the immediate way, for a shutdown and a drop: the caller itself conducts the third
//! step, without the wait for closures that run, and waits for the workers for as long as it is told.
//!
//! `pool/parting.rs` has the phases of the end, the callers that wait for the report, and the report.
//! `pool/clearing.rs` has what the crew's threads do for it.

mod conductor;
mod shutdown;
mod stuck;

pub(crate) use shutdown::shut_down;

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;

use crate::insight::Drained;
use crate::io::Timer;
use crate::pool::{Crew, Pool};
use crate::sync::Instant;
use conductor::{LOOK, ensure_conductor};

/// Ends the pool's crew, and the closures that block for it, and returns the report. Without a `deadline`,
/// the end waits for all tasks. Without a crew the report is empty and comes at
/// once. The first poll begins the end, which goes on if this future is dropped. Only if no thread can be
/// started for the conductor does the end need a caller that polls.
pub(crate) async fn drain(pool: Arc<Pool>, deadline: Option<Instant>) -> Drained {
    let Some(crew) = pool.crew() else { return Drained::default() };
    let mut waiting = Waiting::begin(&pool, crew, deadline);
    loop {
        if !ensure_conductor(crew, &pool) {
            pause(&pool).await;
        } else if let Some(report) = waiting.report().await {
            return report;
        }
    }
}

/// Waits for [`LOOK`], on the pool's own reactor, which has threads. For another reactor, no thread could be
/// started, perhaps.
async fn pause(pool: &Arc<Pool>) {
    let mut timer = Timer::after(LOOK);
    poll_fn(|cx| pool.visit(|| Pin::new(&mut timer).poll(cx))).await;
}

/// A caller that waits for the report, until this is dropped.
struct Waiting<'a> {
    crew: &'a Crew,
    pool: &'a Arc<Pool>,
    key: u64,
    /// The task of the runtime in which it was polled last.
    task: Option<usize>,
}

impl<'a> Waiting<'a> {
    /// Begins the end, unless another caller did, and counts one more caller that waits for the report.
    ///
    /// # Panics
    ///
    /// As [`task_here`] does. Then this has no effect.
    fn begin(pool: &'a Arc<Pool>, crew: &'a Crew, deadline: Option<Instant>) -> Self {
        let task = task_here(pool, crew);
        // The recording of drops begins first, so that a destructor that blocks already has a name.
        crew.state().watch_drops();
        let key = crew.parting.enter(crew.state(), task, deadline);
        Self { pool, crew, key, task }
    }

    /// Waits for the report; `None` if there is no conductor any more.
    ///
    /// # Panics
    ///
    /// As [`task_here`] does.
    async fn report(&mut self) -> Option<Drained> {
        poll_fn(|cx| {
            let now = task_here(self.pool, self.crew);
            let before = mem::replace(&mut self.task, now);
            if before != now {
                self.crew.parting.move_to(self.crew.state(), before, now);
            }
            self.crew.parting.poll_report(self.key, cx.waker().clone())
        })
        .await
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.crew.parting.leave(self.crew.state(), self.key, self.task);
    }
}

/// Returns the address of the crew's task that the caller is in, if any.
///
/// # Panics
///
/// If the report is not out, and the caller is something that the end waits for: a `block_on` that is nested
/// in one of the crew's tasks, or a closure that [blocks](crate::blocking) for this crew's runtime.
#[track_caller]
fn task_here(pool: &Arc<Pool>, crew: &Crew) -> Option<usize> {
    let task = crew.state().task_here();
    let waits_for = match task {
        None if !crew.is_drained() && crew.state().is_in_task() => {
            "this runtime's tasks, so none of them can wait for it in a `block_on`"
        }
        _ if !crew.is_drained() && pool.blocking().is_at_work_here() => {
            "this runtime's closures that block, so none of them can wait for it"
        }
        task => return task.map(|poll| poll.task),
    };
    panic!(
        "`drain` waits for {waits_for}: await the drain in a `block_on` of a thread that is not the runtime's"
    )
}
