//! [`Frame`]: what a thread in `block_on` says of itself.
//!
//! A `block_on` is one frame on its thread's stack; one that is nested in it is another, on top. The frame on top is reached
//! through one thread-local. Each layer has a part in it, and the parts are nested as the layers are: that of a
//! layer begins with that of the layer below it. So the reactor sees a `Frame`, the executor a `Frame<Host>`, and the pool,
//! which makes them, a `Frame<Stay>`; and none sees what it does not know.

use std::cell::Cell;
use std::ptr;
use std::task::Waker;

use crate::sync::thread_local;
use crate::waking;

/// One `block_on` in progress, or a visit of the pool's to user code. `repr(C)`, because layers look at it as at a frame whose
/// part is the beginning of `P`.
#[repr(C)]
pub(crate) struct Frame<P = ()> {
    below: Cell<*const Frame>,
    /// The reactor that this thread leads when it has nothing else to do, as an address to compare with.
    leads: Cell<*const ()>,
    /// The waker that was called here last, or was that of a timer which was cancelled. Whoever it woke will wait again, most likely, and needs a copy of it then: to keep
    /// this one is cheaper than to drop it and make another. Kept for a poll, not for longer.
    spare: Cell<Option<Waker>>,
    /// What runs below this frame.
    runs_below: Cell<Running>,
    part: P,
}

/// What runs on top of a thread's stack, with or without a frame below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    /// The runner whose `poll` it is, or null.
    pub(crate) runner: *const (),
    /// How many tasks that poll may run before it returns.
    pub(crate) budget: u32,
    /// How often this thread had been the child of a fork when that poll made way for another one.
    forks: u32,
}

impl Running {
    /// Nothing.
    const NONE: Self = Self::new(ptr::null(), 0);

    pub(crate) const fn new(runner: *const (), budget: u32) -> Self {
        Self { runner, budget, forks: 0 }
    }
}

/// What there is of a thread.
#[derive(Debug)]
pub(crate) struct Here {
    top: Cell<*const Frame>,
    running: Cell<*const ()>,
    budget: Cell<u32>,
    /// How often this thread has been the child of a fork.
    forks: Cell<u32>,
    /// Counts how often this thread looked for events, or waited for others to.
    turn: Cell<u32>,
}

thread_local! {
    static HERE: Here = const {
        Here {
            top: Cell::new(ptr::null()),
            running: Cell::new(ptr::null()),
            budget: Cell::new(0),
            forks: Cell::new(0),
            turn: Cell::new(1),
        }
    };
}

/// Shows `f` what this thread says of itself.
#[inline]
pub(crate) fn here<R>(f: impl FnOnce(&Here) -> R) -> R {
    HERE.with(f)
}

/// This thread looks for events, or has waited until others did.
#[inline]
pub(crate) fn next_turn() {
    here(|here| here.turn.set(here.turn.get().wrapping_add(1)));
}

impl Here {
    fn top(&self) -> Option<&Frame> {
        // SAFETY: a frame stays where it is as long as it can be reached.
        unsafe { self.top.get().as_ref() }
    }

    /// Which turn of its this thread is in, if it leads `reactor` when it has nothing else to do.
    #[inline]
    pub(crate) fn turn_at(&self, reactor: *const ()) -> Option<u32> {
        let leads = self.top().is_some_and(|top| ptr::eq(top.leads.get(), reactor));
        leads.then(|| self.turn.get())
    }

    /// A copy of `waker`: one that is left over, if there is one.
    #[inline]
    pub(crate) fn copy(&self, waker: &Waker) -> Waker {
        let Some(top) = self.top() else { return waker.clone() };
        match top.spare.take() {
            Some(spare) if spare.will_wake(waker) => spare,
            other => {
                // Not dropped here, where whoever needs the copy may have something locked.
                top.spare.set(other);
                waker.clone()
            }
        }
    }

    /// A waker is left over. It is kept if there is a place; else it is returned.
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

    /// Where on which thread's stack this is: an address that tells the frame on top, or the thread where there is none, from
    /// all others.
    #[inline]
    pub(crate) fn place(&self) -> usize {
        let top = self.top.get();
        if top.is_null() { ptr::from_ref(self).addr() } else { top.addr() }
    }

