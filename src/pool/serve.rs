//! The way into a `block_on`. In a runtime without workers (`Builder::current_thread`), the waiting thread
//! polls the runtime's tasks, too.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use super::block_on::{PoolSource, Root, drive};
use super::{Pool, stay};
use crate::ambient;
use crate::executor::Run;
use crate::observed::{SpawnMeta, TaskKind};

/// The future of a `block_on`, which lies in the frame of a public function: the functions below move a
/// pointer, where a debug build would copy the future into each of their frames. Dropping this drops the
/// future, so its destructors run inside of the `block_on`.
struct InPlace<'a, F>(Pin<&'a mut Option<F>>);

impl<F: Future> Future for InPlace<'_, F> {
    type Output = F::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.0.as_mut().as_pin_mut().expect("the future is there until the drop").poll(cx)
    }
}

impl<F> Drop for InPlace<'_, F> {
    #[inline]
    fn drop(&mut self) {
        self.0.set(None);
    }
}

/// Drives `future`, which is `Some`, in a pool until it is done, and returns its output:
/// [`block_on`](crate::block_on()). Reports of a stall of the future name `caller`. In a runtime without
/// workers that was not stopped, the thread polls the runtime's tasks as well.
pub(crate) fn block_on_in<T, F: Future<Output = T>>(
    source: PoolSource,
    future: Pin<&mut Option<F>>,
    caller: &'static Location<'static>,
) -> T {
    let future = InPlace(future);
    let future = SpawnMeta::new(TaskKind::BlockOn, caller).of_inner_size(size_of::<F>()).watch(future);
    let unmanned = |pool: &Arc<Pool>| {
        pool.crew().filter(|crew| crew.is_unmanned() && !crew.parting.is_stopped()).map(|_| pool.clone())
    };
    let pool = match &source {
        PoolSource::Given(pool) => unmanned(pool),
        PoolSource::Current(_) => stay::pool_of_block_on().as_ref().and_then(unmanned),
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
        let run = crew.with_park_hooks(pool, Run::in_order(crew.state.clone(), either));
        let serve = AssertUnwindSafe(|| block_on_at(PoolSource::Given(pool.clone()), run, caller));
        stay::poll_deeper(pool, crew.stack_size(), || catch_unwind(serve))
    };
    // As a worker does after its last poll. This thread may have polled a task after all others have woken
    // and cancelled what they found: no other thread would wake that task again.
    if crew.parting.is_stopped() {
        crew.cancel_all(pool);
    }
    served.unwrap_or_else(|panic| resume_unwind(panic));
    if !is_done {
        block_on_at(PoolSource::Given(pool.clone()), future, caller);
    }
}

/// Drives `future` on the thread's own station, until it is done.
#[inline]
fn block_on_at<T>(
    source: PoolSource,
    future: impl Future<Output = T>,
    caller: &'static Location<'static>,
) -> T {
    ambient::beside(|| drive(source, stay::station_for(caller), future))
        .expect("only a thread with a linger limit is unneeded")
}
