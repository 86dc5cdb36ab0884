//! Wakers that misbehave in `wake`, `clone` and `drop`. Other tasks go on.

use std::future::{Future, poll_fn};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread;
use std::time::Duration;

use futures_lite::future;
use paceline::Direction;
use paceline::{Async, Runtime, Timer, block_on};

use crate::blocked_leader::soon;
use crate::setups::{
    AsleepThread, SOON, arm, eventually, for_each_builder, for_each_setup, is_child, waker_that,
};

/// A waker with a `clone` that calls a function and copies nothing. The waker is never dropped for good.
struct Clones(fn());

impl Clones {
    const VTABLE: RawWakerVTable = RawWakerVTable::new(Self::clone, |_| {}, |_| {}, |_| {});

    fn clone(data: *const ()) -> RawWaker {
        // SAFETY: `data` was made from a reference that lives for ever.
        (unsafe { &*data.cast::<Self>() }.0)();
        RawWaker::new(data, &Self::VTABLE)
    }

    fn waker(&'static self) -> Waker {
        // SAFETY: nothing is counted, and `self` lives for ever.
        unsafe { Waker::from_raw(RawWaker::new(std::ptr::from_ref(self).cast(), &Self::VTABLE)) }
    }
}

fn counting() -> (Waker, Arc<AtomicUsize>) {
    let wakes = Arc::new(AtomicUsize::new(0));
    let counter = wakes.clone();
    let waker = waker_that(move || {
        counter.fetch_add(1, SeqCst);
    });
    (waker, wakes)
}

fn socket(runtime: &Runtime) -> (UnixStream, Async<UnixStream>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (ours, runtime.block_on(async { Async::new(theirs) }).unwrap())
}

/// The task that polls with this waker gets the panic. The next task finds the cell free, and none is lost.
/// Fails without `ClaimedCell`: the cell stays taken, and a waiting task is polled again and again.
#[test]
fn a_clone_that_panics_leaves_the_cell_free() {
    static PANICS: Clones = Clones(|| panic!("on purpose, in a clone"));
    for_each_setup(|runtime| {
        let (mut ours, theirs) = socket(runtime);
        let (first, first_wakes) = counting();
        let (next, next_wakes) = counting();
        let bad = PANICS.waker();
        // In the cell, and then beside the task that is there.
        for (good, wakes) in [(&first, &first_wakes), (&next, &next_wakes)] {
            let poll = || theirs.poll_readable(&mut Context::from_waker(&bad));
            assert!(catch_unwind(AssertUnwindSafe(poll)).is_err(), "the panic is the poller's");
            assert!(theirs.poll_readable(&mut Context::from_waker(good)).is_pending());
            assert_eq!(wakes.load(SeqCst), 0, "nothing has happened yet");
        }
        ours.write_all(b"x").unwrap();
        eventually("the event is told", || [&first_wakes, &next_wakes].iter().all(|it| it.load(SeqCst) == 1));
    });
}

/// The task whose waker panicked polls again, and the timer is armed for it. Fails if `Alarm::rearm` notes a
/// waker before it has a copy of it.
#[test]
fn a_clone_that_panics_is_not_taken_for_the_waker_of_a_timer() {
    static PANICS: AtomicBool = AtomicBool::new(false);
    static MAY_PANIC: Clones = Clones(|| assert!(!PANICS.swap(false, SeqCst), "on purpose, in a clone"));
    for_each_setup(|runtime| {
        let ((before, copies), after) = (counting(), MAY_PANIC.waker());
        let mut timer = Timer::after(Duration::from_secs(60));
        let mut poll = |waker: &Waker| {
            let poll = || Pin::new(&mut timer).poll(&mut Context::from_waker(waker));
            runtime.block_on(async { catch_unwind(AssertUnwindSafe(poll)) })
        };
        assert!(poll(&before).unwrap().is_pending());
        PANICS.store(true, SeqCst);
        assert!(poll(&after).is_err(), "the panic is the poller's");
        assert!(poll(&after).unwrap().is_pending());
        drop(before);
        assert_eq!(Arc::strong_count(&copies), 1, "the timer has another waker");
    });
}

