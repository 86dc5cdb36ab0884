//! [`Here`]: what the reactor keeps of the calling thread, in a thread-local of its own. The executor and
//! the pool have theirs (`executor/host.rs`, `pool/stay.rs`), so that no room knows what another one keeps.
//!
//! Each value but the turn belongs to the innermost `block_on` or visit of the thread. A [`HereGuard`] on the
//! stack keeps the values of the one below, and puts them back when it is dropped. The thread-local is
//! const and has no destructor, so an access is one instruction.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr;
use std::task::Waker;

use crate::observed::is_wrapped;
use crate::sync::thread_local;
use crate::waking;

/// The state of the calling thread.
pub(super) struct Here {
    /// The address of the reactor that this thread leads when it has nothing else to do, or null. Only
    /// compared.
    leads: Cell<*const ()>,
    /// The waker that this thread called last, or the waker of a cancelled timer. The woken task is likely to
    /// wait again and to need a copy of its waker: reusing this copy is cheaper than dropping it and cloning
    /// another one. It is kept for one poll, and only while the thread `leads` a reactor.
    spare: Cell<ManuallyDrop<Option<Waker>>>,
    /// How often this thread polled a reactor, or waited while another thread did.
    turn: Cell<u32>,
}

thread_local! {
    static HERE: Here = const {
        Here {
            leads: Cell::new(ptr::null()),
            spare: Cell::new(ManuallyDrop::new(None)),
            turn: Cell::new(1),
        }
    };
}

/// Calls `f` with the state of the calling thread.
#[inline]
pub(super) fn here<R>(f: impl FnOnce(&Here) -> R) -> R {
    HERE.with(f)
}

/// Begins a new turn of this thread: it polls a reactor, or has waited while another thread did.
#[inline]
pub(crate) fn next_turn() {
    here(|here| here.turn.set(here.turn.get().wrapping_add(1)));
}

/// Replaces the thread's spare waker, and drops the previous one, whose destructor may be foreign code.
#[inline]
pub(crate) fn keep_spare(waker: Option<Waker>) {
    waking::discard(here(|here| here.replace_spare(waker)));
}

impl Here {
    #[inline]
    fn replace_spare(&self, waker: Option<Waker>) -> Option<Waker> {
        ManuallyDrop::into_inner(self.spare.replace(ManuallyDrop::new(waker)))
    }

    /// Returns the number of this thread's turn, if the thread leads `reactor` when it has nothing else to
    /// do.
    #[inline]
    pub(super) fn turn_at(&self, reactor: *const ()) -> Option<u32> {
        ptr::eq(self.leads.get(), reactor).then(|| self.turn.get())
    }

    /// Returns a copy of `waker`: the spare waker if it wakes the same task, which uses the spare up, or a
    /// clone.
    #[inline]
    pub(super) fn copy(&self, waker: &Waker) -> Waker {
        // A copy of an observed task's waker has to be seen.
        if is_wrapped(waker) {
            return waker.clone();
        }
        match self.replace_spare(None) {
            Some(spare) if spare.will_wake(waker) => spare,
            other => {
                // Not dropped here: the caller may hold a lock, and a waker's destructor is foreign code
                // (LF3).
                self.replace_spare(other);
                waker.clone()
            }
        }
    }

    /// Keeps `waker` as the spare waker. Returns it if the thread leads no reactor, or if there is a spare
    /// waker already.
    #[inline]
    pub(super) fn keep(&self, waker: Waker) -> Option<Waker> {
        let other = self.replace_spare(None);
        if other.is_some() || self.leads.get().is_null() {
            self.replace_spare(other);
            return Some(waker);
        }
        self.replace_spare(Some(waker))
    }
}

/// Keeps what this thread's state was before a `block_on` or a visit began.
#[derive(Debug)]
pub(crate) struct HereGuard {
    leads: *const (),
    spare: Option<Waker>,
}

impl HereGuard {
    /// Begins a `block_on` or a visit: the thread leads no reactor yet, and has no spare waker.
    #[inline]
    pub(crate) fn enter() -> Self {
        here(|here| Self { leads: here.leads.replace(ptr::null()), spare: here.replace_spare(None) })
    }

    /// Sets which reactor this thread leads when it has nothing else to do.
    #[inline]
    pub(crate) fn set_leads(&self, reactor: *const ()) {
        here(|here| here.leads.set(reactor));
    }
}

impl Drop for HereGuard {
    /// Puts the state back, then drops the spare waker, whose destructor may be foreign code.
    #[inline]
    fn drop(&mut self) {
        here(|here| here.leads.set(self.leads));
        keep_spare(self.spare.take());
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

    fn turn_at(reactor: &u32) -> Option<u32> {
        here(|here| here.turn_at(address(reactor)))
    }

    #[test]
    fn a_thread_has_a_turn_only_at_the_reactor_that_it_leads() {
        let [reactor, other] = [0, 1];
        let guard = HereGuard::enter();
        assert_eq!(turn_at(&reactor), None);
        guard.set_leads(address(&reactor));
        let before = turn_at(&reactor).expect("it leads this one");
        assert_eq!(turn_at(&other), None);
        let nested = HereGuard::enter();
        assert_eq!(turn_at(&reactor), None);
        nested.set_leads(address(&other));
        next_turn();
        next_turn();
        drop(nested);
        assert_eq!((turn_at(&reactor), turn_at(&other)), (Some(before + 2), None));
        drop(guard);
        assert_eq!(turn_at(&reactor), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a vtable has several addresses there, so that a waker may not know its copy")]
    fn a_waker_that_is_left_over_is_the_next_copy_of_itself() {
        let copy = |waker: &Waker| here(|here| here.copy(waker));
        let [(waker, copies), (other, copies_of_other)] = [(); 2].map(|()| waker());
        drop(copy(&waker));
        let _guard = HereGuard::enter();
        keep_spare(Some(waker.clone()));
        let copy_of_other = copy(&other);
        assert!(copy_of_other.will_wake(&other));
        assert_eq!((Arc::strong_count(&copies), Arc::strong_count(&copies_of_other)), (3, 3));
        let kept = copy(&waker);
        assert_eq!((kept.will_wake(&waker), Arc::strong_count(&copies)), (true, 3));
        let made = copy(&waker);
        assert_eq!((made.will_wake(&waker), Arc::strong_count(&copies)), (true, 4));
        keep_spare(Some(kept));
        keep_spare(None);
        assert_eq!(Arc::strong_count(&copies), 3);
    }

    /// Fails if `keep` replaces a spare waker by another one, or if a spare waker outlives its `block_on` or
    /// is used in a nested one.
    #[test]
    fn a_waker_that_is_left_over_is_kept_if_there_is_a_place() {
        let keep = |waker: &Waker| here(|here| here.keep(waker.clone())).is_none();
        let [(waker, copies), (other, copies_of_other)] = [(); 2].map(|()| waker());
        assert!(!keep(&waker));
        let guard = HereGuard::enter();
        assert!(!keep(&waker));
        guard.set_leads(address(&0));
        assert_eq!([keep(&waker), keep(&other), keep(&waker)], [true, false, false]);
        assert_eq!((Arc::strong_count(&copies), Arc::strong_count(&copies_of_other)), (3, 2));
        let nested = HereGuard::enter();
        nested.set_leads(address(&0));
        assert!(keep(&other));
        drop(nested);
        assert_eq!((Arc::strong_count(&copies), Arc::strong_count(&copies_of_other)), (3, 2));
        drop(guard);
        assert_eq!(Arc::strong_count(&copies), 2);
    }
}
