//! Crates that need tokio's runtime work wherever paceline runs user code.

use std::cell::RefCell;
use std::fs::File;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use paceline::{Executor, LocalExecutor, Runtime, block_on, spawn, unblock};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{EnterGuard, Handle};
use tokio::sync;
use tokio::time;

use crate::given_time::RecvSoon;
use crate::setups::{SOON, for_each_setup, is_child, text_of};

const MOMENT: Duration = Duration::from_millis(2);

/// Returns the name of the thread on which tokio runs a task spawned here.
async fn thread_of_tokio() -> String {
    tokio::spawn(async { thread::current().name().unwrap_or_default().to_owned() }).await.unwrap()
}

/// Uses features that need a context, on the hidden runtime.
pub async fn all_of_tokio() {
    let start = Instant::now();
    time::sleep(MOMENT).await;
    assert!(start.elapsed() >= MOMENT);
    time::timeout(MOMENT, std::future::pending::<()>()).await.expect_err("it takes longer");
    time::timeout(SOON, async {}).await.expect("it takes no time");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (tell, told) = sync::oneshot::channel();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        tell.send(all.len()).unwrap();
        stream.write_all(&all).await.unwrap();
    });
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(b"hello").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).await.unwrap();
    assert_eq!((&*back, told.await), (&b"hello"[..], Ok(5)));
    server.await.unwrap();

    assert_eq!(tokio::task::spawn_blocking(|| 6 * 7).await.unwrap(), 42);
    assert_eq!(thread_of_tokio().await, "paceline-tokio");
}

fn has_context() -> bool {
    Handle::try_current().is_ok()
}

#[test]
fn a_block_on_has_a_context_and_leaves_it() {
    assert!(!has_context());
    block_on(all_of_tokio());
    assert!(!has_context());
    block_on(async {
        // Nested, and beside a `block_on` that waits below.
        block_on(all_of_tokio());
        all_of_tokio().await;
    });
    let text = catch_unwind(AssertUnwindSafe(|| block_on(async { panic!("on purpose") }))).unwrap_err();
    assert_eq!(text_of(&*text), "on purpose");
    assert!(!has_context());
}

/// Fails without the hook in `Stay`.
#[test]
fn tasks_have_a_context_in_every_set_up() {
    for_each_setup(|runtime| {
        runtime.block_on(async {
            runtime.spawn(all_of_tokio()).await;
            runtime.spawn(async { block_on(all_of_tokio()) }).await;
            all_of_tokio().await;
        });
    });
    block_on(spawn(all_of_tokio()));
}

/// Fails without the hook in `blocking_threads`: the default instance's threads are outside of any pool.
#[test]
fn what_blocks_has_a_context() {
    block_on(async {
        unblock(|| Handle::current().block_on(all_of_tokio())).await;
        unblock(|| block_on(all_of_tokio())).await;
    });
    let runtime = Runtime::builder().threads(1).build().unwrap();
    runtime.block_on(async { unblock(|| Handle::current().block_on(all_of_tokio())).await });
}

#[test]
fn executors_have_a_context_in_our_block_on() {
    let local = LocalExecutor::new();
    block_on(local.run(local.spawn(all_of_tokio())));
    let executor = Executor::new();
    block_on(executor.run(executor.spawn(all_of_tokio())));
    // In another library's `block_on`, the program enters the context itself.
    let _context = paceline::tokio_context::handle().enter();
    futures_lite::future::block_on(executor.run(executor.spawn(all_of_tokio())));
}

