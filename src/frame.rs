//! [`Frame`]: the record of one `block_on` on its thread's stack, for code that runs inside of it.
//!
//! A nested `block_on` has a frame of its own, above the outer frame. A thread-local points to the topmost
//! frame. Each layer of the crate has a part in the frame, and the part of a layer begins with the part of
//! the layer below. So the reactor uses a `Frame`, the executor a `Frame<Host>`, and the pool, which
//! creates the frames, a `Frame<Stay>`. A layer cannot access the fields of the layers above it.

use std::cell::Cell;
use std::ptr;
use std::task::Waker;

use crate::observed::is_wrapped;
use crate::sync::thread_local;
use crate::waking;

/// A `block_on` in progress, or a call of the pool into user code. `repr(C)`, because lower layers access
/// it as a frame with a smaller part, which is the beginning of `P`.
#[repr(C)]
pub(crate) struct Frame<P = ()> {
    below: Cell<*const Frame>,
    /// The address of the reactor that this thread leads when it has nothing else to do. Only compared.
    leads: Cell<*const ()>,
    /// The waker that this thread called last, or the waker of a cancelled timer. The woken task is likely to
    /// wait again and to need a copy of its waker: reusing this copy is cheaper than dropping it and cloning
    /// another one. The frame keeps it for one poll.
    spare: Cell<Option<Waker>>,
    /// The poll that was in progress when this frame was entered.
    runs_below: Cell<Running>,
    part: P,
}

/// The poll of a runner at the top of a thread's stack, with or without a frame below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    /// The runner that is polled, or null.
    pub(crate) runner: *const (),
    /// How many more tasks the poll may run before it returns.
    pub(crate) budget: u32,
}

impl Running {
    /// No poll.
    const NONE: Self = Self::new(ptr::null(), 0);

    pub(crate) const fn new(runner: *const (), budget: u32) -> Self {
        Self { runner, budget }
    }
}

/// The state of the calling thread: its frames, and the poll in progress.
#[derive(Debug)]
pub(crate) struct Here {
    top: Cell<*const Frame>,
    running: Cell<*const ()>,
    budget: Cell<u32>,
    /// Whether the process was forked on this thread.
    forked: Cell<bool>,
    /// How often this thread polled a reactor, or waited while another thread did.
    turn: Cell<u32>,
}

thread_local! {
    static HERE: Here = const {
        Here {
            top: Cell::new(ptr::null()),
            running: Cell::new(ptr::null()),
            budget: Cell::new(0),
            forked: Cell::new(false),
            turn: Cell::new(1),
        }
    };
}

/// Calls `f` with the state of the calling thread.
#[inline]
pub(crate) fn here<R>(f: impl FnOnce(&Here) -> R) -> R {
    HERE.with(f)
}

/// Begins a new turn of this thread: it polls a reactor, or has waited while another thread did.
#[inline]
pub(crate) fn next_turn() {
    here(|here| here.turn.set(here.turn.get().wrapping_add(1)));
}

impl Here {
    /// Returns the topmost frame; `None` if the thread is in none.
    fn top(&self) -> Option<&Frame> {
        // SAFETY: `OnTop` borrows the frame and unlinks it when it is dropped, so a linked frame is valid.
        unsafe { self.top.get().as_ref() }
    }

    /// Returns the number of this thread's turn, if the thread leads `reactor` when it has nothing else to
    /// do.
    #[inline]
    pub(crate) fn turn_at(&self, reactor: *const ()) -> Option<u32> {
        let leads = self.top().is_some_and(|top| ptr::eq(top.leads.get(), reactor));
        leads.then(|| self.turn.get())
    }

    /// Returns a copy of `waker`: the spare waker of the topmost frame if it wakes the same task, which uses
    /// the spare up, or a clone.
    #[inline]
    pub(crate) fn copy(&self, waker: &Waker) -> Waker {
        // A copy of an observed task's waker has to be seen.
        let Some(top) = self.top().filter(|_| !is_wrapped(waker)) else { return waker.clone() };
        match top.spare.take() {
            Some(spare) if spare.will_wake(waker) => spare,
            other => {
                // Not dropped here: the caller may hold a lock, and a waker's destructor is foreign code
                // (LF3).
                top.spare.set(other);
                waker.clone()
            }
        }
    }

