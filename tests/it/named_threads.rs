//! A closure of the program names the threads of a runtime: it may use that runtime, block, or panic.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use paceline::{Handle, Runtime};

use crate::given_time::RecvSoon;
use crate::setups::{Latch, OpenOnDrop, Ping, for_each_builder};

/// Does what a closure may do with the runtime that it names threads for.
fn use_it(handle: &Handle) {
    handle.spawn(async {}).detach();
    drop((handle.metrics(), format!("{:?}", Handle::all())));
}

/// Fails if the closure is called while the lock of those that start workers is held.
#[test]
fn the_closure_may_use_the_runtime_that_is_being_built() {
    for_each_builder(|setup| {
        let (tell, told) = mpsc::channel();
        let (tell, told) = (Mutex::new(tell), Mutex::new(told));
        let builder = setup.builder().threads(2);
        let builder = builder.on_thread_start(move || tell.lock().unwrap().send(Handle::current()).unwrap());
        let builder = builder.thread_names(move |number| {
            if number == 2 {
                use_it(&told.lock().unwrap().recv_soon().unwrap());
            }
            format!("named {number}")
        });
        let runtime = builder.build().unwrap();
        let name = runtime.spawn(async { thread::current().name().unwrap().to_owned() });
        assert!(runtime.block_on(name).starts_with("named "));
    });
}

/// The names of the threads that call the closure, by the number of the thread that it names.
type Callers = Arc<Mutex<HashMap<usize, String>>>;

/// Builds a runtime with one worker, and a closure that names its threads, which calls `second` for the
/// second worker. Blocks the first worker, and returns the latch that ends that.
fn with_a_blocked_worker(
    builder: paceline::Builder,
    second: impl Fn(&Handle) + Send + Sync + 'static,
) -> (Arc<Runtime>, OpenOnDrop, Callers) {
    let (called_by, handle) =
        (Arc::<Mutex<HashMap<_, _>>>::default(), Arc::<Mutex<Option<Handle>>>::default());
    let (callers, known) = (called_by.clone(), handle.clone());
    let builder = builder.threads(1).max_threads(8).thread_names(move |number| {
        callers.lock().unwrap().insert(number, thread::current().name().unwrap_or_default().to_owned());
        let handle = known.lock().unwrap().clone();
        if let (2, Some(handle)) = (number, handle) {
            second(&handle);
        }
        format!("named {number}")
    });
    let runtime = Arc::new(builder.build().unwrap());
    *handle.lock().unwrap() = Some(runtime.handle());
    let (latch, (blocks, is_blocking)) = (Latch::new(), mpsc::channel());
    let free = OpenOnDrop(latch.clone());
    runtime
        .spawn(async move {
            blocks.send(()).unwrap();
            latch.wait();
        })
        .detach();
    is_blocking.recv_soon().unwrap();
    (runtime, free, called_by)
}

/// Fails if the deputy calls the closure.
#[test]
fn the_closure_may_use_the_runtime_when_a_worker_is_added() {
    for_each_builder(|setup| {
        let (runtime, _free, called_by) = with_a_blocked_worker(setup.builder(), use_it);
        let name = runtime.spawn(async { thread::current().name().unwrap().to_owned() });
        assert!(runtime.block_on(name).starts_with("named "));
        let called_by = called_by.lock().unwrap();
        assert!(called_by.len() > 1, "a worker was added");
        assert!(called_by.values().all(|thread| !thread.contains("deputy")), "{called_by:?}");
    });
}

/// A thread that gets no name from the closure has one of the runtime's, and is lost to no one.
#[test]
fn a_closure_that_panics_or_gives_no_proper_name_costs_no_thread() {
    for_each_builder(|setup| {
        let panics = |_: &Handle| panic!("on purpose, in a closure for names");
        let (runtime, free, _) = with_a_blocked_worker(setup.builder(), panics);
        let mut ping = Ping::new(&runtime);
        ping.ping();
        drop(free);
        drop(ping);
        let improper = setup.builder().threads(2).thread_names(|_| "no\0name".into()).build().unwrap();
        let name = improper.spawn(async { thread::current().name().unwrap().to_owned() });
        assert!(improper.block_on(name).starts_with("worker-"));
    });
}