/// Destructors of cancelled futures have a context, too, on every thread: connection pools return their
/// connections there.
#[test]
fn hooks_and_destructors_have_a_context() {
    struct Tells(mpsc::Sender<(&'static str, bool)>, &'static str);
    impl Drop for Tells {
        fn drop(&mut self) {
            let _ = self.0.send((self.1, has_context()));
        }
    }
    let (tell, told) = mpsc::channel();
    let tells = |what| Tells(tell.clone(), what);
    let hook = tell.clone();
    let runtime = Runtime::builder().threads(2).on_thread_start(move || drop(Tells(hook.clone(), "hook")));
    let runtime = runtime.build().unwrap();
    let (began, begun) = mpsc::channel();
    let (first, second) = (tells("task that waits"), tells("task that is not run"));
    runtime
        .spawn(async move {
            began.send(()).unwrap();
            std::future::pending::<()>().await;
            drop(first);
        })
        .detach();
    begun.recv_soon().unwrap();
    runtime.shutdown(SOON).unwrap();
    runtime.spawn(async move { drop(second) }).detach();
    drop((tell, runtime));
    let all: Vec<_> = told.iter().collect();
    assert!(all.iter().all(|(_, has)| *has), "{all:?}");
    assert!(
        ["hook", "task that waits", "task that is not run"].iter().all(|what| all.contains(&(what, true))),
        "{all:?}"
    );
}

/// Tasks given to `tokio::spawn` are not cancelled at the end of a runtime, and the hidden runtime does not
/// end either.
#[test]
fn the_hidden_runtime_outlives_all_others() {
    let (tell, told) = mpsc::channel();
    let runtime = Runtime::builder().threads(1).build().unwrap();
    let (go, gone) = sync::oneshot::channel::<()>();
    runtime.block_on(runtime.spawn(async move {
        tokio::spawn(async move {
            gone.await.unwrap();
            time::sleep(MOMENT).await;
            tell.send("it ran on").unwrap();
        });
    }));
    runtime.shutdown(SOON).unwrap();
    runtime.block_on(all_of_tokio());
    drop(runtime);
    go.send(()).unwrap();
    assert_eq!(told.recv_soon(), Ok("it ran on"));
    block_on(all_of_tokio());
}

/// As in a program with `#[tokio::main]` that calls a library built on paceline.
#[test]
fn inside_of_another_tokio_runtime_that_one_stays() {
    let other = tokio::runtime::Builder::new_multi_thread();
    let other = { other }.worker_threads(2).thread_name("other").enable_all().build().unwrap();
    other.block_on(async {
        let in_block_on = || {
            block_on(async {
                time::sleep(MOMENT).await;
                assert_eq!(thread_of_tokio().await, "other");
                // Nested, too; but paceline's own threads are in the hidden runtime.
                assert_eq!(block_on(thread_of_tokio()), "other");
                assert_eq!(spawn(thread_of_tokio()).await, "paceline-tokio");
                spawn(all_of_tokio()).await;
            });
        };
        in_block_on();
        // A worker of tokio needs `block_in_place` before it blocks, as always.
        tokio::spawn(async move { tokio::task::block_in_place(in_block_on) }).await.unwrap();
        // In tokio's tasks, paceline's tasks are plain futures.
        assert_eq!(spawn(async { 5 }).await, 5);
    });
    // A runtime that is entered within a `block_on` of paceline, for as long as it is entered.
    block_on(async {
        {
            let _other = other.enter();
            assert_eq!(block_on(thread_of_tokio()), "other");
        }
        assert_eq!(thread_of_tokio().await, "paceline-tokio");
        unblock(move || {
            other.block_on(async { block_on(async { assert_eq!(thread_of_tokio().await, "other") }) })
        })
        .await;
    });
}

/// Futures without tokio work all the same; the next use tries again.
#[test]
fn without_descriptors_there_is_none_until_there_are_some() {
    if is_child("context::without_descriptors_there_is_none_until_there_are_some", "ulimit -n 64") {
        let mut taken = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            taken.push(file);
        }
        assert!(!block_on(async { has_context() }));
        drop(taken);
        block_on(all_of_tokio());
    }
}

