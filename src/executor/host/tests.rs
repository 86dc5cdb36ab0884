//! Tests of a host on its own thread: which runners it hosts, where woken tasks go, and which tasks are
//! handed over.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Poll, Wake};

use async_task::{ScheduleInfo, WithInfo};

use super::*;

/// Counts how often it is called.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Calls {
    fn count(&self) -> usize {
        self.0.load(Relaxed)
    }

    fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.add();
    }
}

#[derive(Default)]
struct Place {
    runners: Runners,
    hosts: Calls,
    forgets: Calls,
    forgot_the_last: Calls,
    covers: Calls,
}

impl Surroundings for Place {
    fn runners(&self) -> &Runners {
        &self.runners
    }

    fn start_watch_as_host(&self) {
        self.hosts.add();
    }

    fn end_hosting(&self, _: &Runner, last: bool) {
        self.forgets.add();
        if last {
            self.forgot_the_last.add();
        }
    }

    fn cover(&self, _: Caught) {
        self.covers.add();
    }
}

/// A `block_on` on this thread, and its surroundings. Its guard comes first: it is dropped first.
struct Scene {
    _guard: HostGuard,
    place: Arc<Place>,
    root: Waker,
}

impl Scene {
    /// Begins a `block_on` that no deputy watches yet.
    fn new() -> Self {
        let place = Arc::<Place>::default();
        let root = Waker::from(Arc::<Calls>::default());
        let _guard = HostGuard::enter(root.data(), Some(&*place));
        here(|host| host.woken.take());
        Self { _guard, place, root }
    }

    /// Begins a `block_on` that a deputy watches.
    fn watched() -> Self {
        let scene = Self::new();
        here(Host::set_watched);
        scene
    }

    /// Adds a hosted runner of this executor. Returns it, and the counter of its sleeper's wakes.
    fn hosted(&self, state: &StateRef, waker: &Waker) -> (Hosted, Arc<Calls>) {
        let (hosted, calls) =
            (Hosted { state: state.clone(), runner: state.join() }, Arc::<Calls>::default());
        assert!(here(|host| host.adopt(state, &hosted.runner, waker)));
        hosted.runner.sleeper.set_waker(&calls.clone().into(), true);
        assert!(hosted.runner.orders.take_root());
        (hosted, calls)
    }

    fn count(&self) -> usize {
        self.place.runners.lock().len()
    }
}

fn task() -> Runnable {
    let (runnable, task) = async_task::spawn(async {}, |_| unreachable!("it does not wait"));
    task.detach();
    runnable
}

/// Returns how many tasks are in the runner's slot, in its ring, and in the injector.
fn tasks(hosted: &Hosted) -> (usize, usize, usize) {
    let Hosted { state, runner } = hosted;
    (usize::from(!runner.slot.is_empty()), runner.ring.len(), state.queued())
}

/// Wakes a task on this thread; the task wakes itself if `while_running`.
fn wakes(state: &StateRef, while_running: bool) {
    let mut by_itself = while_running;
    let future = std::future::poll_fn(move |cx| {
        if !std::mem::take(&mut by_itself) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    });
    // A task in its own executor's injector would keep that for ever.
    let state = state.itself.clone();
    let wake = move |task: Runnable, info: ScheduleInfo| {
        schedule(&state.upgrade().expect("it is there"), task, info.woken_while_running)
    };
    let (runnable, task) = async_task::spawn(future, WithInfo(wake));
    task.detach();
    if while_running {
        runnable.run();
    } else {
        runnable.schedule();
    }
}

/// Begins a poll of `runner` on this thread, and returns what [`polled`] needs to end it.
fn polls(runner: &Runner) -> *const Runner {
    here(|host| host.running.replace(runner))
}

fn polled(before: *const Runner) {
    here(|host| host.running.set(before));
}

fn is_woken() -> bool {
    here(|host| host.woken.get())
}