/// No internal cell is borrowed, and no lock held (LF3), while a waker is cloned. Fails if `Alarm::arm` is
/// called from inside of `with_current_pool`.
#[test]
fn a_clone_may_nest_a_block_on() {
    static NESTS: Clones = Clones(|| block_on(async { future::yield_now().await }));
    for_each_setup(|runtime| {
        let (mut ours, theirs) = socket(runtime);
        runtime.block_on(async {
            let waker = NESTS.waker();
            let mut cx = Context::from_waker(&waker);
            let mut timer = Timer::after(Duration::from_secs(60));
            assert!(Pin::new(&mut timer).poll(&mut cx).is_pending());
            timer.set_after(Duration::from_secs(90));
            assert!(Pin::new(&mut timer).poll(&mut cx).is_pending());
            assert!(theirs.poll_readable(&mut cx).is_pending());
            // With another waker in the cell, the others are on the list.
            assert!(theirs.poll_readable(&mut Context::from_waker(Waker::noop())).is_pending());
            let mut waits = [theirs.readable(), theirs.readable()].map(Box::pin);
            assert!(waits.iter_mut().all(|wait| wait.as_mut().poll(&mut cx).is_pending()));
            ours.write_all(b"x").unwrap();
            theirs.readable().await.unwrap();
        });
    });
}

/// A timer is due, and a source becomes ready, and only an unrelated `block_on` can fire them. Fails if a
/// waker is called without `waking`: its panic unwinds that `block_on`.
#[test]
fn a_wake_that_panics_unwinds_no_other_thread() {
    for_each_builder(|setup| {
        let runtime = setup.builder().threads(1).max_threads(1).build().unwrap();
        let bad = || waker_that(|| panic!("on purpose, in a waker"));
        let (mut ours, theirs) = socket(&runtime);
        runtime.shutdown(SOON).unwrap();
        runtime.block_on(async {
            let mut timer = Timer::never();
            arm(&mut timer, Duration::from_millis(2), &bad());
            assert!(theirs.poll_readable(&mut Context::from_waker(&bad())).is_pending());
            ours.write_all(b"x").unwrap();
            Timer::after(Duration::from_millis(10)).await;
            assert!(theirs.poll_readable(&mut Context::from_waker(Waker::noop())).is_ready());
        });
    });
}

/// Two panics at once would abort the process: one for each direction of an event, one while another unwinds.
#[test]
fn wakes_that_panic_together_do_not_abort() {
    if !is_child("wakers::wakes_that_panic_together_do_not_abort", "ulimit -c 0") {
        return;
    }
    for_each_setup(|runtime| {
        let bad = waker_that(|| panic!("on purpose, in a waker"));
        let (good, wakes) = counting();
        let (ours, theirs) = socket(runtime);
        let mut cx = Context::from_waker(&bad);
        // The cell and the list of both directions.
        let mut reads = [theirs.readable(), theirs.readable()].map(Box::pin);
        let mut writes = [theirs.writable(), theirs.writable()].map(Box::pin);
        full(&theirs);
        for wait in &mut reads {
            assert!(wait.as_mut().poll(&mut cx).is_pending());
        }
        for wait in &mut writes {
            assert!(wait.as_mut().poll(&mut cx).is_pending());
        }
        let mut last = Box::pin(theirs.writable());
        assert!(last.as_mut().poll(&mut Context::from_waker(&good)).is_pending());
        drop(ours);
        eventually("the event is told", || wakes.load(SeqCst) == 1);
        runtime.block_on(last).unwrap();
    });
}

/// Writes until there is no more room.
fn full(socket: &Async<UnixStream>) {
    while socket.get_ref().write(&[0; 4096]).is_ok() {}
}