    /// Whether that place is on this thread, below the frame on top.
    pub(crate) fn is_below(&self, place: usize) -> bool {
        let Some(top) = self.top() else { return false };
        let mut next = top.below.get();
        // SAFETY: those below are there as long as the one on top.
        while let Some(frame) = unsafe { next.as_ref() } {
            if next.addr() == place {
                return true;
            }
            next = frame.below.get();
        }
        ptr::from_ref(self).addr() == place
    }

    /// The part of the frame on top, or its beginning.
    ///
    /// # Safety
    ///
    /// All frames of the crate have a part that begins with a `P`; and the reference is not kept until that frame is left.
    #[inline]
    pub(crate) unsafe fn part<P>(&self) -> Option<&P> {
        // SAFETY: `repr(C)` has the part of both at the same address; the caller promises the rest.
        unsafe { self.top.get().cast::<Frame<P>>().as_ref() }.map(|frame| &frame.part)
    }

    /// The same of all frames of this thread, from the top.
    ///
    /// # Safety
    ///
    /// As for [`part`](Self::part).
    pub(crate) unsafe fn parts<P: 'static>(&self) -> impl Iterator<Item = &P> {
        let mut next = self.top.get();
        std::iter::from_fn(move || {
            // SAFETY: as in `part`; those below are there as long as the one on top.
            let frame = unsafe { next.cast::<Frame<P>>().as_ref() }?;
            next = frame.below.get();
            Some(&frame.part)
        })
    }

    /// The runner whose `poll` is on top of the stack, or null.
    #[inline]
    pub(crate) fn runner(&self) -> *const () {
        self.running.get()
    }

    /// Those whose polls wait for a frame on top of them, and nulls.
    pub(crate) fn runners_below(&self) -> impl Iterator<Item = *const ()> {
        let mut next = self.top.get();
        std::iter::from_fn(move || {
            // SAFETY: a frame stays where it is as long as it can be reached.
            let frame = unsafe { next.as_ref() }?;
            next = frame.below.get();
            Some(frame.runs_below.get().runner)
        })
    }

    /// Something else runs now. Returns what did before.
    #[inline]
    pub(crate) fn begins(&self, now: Running) -> Running {
        let forks = self.forks.get();
        Running { runner: self.running.replace(now.runner), budget: self.budget.replace(now.budget), forks }
    }

    /// What ran before runs again; but in a child that was forked meanwhile it may run no task more.
    #[inline]
    pub(crate) fn resumes(&self, before: Running) {
        let is_same = before.forks == self.forks.get();
        self.running.set(before.runner);
        self.budget.set(if is_same { before.budget } else { 0 });
    }

    /// Whether what runs may run a task more. Not in a child process, when this thread has forked one since it began.
    #[inline]
    pub(crate) fn may_run(&self) -> bool {
        let budget = self.budget.get();
        self.budget.set(budget.wrapping_sub(1));
        budget > 0
    }
}

/// This thread has forked, and this is the child: nothing that runs may go on with tasks that the parent polls as well, and no
/// reactor of a frame is this thread's to lead.
#[cfg(any(test, all(unix, not(miri))))]
pub(crate) fn forked() {
    here(|here| {
        here.budget.set(0);
        here.forks.set(here.forks.get() + 1);
        let mut next = here.top.get();
        // SAFETY: the frame on top is there, and those below it as long as it is.
        while let Some(frame) = unsafe { next.as_ref() } {
            frame.leads.set(ptr::null());
            next = frame.below.get();
        }
    });
}

impl<P> Frame<P> {
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

    /// Says which reactor this thread leads from now on.
    pub(crate) fn leads(&self, reactor: *const ()) {
        self.leads.set(reactor);
    }

    /// A waker was called that is left over. `None` takes back what was kept.
    #[inline]
    pub(crate) fn keep(&self, waker: Option<Waker>) {
        waking::discard(self.spare.replace(waker));
    }