    /// Keeps `waker` as the spare waker of the topmost frame. Returns it if there is no frame, or if the
    /// frame has a spare waker already.
    #[inline]
    pub(crate) fn keep(&self, waker: Waker) -> Option<Waker> {
        let Some(top) = self.top() else { return Some(waker) };
        let other = top.spare.take();
        if other.is_none() {
            top.spare.set(Some(waker));
            return None;
        }
        top.spare.set(other);
        Some(waker)
    }

    /// Returns an address that identifies the topmost frame, or the thread if it has no frame, while that
    /// exists.
    #[inline]
    pub(crate) fn place(&self) -> usize {
        let top = self.top.get();
        if top.is_null() { ptr::from_ref(self).addr() } else { top.addr() }
    }

    /// Returns whether `place`, which [`place`](Self::place) returned, is on this thread, below the topmost
    /// frame: a lower frame, or the thread without a frame. False if the thread has no frame.
    pub(crate) fn is_below(&self, place: usize) -> bool {
        let Some(top) = self.top() else { return false };
        let mut next = top.below.get();
        // SAFETY: as in `top`. Frames are left in reverse order, so a frame outlives the frames above it.
        while let Some(frame) = unsafe { next.as_ref() } {
            if next.addr() == place {
                return true;
            }
            next = frame.below.get();
        }
        ptr::from_ref(self).addr() == place
    }

    /// Returns the part of the topmost frame, or the beginning of that part; `None` if the thread is in no
    /// frame.
    ///
    /// # Safety
    ///
    /// The part of each frame in the crate begins with a `P`. The reference is not used after the frame is
    /// left.
    #[inline]
    pub(crate) unsafe fn part<P>(&self) -> Option<&P> {
        // SAFETY: with `repr(C)` the part is at the same offset in both types; the caller promises the rest.
        unsafe { self.top.get().cast::<Frame<P>>().as_ref() }.map(|frame| &frame.part)
    }

    /// Returns the parts of all frames of this thread, from the top.
    ///
    /// # Safety
    ///
    /// As for [`part`](Self::part).
    pub(crate) unsafe fn parts<P: 'static>(&self) -> impl Iterator<Item = &P> {
        let mut next = self.top.get();
        std::iter::from_fn(move || {
            // SAFETY: as in `part`; a frame outlives the frames above it.
            let frame = unsafe { next.cast::<Frame<P>>().as_ref() }?;
            next = frame.below.get();
            Some(&frame.part)
        })
    }

    /// Returns the runner that is polled at the top of the stack, or null.
    #[inline]
    pub(crate) fn runner(&self) -> *const () {
        self.running.get()
    }

    /// Returns, for each frame, the runner with the poll that waits below that frame, or null.
    pub(crate) fn runners_below(&self) -> impl Iterator<Item = *const ()> {
        let mut next = self.top.get();
        std::iter::from_fn(move || {
            // SAFETY: as in `parts`, without a part.
            let frame = unsafe { next.as_ref() }?;
            next = frame.below.get();
            Some(frame.runs_below.get().runner)
        })
    }

    /// Makes `now` the poll in progress. Returns the previous one, for [`resume`](Self::resume).
    #[inline]
    pub(crate) fn begin(&self, now: Running) -> Running {
        Running { runner: self.running.replace(now.runner), budget: self.budget.replace(now.budget) }
    }

    /// Makes `before` the poll in progress again. In the child of a fork its budget becomes zero: the poll
    /// may be one of the parent.
    #[inline]
    pub(crate) fn resume(&self, before: Running) {
        self.running.set(before.runner);
        self.budget.set(if self.forked.get() { 0 } else { before.budget });
    }

    /// Takes one task from the budget of the poll in progress. Returns false if the budget is used up, or
    /// if this is the child of a fork that happened during the poll. Then the poll has to end: a further
    /// call would return true, because the budget has wrapped.
    #[inline]
    pub(crate) fn may_run(&self) -> bool {
        let budget = self.budget.get();
        self.budget.set(budget.wrapping_sub(1));
        budget > 0
    }
}