/// `TOKIO_WORKER_THREADS` is read as by tokio: two tasks wait for one another's threads.
#[test]
fn the_hidden_runtime_has_as_many_threads_as_tokio_is_told() {
    let test = "context::the_hidden_runtime_has_as_many_threads_as_tokio_is_told";
    if is_child(test, "export TOKIO_WORKER_THREADS=2") {
        block_on(async {
            let [first, second] = [(); 2].map(|()| mpsc::sync_channel::<()>(1));
            let meets = |tell: mpsc::SyncSender<()>, told: mpsc::Receiver<()>| {
                tokio::spawn(async move { (tell.send(()).is_ok(), told.recv_soon().is_ok()) })
            };
            let (one, other) = (meets(first.0, second.1), meets(second.0, first.1));
            assert_eq!((one.await.unwrap(), other.await.unwrap()), ((true, true), (true, true)));
        });
    }
}

/// A task that blocks a thread of the hidden runtime has another thread take over. Without that, the thread
/// that waits for the sleep is the only one that could end it, and no task of tokio's runs any more.
#[test]
fn a_block_on_in_a_task_of_tokio_s_blocks_no_other_task() {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        block_on(async {
            let nested = || block_on(time::sleep(Duration::from_millis(1)));
            tokio::spawn(async move { nested() }).await.unwrap();
            time::sleep(Duration::from_millis(1)).await;
        });
        tell.send(()).unwrap();
    });
    told.recv_soon().expect("both sleeps end");
}

/// On threads of `spawn_blocking`, in any runtime or set of tasks. Fails if `block_in_place` is used on all
/// threads of the hidden runtime: it panics in a current-thread runtime, and in a `LocalSet`.
#[test]
fn a_block_on_on_a_thread_for_spawn_blocking_waits_in_any_runtime() {
    fn current_thread() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }
    let on_thread = |f: fn()| async move { tokio::task::spawn_blocking(f).await.unwrap() };
    block_on(async {
        on_thread(|| block_on(all_of_tokio())).await;
        on_thread(|| current_thread().block_on(async { assert_eq!(block_on(spawn(async { 1 })), 1) })).await;
        on_thread(|| {
            let runtime = current_thread();
            runtime.block_on(tokio::task::LocalSet::new().run_until(async {
                tokio::task::spawn_local(async { assert_eq!(block_on(spawn(async { 2 })), 2) })
                    .await
                    .unwrap();
            }));
        })
        .await;
        on_thread(|| {
            let set = tokio::task::LocalSet::new();
            Handle::current().block_on(set.run_until(async {
                tokio::task::spawn_local(async { block_on(all_of_tokio()) }).await.unwrap();
            }));
        })
        .await;
    });
}

/// On a worker of the hidden runtime that gave its place to another thread. Fails if a worker counts as the
/// hidden runtime's although it is in another runtime.
#[test]
fn a_block_on_in_a_runtime_inside_of_a_task_of_tokio_s_waits() {
    let task = async {
        tokio::task::block_in_place(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async { assert_eq!(block_on(spawn(async { 1 })), 1) });
            let set = tokio::task::LocalSet::new();
            Handle::current().block_on(set.run_until(async { block_on(all_of_tokio()) }));
        });
        block_on(all_of_tokio());
    };
    block_on(async { tokio::spawn(task).await.unwrap() });
}

/// A hook enters a runtime of the program on each worker, for good. Fails if the workers leave the hidden
/// runtime at their end.
#[test]
fn a_hook_may_enter_another_runtime_and_stay() {
    thread_local! {
        static GUARD: RefCell<Option<EnterGuard<'static>>> = const { RefCell::new(None) };
    }
    if !is_child("context::a_hook_may_enter_another_runtime_and_stay", ":") {
        return;
    }
    // Counts panics of any thread.
    panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        process::abort();
    }));
    let mine = tokio::runtime::Builder::new_multi_thread();
    let mine = { mine }.worker_threads(1).thread_name("mine").enable_all().build().unwrap();
    let mine: &'static _ = Box::leak(Box::new(mine));
    let runtime =
        Runtime::builder().threads(2).on_thread_start(move || GUARD.set(Some(mine.enter()))).build().unwrap();
    assert_eq!(runtime.block_on(runtime.spawn(thread_of_tokio())), "mine");
    assert!(runtime.shutdown(SOON).is_ok());
    drop(runtime);
}