/// A timer, a cell and a list drop wakers of other code, whose drop may panic. In a child, because two panics
/// at once abort.
#[test]
fn a_drop_that_panics_unwinds_no_caller() {
    if !is_child("wakers::a_drop_that_panics_unwinds_no_caller", "ulimit -c 0") {
        return;
    }
    struct PanicsInDrop;
    impl Wake for PanicsInDrop {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for PanicsInDrop {
        fn drop(&mut self) {
            panic!("on purpose, in a drop");
        }
    }
    /// After the call, the code under test holds the only reference.
    fn with(polled: impl FnOnce(&mut Context<'_>)) {
        let waker = std::mem::ManuallyDrop::new(Waker::from(Arc::new(PanicsInDrop)));
        polled(&mut Context::from_waker(&waker));
        // SAFETY: the waker is not used again, and was not dropped.
        unsafe { Arc::decrement_strong_count(waker.data().cast::<PanicsInDrop>()) };
    }
    for_each_setup(|runtime| {
        let (mut ours, theirs) = socket(runtime);
        let (good, wakes) = counting();
        let mut good = Context::from_waker(&good);
        runtime.block_on(async {
            let mut timers = [1, 2].map(|_| Timer::after(Duration::from_secs(60)));
            for timer in &mut timers {
                with(|cx| assert!(Pin::new(timer).poll(cx).is_pending()));
            }
            let [cancelled, mut rearmed] = timers;
            drop(cancelled);
            assert!(Pin::new(&mut rearmed).poll(&mut good).is_pending());

            assert!(theirs.poll_readable(&mut good).is_pending());
            let mut waits = [theirs.readable(), theirs.readable()].map(Box::pin);
            for wait in &mut waits {
                with(|cx| assert!(wait.as_mut().poll(cx).is_pending()));
            }
            let [left, mut renewed] = waits;
            drop(left);
            assert!(renewed.as_mut().poll(&mut good).is_pending());

            // Dropped by the thread that fires the event.
            with(|cx| assert!(theirs.poll_readable(cx).is_pending()));
            // Dropped with its source.
            full(&theirs);
            let source = theirs.source();
            source.forget(Direction::Write, source.readiness());
            with(|cx| assert!(source.poll_ready(Direction::Write, cx).is_pending()));
        });
        ours.write_all(b"x").unwrap();
        eventually("the event is told", || wakes.load(SeqCst) >= 1);
        drop(theirs);
    });
}

/// A called waker is dropped soon, although its thread goes on. Fails if it is kept until the thread leaves:
/// `keep` in `become_leader_or_wait`.
#[test]
fn a_waker_that_was_called_is_let_go() {
    for_each_setup(|runtime| {
        let (mut ours, theirs) = socket(runtime);
        let kept = Arc::new(());
        let woken = Arc::new(AtomicUsize::new(0));
        let (inside, counter) = (kept.clone(), woken.clone());
        let waker = waker_that(move || {
            let _inside = &inside;
            counter.fetch_add(1, SeqCst);
        });
        assert!(theirs.poll_readable(&mut Context::from_waker(&waker)).is_pending());
        drop(waker);
        ours.write_all(b"x").unwrap();
        eventually("it is called", || woken.load(SeqCst) == 1);
        eventually("no reference is left", || Arc::strong_count(&kept) == 1);
    });
}

/// Wakes the task for which it was made; its drop calls a function with that task's waker.
struct Drops {
    root: Waker,
    on_drop: fn(&Waker),
    dropped: Arc<AtomicBool>,
}

impl Drops {
    fn waker(root: &Waker, dropped: &Arc<AtomicBool>, on_drop: fn(&Waker)) -> Waker {
        Waker::from(Arc::new(Self { root: root.clone(), on_drop, dropped: dropped.clone() }))
    }
}

impl Wake for Drops {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.root.wake_by_ref();
    }
}

impl Drop for Drops {
    fn drop(&mut self) {
        self.dropped.store(true, SeqCst);
        (self.on_drop)(&self.root);
    }
}

/// LF3: the last reference to a called waker is dropped by a thread that does not lead, because the drop may
/// wait.
#[test]
fn a_drop_may_nest_a_block_on() {
    // Only this thread leads here.
    let runtime = Runtime::builder().threads(1).build().unwrap();
    runtime.shutdown(SOON).unwrap();
    soon("it comes back", move || {
        let mut timer = Timer::never();
        let dropped = Arc::new(AtomicBool::new(false));
        let mut armed = false;
        runtime.block_on(poll_fn(move |cx| {
            if !std::mem::replace(&mut armed, true) {
                let waker = Drops::waker(cx.waker(), &dropped, |root| {
                    block_on(async { Timer::after(Duration::from_millis(1)).await });
                    root.wake_by_ref();
                });
                arm(&mut timer, Duration::from_millis(2), &waker);
            }
            if dropped.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        }));
    });
}

/// The same if the drop wakes its own thread's future, while another thread leads: the thread notices that
/// before it sleeps.
#[test]
fn a_drop_may_wake_its_thread() {
    soon("it comes back", || {
        let mut timer = Timer::never();
        let dropped = Arc::new(AtomicBool::new(false));
        let leads = Arc::new(AtomicBool::new(false));
        let mut armed = false;
        block_on(poll_fn(move |cx| {
            if !std::mem::replace(&mut armed, true) {
                let waker = Drops::waker(cx.waker(), &dropped, |root| root.wake_by_ref());
                arm(&mut timer, Duration::from_millis(20), &waker);
                return Poll::Pending;
            }
            if dropped.load(SeqCst) {
                return Poll::Ready(());
            }
            let leads = leads.clone();
            if !leads.load(SeqCst) {
                leads.store(true, SeqCst);
                let (sleeps, asleep) = AsleepThread::new();
                thread::spawn(move || {
                    block_on(async {
                        future::yield_now().await;
                        sleeps();
                        Timer::after(Duration::from_secs(3600)).await;
                    });
                });
                asleep.wait();
            }
            Poll::Pending
        }));
    });
}