/// Adjusts the calling thread in the child of a fork: the polls in progress run no more tasks, because the
/// parent polls the same tasks.
#[cfg(any(test, all(unix, not(miri))))]
pub(crate) fn note_fork() {
    here(|here| {
        here.budget.set(0);
        here.forked.set(true);
    });
}

impl<P> Frame<P> {
    /// Creates a frame that is not on the thread's stack of frames: [`enter`](Self::enter) puts it there.
    pub(crate) fn new(part: P) -> Self {
        Self {
            below: Cell::new(ptr::null()),
            leads: Cell::new(ptr::null()),
            spare: Cell::new(None),
            runs_below: Cell::new(Running::NONE),
            part,
        }
    }

    pub(crate) fn part(&self) -> &P {
        &self.part
    }

    /// Sets which reactor this thread leads when it has nothing else to do.
    pub(crate) fn set_leads(&self, reactor: *const ()) {
        self.leads.set(reactor);
    }

    /// Replaces the spare waker, and drops the previous one.
    #[inline]
    pub(crate) fn keep(&self, waker: Option<Waker>) {
        waking::discard(self.spare.replace(waker));
    }

    /// Makes this frame the topmost one until the returned value is dropped. No poll is in progress in it
    /// yet.
    pub(crate) fn enter(&self) -> OnTop<'_, P> {
        here(|here| {
            self.below.set(here.top.replace(ptr::from_ref(self).cast()));
            self.runs_below.set(here.begin(Running::NONE));
        });
        OnTop(self)
    }
}

/// A guard that keeps a frame the topmost one. The drop leaves the frame, and drops its spare waker.
pub(crate) struct OnTop<'a, P>(&'a Frame<P>);

impl<P> std::ops::Deref for OnTop<'_, P> {
    type Target = Frame<P>;

    fn deref(&self) -> &Frame<P> {
        self.0
    }
}

impl<P> OnTop<'_, P> {
    /// Leaves the frame: the one below is topmost again, and the poll that was in progress there goes on. The
    /// drop does the same again, so nothing may enter a frame or begin a poll before it.
    pub(crate) fn leave(&self) {
        here(|here| {
            here.top.set(self.0.below.get());
            here.resume(self.0.runs_below.get());
        });
    }
}

