//! The way into a `block_on`. In a runtime without workers (`Builder::current_thread`), the waiting thread
//! polls the runtime's tasks, too.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use super::block_on::{PoolSource, Root, drive};
use super::on_stack::OnStack;
use super::{Pool, Station, stay};
use crate::ambient;
use crate::executor::{RunInOrder, explain};
use crate::observed::{SpawnMeta, TaskKind};

/// Drives `future` in a pool until it is done, and returns its output: [`block_on`](crate::block_on()).
/// Reports of a stall of the future name `caller`. In a runtime without workers that was not stopped, the
/// thread polls the runtime's tasks as well. A panic of the future goes on in the caller; the panic of a task
/// that is awaited after it was cancelled gets a better message.
pub(crate) fn block_on_in<T, F: Future<Output = T>>(
    source: PoolSource<'_>,
    future: OnStack<'_, F>,
    caller: &'static Location<'static>,
) -> T {
    let future = SpawnMeta::new(TaskKind::BlockOn, caller).of_inner_size(size_of::<F>()).watch(future);
    let unmanned = |pool: &Arc<Pool>| {
        pool.crew().filter(|crew| crew.is_unmanned() && !crew.is_stopped()).map(|_| pool.clone())
    };
    let pool = match source {
        PoolSource::Given(pool) => unmanned(pool),
        PoolSource::Current(_) => stay::with_pool_of_block_on(unmanned).flatten(),
    };
    match pool {
        Some(pool) => {
            let mut output = None;
            serve_and_wait(&pool, pin!(async { output = Some(future.await) }), caller);
            output.expect("the future was awaited")
        }
        None => block_on_at(source, future, caller),
    }
}

/// Waits for `future`, and polls the pool's tasks meanwhile, because no worker does. A `block_on` inside
/// one of these tasks polls other tasks on top of it. If the runtime is stopped, the thread stops polling
/// tasks, and waits for `future` alone.
#[cold]
fn serve_and_wait(pool: &Arc<Pool>, mut future: Root<'_>, caller: &'static Location<'static>) {
    let crew = pool.crew().expect("the caller has checked it");
    let mut is_done = false;
    let served = {
        let mut stopped = pin!(crew.until_stopped());
        let either = poll_fn(|cx| {
            is_done = future.as_mut().poll(cx).is_ready();
            if is_done { Poll::Ready(()) } else { stopped.as_mut().poll(cx) }
        });
        let either: Root<'_> = pin!(either);
        let run = RunInOrder::new(crew.state().clone(), either);
        let serve = || block_on_at(PoolSource::Given(pool), run, caller);
        catch_unwind(AssertUnwindSafe(|| stay::poll_deeper(pool, crew.stack_size(), serve)))
    };
    // As a worker does after its last poll. This thread may have polled a task after all others have woken
    // and cancelled what they found: no other thread would wake that task again.
    if crew.is_stopped() {
        crew.clear_up(pool);
    }
    served.unwrap_or_else(|panic| resume_unwind(panic));
    if !is_done {
        block_on_at(PoolSource::Given(pool), future, caller);
    }
}

/// Drives `future` on a new station, until it is done. A panic goes on, with a better message if it comes
/// from awaiting a cancelled task.
#[inline]
fn block_on_at<T>(
    source: PoolSource<'_>,
    future: impl Future<Output = T>,
    caller: &'static Location<'static>,
) -> T {
    let driven =
        AssertUnwindSafe(|| ambient::beside(|| drive(source, Arc::new(Station::new(caller)), future)));
    match catch_unwind(driven) {
        Ok(Some(output)) => output,
        Ok(None) => unreachable!("only a thread with a linger limit is unneeded"),
        Err(panic) => match explain(&*panic) {
            Some(explanation) => panic!("{explanation}"),
            None => resume_unwind(panic),
        },
    }
}