#[test]
fn a_host_remembers_what_it_was_told_and_a_nested_one_knows_nothing_of_it() {
    let outside = place();
    let scene = Scene::new();
    here(|host| {
        assert_eq!(host.budget(), BUDGET_ALONE);
        host.events_wait.set(true);
        assert_eq!(host.budget(), BUDGET_BETWEEN_EVENTS);
        assert!(!host.woken.replace(true) && host.woken.get());
        assert!(host.woken.take() && !host.woken.get());
    });
    assert_eq!(place(), (outside.0, outside.1 + 1));
    let runner = StateRef::shared().join();
    let poll = polls(&runner);
    {
        let nested = Scene::new();
        assert!(here(|host| host.running().is_none()) && here(Host::budget) == BUDGET_ALONE);
        assert!(wake_root_on_top(nested.root.data()) && is_woken());
        assert!(!wake_root_on_top(scene.root.data()) && !is_awaited_on_top(&scene.root));
        assert_eq!(place(), (outside.0, outside.1 + 2));
    }
    assert!(!is_woken() && is_awaited_on_top(&scene.root) && here(Host::budget) == BUDGET_BETWEEN_EVENTS);
    with_running(|running| assert!(running.is_some_and(|running| ptr::eq(running, &*runner))));
    polled(poll);
    drop(scene);
    assert_eq!(place(), outside);
    assert!(!is_awaited_on_top(Waker::noop()));
}

#[test]
fn a_host_adopts_what_it_polls_itself_and_each_once() {
    let (scene, state) = (Scene::new(), StateRef::shared());
    let adopts = |runner: &Arc<Runner>, waker: &Waker| here(|host| host.adopt(&state, runner, waker));
    let stranger = Waker::from(Arc::<Calls>::default());
    let runner = state.join();
    assert!(!adopts(&runner, &stranger));
    let visit = HostGuard::enter(ptr::null(), None);
    assert!(!adopts(&runner, &scene.root) && !adopts(&runner, Waker::noop()));
    drop(visit);
    assert_eq!((scene.count(), scene.place.hosts.count()), (0, 0));
    let (outer, _) = scene.hosted(&state, &scene.root);
    assert!(adopts(&outer.runner, &scene.root));
    assert_eq!((scene.count(), scene.place.hosts.count()), (1, 1));
    let (inner, _) = scene.hosted(&state, &outer.runner.clone().into());
    assert_eq!((scene.count(), scene.place.hosts.count()), (2, 2));
    assert!(outer.runner.is_root.is_set() && !inner.runner.is_root.is_set());
}

/// Another library polls a runner on this thread, and a task of it calls `block_on`.
#[test]
fn a_poll_that_is_in_no_block_on_goes_on_after_one() {
    let runner = StateRef::shared().join();
    let before = polls(&runner);
    drop(Scene::new());
    with_running(|running| assert!(running.is_some_and(|running| ptr::eq(running, &*runner))));
    polled(before);
}

#[test]
fn what_a_running_task_wakes_goes_into_the_slot_and_then_into_the_ring() {
    let (scene, state) = (Scene::new(), StateRef::shared());
    let (hosted, _) = scene.hosted(&state, &scene.root);
    let visit = HostGuard::enter(ptr::null(), None);
    wakes(&state, false);
    assert_eq!(tasks(&hosted), (0, 0, 1), "the host is not on top");
    drop(visit);
    wakes(&state, false);
    assert_eq!(tasks(&hosted), (0, 0, 2), "it is not watched");
    here(Host::set_watched);
    let poll = polls(&hosted.runner);
    with_running(|runner| assert!(runner.is_some_and(|runner| ptr::eq(runner, &*hosted.runner))));
    wakes(&state, true);
    assert_eq!(tasks(&hosted), (0, 1, 2), "it woke itself");
    wakes(&state, false);
    assert_eq!(tasks(&hosted), (1, 1, 2));
    wakes(&state, false);
    assert_eq!(tasks(&hosted), (1, 2, 2));
    let other = StateRef::shared();
    wakes(&other, false);
    assert_eq!((tasks(&hosted), other.queued()), ((1, 2, 2), 1), "that executor has no runner here");
    polled(poll);
    assert!(!is_woken());
}