    /// Puts the frame on top, until the value is dropped. Nothing runs in it yet.
    pub(crate) fn enter(&self) -> OnTop<'_, P> {
        here(|here| {
            self.below.set(here.top.replace(ptr::from_ref(self).cast()));
            self.runs_below.set(here.begins(Running::NONE));
        });
        OnTop(self)
    }
}

/// A frame that is on top.
pub(crate) struct OnTop<'a, P>(&'a Frame<P>);

impl<P> std::ops::Deref for OnTop<'_, P> {
    type Target = Frame<P>;

    fn deref(&self) -> &Frame<P> {
        self.0
    }
}

impl<P> OnTop<'_, P> {
    /// Leaves it. To be left once more, by the drop, changes nothing.
    pub(crate) fn leave(&self) {
        here(|here| {
            here.top.set(self.0.below.get());
            here.resumes(self.0.runs_below.get());
        });
    }
}

impl<P> Drop for OnTop<'_, P> {
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

    /// A waker, and what counts its copies.
    fn waker() -> (Waker, Arc<Quiet>) {
        let counted = Arc::new(Quiet);
        (counted.clone().into(), counted)
    }

    fn address(of: &u32) -> *const () {
        ptr::from_ref(of).cast()
    }

    /// The part of the frame on top, and all parts from the top.
    fn parts() -> (Option<u32>, Vec<u32>) {
        // SAFETY: on this thread, all frames have a `u32`.
        here(|here| unsafe { (here.part::<u32>().copied(), here.parts::<u32>().copied().collect()) })
    }

    /// A poll of `runner` begins.
    fn begin(runner: *const (), budget: u32) -> Running {
        here(|here| here.begins(Running::new(runner, budget)))
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
    fn a_turn_is_that_of_who_leads_the_reactor() {
        let [reactor, other] = [0, 1];
        let turn = |reactor| here(|here| here.turn_at(address(reactor)));
        assert_eq!(turn(&reactor), None);
        let frame = Frame::new(0u32);
        let on_top = frame.enter();
        assert_eq!(turn(&reactor), None);
        on_top.leads(address(&reactor));
        let before = turn(&reactor).expect("it leads this one");
        assert_eq!(turn(&other), None);
        next_turn();
        next_turn();
        assert_eq!(turn(&reactor), Some(before + 2));
        forked();
        assert_eq!(turn(&reactor), None);
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

    /// (Fails if one that is kept is dropped for another, and if it outlives what runs in the frame.)
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
    fn a_poll_runs_no_more_tasks_than_it_may_and_none_for_the_one_below_it() {
        let runner = address(&1);
        let outside = begin(runner, 2);
        assert_eq!(here(Here::runner), runner);
        assert!(may_run());
        let frame = Frame::new(0u32);
        let on_top = frame.enter();
        assert!(here(Here::runner).is_null() && !may_run());
        let within = begin(address(&2), 7);
        assert!(may_run());
        here(|here| here.resumes(within));
        assert!(here(Here::runner).is_null());
        drop(on_top);
        assert_eq!(here(Here::runner), runner);
        assert!(may_run() && !may_run());
        here(|here| here.resumes(outside));
        assert!(here(Here::runner).is_null());
    }

    /// What ran when the thread forked runs no task in the child, wherever in the stack it is.
    #[test]
    fn after_a_fork_no_poll_that_was_in_progress_goes_on_with_tasks() {
        let reactor = 0;
        let (lower, upper) = (Frame::new(1u32), Frame::new(2u32));
        let on_top = lower.enter();
        on_top.leads(address(&reactor));
        let outside = begin(address(&1), 5);
        let above = upper.enter();
        above.leads(address(&reactor));
        for _ in 0..2 {
            let within = begin(address(&2), 5);
            assert!(may_run());
            forked();
            assert!(!may_run());
            here(|here| here.resumes(within));
        }
        assert_eq!(here(|here| here.turn_at(address(&reactor))), None);
        drop(above);
        assert!(here(|here| here.turn_at(address(&reactor))).is_none() && !may_run());
        here(|here| here.resumes(outside));
        let fresh = begin(address(&3), 1);
        assert!(may_run(), "what begins in the child runs its tasks");
        here(|here| here.resumes(fresh));
    }
}