impl<P> Drop for OnTop<'_, P> {
    /// Leaves the frame, then drops its spare waker, whose destructor may be foreign code.
    fn drop(&mut self) {
        self.leave();
        self.0.keep(None);
    }
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    struct Quiet;

    impl Wake for Quiet {
        fn wake(self: Arc<Self>) {}
    }

    /// Returns a waker, and the `Arc` that tells by its strong count how many copies exist.
    fn waker() -> (Waker, Arc<Quiet>) {
        let counted = Arc::new(Quiet);
        (counted.clone().into(), counted)
    }

    fn address(of: &u32) -> *const () {
        ptr::from_ref(of).cast()
    }

    /// Returns the part of the topmost frame, and all parts from the top.
    fn parts() -> (Option<u32>, Vec<u32>) {
        // SAFETY: on this thread, the part of each frame is a `u32`.
        here(|here| unsafe { (here.part::<u32>().copied(), here.parts::<u32>().copied().collect()) })
    }

    /// Begins a poll of `runner`.
    fn begin(runner: *const (), budget: u32) -> Running {
        here(|here| here.begin(Running::new(runner, budget)))
    }

    fn may_run() -> bool {
        here(Here::may_run)
    }

    #[test]
    fn frames_lie_on_each_other_and_each_layer_sees_its_part() {
        assert_eq!(parts(), (None, vec![]));
        let (lower, upper) = (Frame::new(1u32), Frame::new(2u32));
        let on_top = lower.enter();
        assert_eq!((parts(), *on_top.part()), ((Some(1), vec![1]), 1));
        let above = upper.enter();
        assert_eq!((parts(), *above.part()), ((Some(2), vec![2, 1]), 2));
        above.leave();
        assert_eq!(parts(), (Some(1), vec![1]));
        drop(above);
        assert_eq!(parts(), (Some(1), vec![1]));
        drop(on_top);
        assert_eq!(parts(), (None, vec![]));
    }

    #[test]
    fn a_thread_has_a_turn_only_at_the_reactor_that_it_leads() {
        let [reactor, other] = [0, 1];
        let turn = |reactor| here(|here| here.turn_at(address(reactor)));
        assert_eq!(turn(&reactor), None);
        let frame = Frame::new(0u32);
        let on_top = frame.enter();
        assert_eq!(turn(&reactor), None);
        on_top.set_leads(address(&reactor));
        let before = turn(&reactor).expect("it leads this one");
        assert_eq!(turn(&other), None);
        next_turn();
        next_turn();
        assert_eq!(turn(&reactor), Some(before + 2));
    }

    #[test]
    #[cfg_attr(miri, ignore = "a vtable has several addresses there, so that a waker may not know its copy")]
    fn a_waker_that_is_left_over_is_the_next_copy_of_itself() {
        let copy = |waker: &Waker| here(|here| here.copy(waker));
        let [(waker, copies), (other, copies_of_other)] = [(); 2].map(|()| waker());
        drop(copy(&waker));
        let frame = Frame::new(0u32);
        let on_top = frame.enter();
        on_top.keep(Some(waker.clone()));
        let copy_of_other = copy(&other);
        assert!(copy_of_other.will_wake(&other));
        assert_eq!((Arc::strong_count(&copies), Arc::strong_count(&copies_of_other)), (3, 3));
        let kept = copy(&waker);
        assert_eq!((kept.will_wake(&waker), Arc::strong_count(&copies)), (true, 3));
        let made = copy(&waker);
        assert_eq!((made.will_wake(&waker), Arc::strong_count(&copies)), (true, 4));
        on_top.keep(Some(kept));
        on_top.keep(None);
        assert_eq!(Arc::strong_count(&copies), 3);
    }

    /// Fails if `keep` replaces a spare waker by another one, or if a spare waker outlives its frame.
    #[test]
    fn a_waker_that_is_left_over_is_kept_if_there_is_a_place() {
        let keep = |waker: &Waker| here(|here| here.keep(waker.clone())).is_none();
        let [(waker, copies), (other, copies_of_other)] = [(); 2].map(|()| waker());
        assert!(!keep(&waker));
        let frame = Frame::new(0u32);
        let on_top = frame.enter();
        assert_eq!([keep(&waker), keep(&other), keep(&waker)], [true, false, false]);
        assert_eq!((Arc::strong_count(&copies), Arc::strong_count(&copies_of_other)), (3, 2));
        drop(on_top);
        assert_eq!(Arc::strong_count(&copies), 2);
    }

    #[test]
    fn a_poll_runs_no_more_tasks_than_its_budget_and_none_for_the_poll_below_it() {
        let runner = address(&1);
        let outside = begin(runner, 2);
        assert_eq!(here(Here::runner), runner);
        assert!(may_run());
        let frame = Frame::new(0u32);
        let on_top = frame.enter();
        assert!(here(Here::runner).is_null() && !may_run());
        let within = begin(address(&2), 7);
        assert!(may_run());
        here(|here| here.resume(within));
        assert!(here(Here::runner).is_null());
        drop(on_top);
        assert_eq!(here(Here::runner), runner);
        assert!(may_run() && !may_run());
        here(|here| here.resume(outside));
        assert!(here(Here::runner).is_null());
    }

    /// A poll that was in progress at a fork runs no task in the child, wherever on the stack it is.
    #[test]
    fn after_a_fork_no_poll_that_was_in_progress_goes_on_with_tasks() {
        let outside = begin(address(&1), 5);
        let within = begin(address(&2), 5);
        assert!(may_run());
        note_fork();
        assert!(!may_run());
        here(|here| here.resume(within));
        assert!(!may_run());
        here(|here| here.resume(outside));
        let fresh = begin(address(&3), 1);
        assert!(may_run(), "what begins in the child runs its tasks");
        here(|here| here.resume(fresh));
    }
}