/// Fails if a task that comes after the end of its runtime is dropped where it is woken, perhaps under a lock
/// that its future takes.
#[test]
fn what_is_woken_after_the_end_is_dropped_on_another_thread() {
    struct TellsThread(std::sync::mpsc::Sender<std::thread::ThreadId>);
    impl Drop for TellsThread {
        fn drop(&mut self) {
            self.0.send(std::thread::current().id()).unwrap();
        }
    }
    let state = StateRef::shared();
    state.cancel_to_the_last();
    let (tell, told) = std::sync::mpsc::channel();
    let tells = TellsThread(tell);
    let (runnable, task) = async_task::spawn(async move { drop(tells) }, |_| unreachable!("it is cancelled"));
    schedule(&state, runnable, false);
    assert_ne!(told.recv(), Ok(std::thread::current().id()));
    assert_eq!(futures_lite::future::block_on(task.fallible()), None);
}

#[test]
fn what_an_event_wakes_goes_to_the_runner_that_is_hosted_here_and_has_it_polled() {
    let (scene, state, other) = (Scene::watched(), StateRef::shared(), StateRef::shared());
    let (outer, calls_outer) = scene.hosted(&state, &scene.root);
    here(|host| host.start_poll(&outer.runner));
    wakes(&state, false);
    let was_woken = || here(|host| host.woken.take());
    assert_eq!((tasks(&outer), calls_outer.count(), was_woken()), ((1, 0, 0), 0, true));

    let (inner, calls_inner) = scene.hosted(&other, &outer.runner.clone().into());
    // A task of another executor than that of the runner polled last.
    wakes(&other, false);
    assert_eq!((tasks(&inner), calls_inner.count(), is_woken()), ((1, 0, 0), 1, false));
    inner.runner.orders.set_left();
    wakes(&other, false);
    assert_eq!((tasks(&inner), calls_inner.count()), ((1, 0, 1), 1));
    outer.runner.orders.set_left();
    wakes(&state, false);
    assert_eq!((tasks(&outer), is_woken()), ((1, 0, 1), false));
    wakes(&StateRef::shared(), false);
}

#[test]
fn a_runner_that_has_left_is_removed_and_its_tasks_are_for_others() {
    let (scene, state) = (Scene::watched(), StateRef::shared());
    let [(first, _), (second, _), (third, _), (fourth, _)] =
        [(); 4].map(|()| scene.hosted(&state, &scene.root));
    for Hosted { runner, .. } in [&first, &second, &third, &fourth] {
        runner.slot.put(task()).unwrap();
    }
    first.runner.orders.set_left();
    here(Host::forget_left);
    assert_eq!(scene.count(), 4, "it was not found yet");
    assert!(!here(Host::enter_lines) && here(|host| host.woken.take()));
    here(Host::leave_lines);
    here(Host::forget_left);
    assert_eq!((scene.count(), tasks(&first)), (3, (0, 0, 1)));
    assert_eq!(here(|host| host.last.get()), Arc::as_ptr(&second.runner));

    let address = here(Host::address);
    forget(address, &second);
    assert_eq!((scene.count(), tasks(&second)), (2, (0, 0, 2)));
    let nested = Scene::new();
    forget(address, &third);
    assert_eq!((tasks(&third), third.runner.orders.has_left()), ((1, 0, 2), true), "its host removes it");
    drop(nested);
    assert_eq!(scene.count(), 2);
    let place = scene.place.clone();
    drop(scene);
    assert_eq!((place.runners.lock().len(), tasks(&fourth)), (0, (0, 0, 4)));
    assert_eq!((place.forgets.count(), place.forgot_the_last.count()), (4, 1));

    let unhosted = Hosted { state: state.clone(), runner: state.join() };
    forget(0, &unhosted);
    assert!(unhosted.runner.orders.has_left());
}

