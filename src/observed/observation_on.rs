//! [`Watched`]: a future that is perhaps observed.

use std::fmt;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use super::facts::{OwnedFacts, PollFacts};
use super::meta::SpawnMeta;
use super::shim::{Shim, ShimWaker};
use super::span::{EnteredSpan, TaskSpan};
use crate::flight::TaskNumber;

pub(crate) use super::shim::{is_wrapped, unwrapped};

/// A future that is perhaps observed. Polls and the drop of an observed future are inside of its span.
pub struct Watched<F> {
    future: ManuallyDrop<F>,
    observation: Observation,
}

/// The data beside a future or a closure, if that is observed.
#[derive(Debug)]
pub struct Observation(Option<Box<Observed>>);

#[derive(Debug)]
struct Observed {
    /// `None` if no subscriber wanted the span.
    span: Option<TaskSpan>,
    /// `None` if no waits were recorded.
    facts: Option<OwnedFacts>,
    /// The shim of earlier polls, if a waker of it still exists.
    shim: Weak<Shim>,
}

impl SpawnMeta<'_> {
    /// Observes the future from now on, if it is to be observed.
    #[inline]
    pub fn watch<F>(self, future: F) -> Watched<F> {
        self.watch_in(future, 0, None)
    }

    /// Observes the future as [`watch`](Self::watch) does; it is a task of the executor at this address, with
    /// this number if it has one already.
    #[inline]
    pub(crate) fn watch_in<F>(self, future: F, executor: usize, number: Option<u64>) -> Watched<F> {
        let observation = self.observe_in(size_of::<F>(), executor, number);
        Watched { future: ManuallyDrop::new(future), observation }
    }

    /// Begins the observation of a closure of this size, if it is to be observed.
    #[inline]
    pub fn observe(self, size: usize) -> Observation {
        self.observe_in(size, 0, None)
    }

    #[inline]
    fn observe_in(self, size: usize, executor: usize, number: Option<u64>) -> Observation {
        let is_wanted = TaskSpan::may_be_wanted() || OwnedFacts::is_wanted();
        Observation(if is_wanted { self.begin(size, executor, number) } else { None })
    }

    #[cold]
    fn begin(self, size: usize, executor: usize, number: Option<u64>) -> Option<Box<Observed>> {
        // Std's in all modes: models do not observe tasks.
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let (kind, size) = (self.kind?, self.size.unwrap_or(size));
        let number = number
            .or_else(|| TaskNumber::next().get())
            // ORDER: Relaxed, because only the number's uniqueness matters.
            .unwrap_or_else(|| NEXT_ID.fetch_add(1, Ordering::Relaxed));
        let span = TaskSpan::begin(&self, kind, self.id.unwrap_or(number), size);
        let facts = OwnedFacts::begin(&self, kind, number, executor);
        (span.is_some() || facts.is_some()).then(|| Box::new(Observed { span, facts, shim: Weak::new() }))
    }
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future, the only field that is pinned, is never moved out of the struct.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: `self` was pinned, and pinning is structural for the future.
        let future = unsafe { Pin::new_unchecked(&mut *this.future) };
        this.observation.poll(cx, |cx| future.poll(cx))
    }
}

impl<F> Drop for Watched<F> {
    fn drop(&mut self) {
        let Self { future, observation } = self;
        // SAFETY: the future is not used again. It is dropped in its place, as pinning demands.
        observation.inside(|| unsafe { ManuallyDrop::drop(future) });
    }
}

impl<F> fmt::Debug for Watched<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("observation", &self.observation).finish_non_exhaustive()
    }
}

impl Observation {
    /// Polls a future with `poll`: inside of its span and with a waker that counts, if it is observed.
    #[inline]
    fn poll<R>(&mut self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>) -> Poll<R>) -> Poll<R> {
        let observed = self.0.as_mut().map(|observed| observed.begin_poll(cx));
        let waker = observed.as_ref().map_or(cx.waker(), |polled| &polled.waker);
        poll(&mut Context::from_waker(waker))
    }

    /// Calls code that belongs to what is observed: a closure, or the destructor of a future.
    #[inline]
    pub fn inside<R>(&mut self, code: impl FnOnce() -> R) -> R {
        let _entered = self.0.as_ref().and_then(|observed| observed.span.as_ref()?.enter());
        code()
    }

    /// Returns a closure that calls `body`, inside of the span if it is observed.
    pub(crate) fn wrap<A: 'static, R: 'static>(
        mut self,
        body: Box<dyn FnOnce(A) -> R + Send>,
    ) -> Box<dyn FnOnce(A) -> R + Send> {
        match self.0 {
            None => body,
            Some(_) => Box::new(move |argument| self.inside(|| body(argument))),
        }
    }
}

/// A poll of an observed future.
struct ObservedPoll<'a> {
    _facts: Option<PollFacts<'a>>,
    waker: ShimWaker,
    _entered: Option<EnteredSpan<'a>>,
}

impl Observed {
    /// Begins a poll. The future gets the same waker as before, if a clone of that still exists and stands
    /// for the same `waker`.
    #[cold]
    fn begin_poll(&mut self, cx: &Context<'_>) -> ObservedPoll<'_> {
        // The context is on the stack of the function that polls.
        let (waker, outer) = (cx.waker(), ptr::from_ref(cx).addr());
        let Self { span, facts, shim } = self;
        let shim = shim.upgrade().filter(|shim| shim.stands_for(waker)).unwrap_or_else(|| {
            let id = span.as_ref().and_then(TaskSpan::id);
            let new = Arc::new(Shim::new(waker.clone(), id, facts.as_ref().map(OwnedFacts::share)));
            *shim = Arc::downgrade(&new);
            new
        });
        ObservedPoll {
            _entered: span.as_ref().and_then(TaskSpan::enter),
            _facts: facts.as_ref().map(|facts| facts.begin_poll(unwrapped(waker).data().addr(), outer)),
            waker: ShimWaker::new(shim),
        }
    }
}