#[test]
fn a_stranger_on_top_leaves_the_tasks_below_to_others() {
    let (scene, state) = (Scene::watched(), StateRef::shared());
    let (hosted, _) = scene.hosted(&state, &scene.root);
    let of_task = Waker::from(Arc::<Calls>::default());
    hosted.runner.poll.begin(NonNull::new(of_task.data().cast_mut()).unwrap());
    hosted.runner.slot.put(task()).unwrap();
    let poll = polls(&hosted.runner);
    for ours in [&of_task, &scene.root, &hosted.runner.clone().into()] {
        hand_over_under_stranger(ours);
        assert_eq!((tasks(&hosted), here(|host| host.keeps_tasks.get())), ((1, 0, 0), true));
    }
    hand_over_under_stranger(&Waker::from(Arc::<Calls>::default()));
    assert_eq!((tasks(&hosted), here(|host| host.keeps_tasks.get())), ((0, 0, 1), false));
    polled(poll);
    here(|host| host.start_poll(&hosted.runner));
    assert!(here(|host| host.keeps_tasks.get()), "it is polled again");
}

#[test]
fn a_host_rests_only_if_none_of_its_runners_has_tasks() {
    let (scene, state, other) = (Scene::new(), StateRef::shared(), StateRef::shared());
    let in_lines = || (state.idle.waiting().len(), other.idle.waiting().len());
    assert!(here(Host::enter_lines), "there is no runner");
    let (idle, calls) = scene.hosted(&state, &scene.root);
    let (laden, _) = scene.hosted(&other, &scene.root);
    assert!(here(Host::enter_lines) && !is_woken());
    assert_eq!(in_lines(), (1, 1));
    here(Host::leave_lines);
    assert_eq!(in_lines(), (0, 0));
    laden.runner.slot.put(task()).unwrap();
    assert!(!here(Host::enter_lines));
    here(Host::leave_lines);
    assert_eq!((in_lines(), calls.count(), is_woken()), ((0, 0), 0, true));
    assert!(!idle.runner.in_line.is_set());
}

/// A wake is a system call, or starts a thread, and the deputy takes the lock at each look.
#[test]
fn a_host_that_leaves_its_tasks_to_others_wakes_them_without_its_lock() {
    struct Looks(Arc<Place>, Calls);
    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            assert!(self.0.runners.0.try_lock().is_ok(), "the lock is held");
            self.1.add();
        }
    }
    let (scene, state) = (Scene::new(), StateRef::shared());
    let (laden, _) = scene.hosted(&state, &scene.root);
    let other = state.join();
    let looks = Arc::new(Looks(scene.place.clone(), Calls::default()));
    other.sleeper.set_waker(&looks.clone().into(), true);
    assert!(other.orders.take_root());
    assert_eq!(state.enter_line(&other), BeforeSleep::Sleeps);
    laden.runner.slot.put(task()).unwrap();
    // Asked for before, in vain.
    laden.runner.requested.set(true);
    assert!(here(Host::enter_lines));
    assert_eq!((tasks(&laden), looks.1.count()), ((0, 0, 1), 1));
    assert!(state.leave_line(&other));
}

#[test]
fn a_task_that_is_run_by_hand_is_of_no_runner() {
    let (scene, state) = (Scene::watched(), StateRef::shared());
    let (hosted, _) = scene.hosted(&state, &scene.root);
    let poll = polls(&hosted.runner);
    let seen = Arc::<Calls>::default();
    let look = seen.clone();
    let look = async move {
        with_running(|runner| {
            if runner.is_none() {
                look.add()
            }
        })
    };
    let (beside, handle) = async_task::spawn(look, |_| unreachable!("it does not wait"));
    handle.detach();
    run_beside(beside);
    assert_eq!(seen.count(), 1);
    with_running(|runner| assert!(runner.is_some(), "what ran before runs again"));
    polled(poll);
    cover(Caught::Blocking);
    assert_eq!(scene.place.covers.count(), 1);
}
