//! Properties that the program sees only where paceline is in the place of tokio, and ends of a runtime that
//! tokio's own tests do not reach.
#![cfg(not(miri))]

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::{self, spawn_blocking};
use tokio::time;

fn runtime(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap()
}

fn both() -> [Runtime; 2] {
    [runtime(2), Builder::new_current_thread().enable_all().build().unwrap()]
}

fn thread_name() -> Option<String> {
    thread::current().name().map(String::from)
}

/// Six tasks meet at a barrier that blocks their threads. With the real tokio this test does not end.
#[test]
fn tasks_that_block_have_more_threads_than_workers() {
    let runtime = runtime(2);
    let barrier = Arc::new(Barrier::new(6));
    runtime.block_on(async {
        let waits = || {
            let barrier = barrier.clone();
            tokio::spawn(async move { barrier.wait().is_leader() })
        };
        let tasks: Vec<_> = (0..6).map(|_| waits()).collect();
        let mut leaders = 0;
        for task in tasks {
            leaders += u32::from(task.await.unwrap());
        }
        assert_eq!(leaders, 1);
    });
}

/// The handle of paceline in a task is that of the task's runtime, and lists its tasks.
#[test]
fn a_task_runs_in_a_runtime_of_paceline() {
    for runtime in both() {
        let stays = runtime.spawn(pending::<()>());
        let listed =
            || paceline::Handle::current().tasks().groups.iter().map(|group| group.number).sum::<usize>();
        let inside = runtime.block_on(runtime.spawn(async move { listed() })).unwrap();
        // The task that asks is one of them.
        assert_eq!(inside, 2);
        stays.abort();
    }
}

#[test]
fn threads_have_the_names_that_tokio_gives_them() {
    let runtime = runtime(1);
    let worker = runtime.block_on(runtime.spawn(async { thread_name() })).unwrap();
    let blocking = runtime.block_on(runtime.spawn_blocking(thread_name)).unwrap();
    assert_eq!([worker, blocking].map(Option::unwrap), ["tokio-rt-worker"; 2]);
    // The thread that calls `block_on` keeps its name.
    assert_eq!(runtime.block_on(async { thread_name() }), thread_name());
}

/// The runtime is dropped on one of its own threads, which must not wait for itself.
#[test]
fn a_task_ends_its_own_runtime_in_the_background() {
    let (runtime, (done, is_done)) = (runtime(2), mpsc::channel());
    let handle = runtime.handle().clone();
    let other = handle.spawn(pending::<()>());
    handle.spawn(async move {
        runtime.shutdown_background();
        // The poll goes on to its end.
        done.send(thread_name()).unwrap();
    });
    assert_eq!(is_done.recv().unwrap().unwrap(), "tokio-rt-worker");
    let error = both()[1].block_on(other).unwrap_err();
    assert!(error.is_cancelled(), "{error}");
}

/// A closure that blocks outlives the runtime, and nothing waits for it.
#[test]
fn an_end_in_the_background_waits_for_no_closure() {
    for runtime in both() {
        let ((goes_on, waits), (started, has_started)) = (mpsc::channel(), mpsc::channel());
        let closure = runtime.spawn_blocking(move || {
            started.send(()).unwrap();
            waits.recv().unwrap()
        });
        has_started.recv().unwrap();
        runtime.shutdown_background();
        goes_on.send(7).unwrap();
        assert_eq!(both()[1].block_on(closure).unwrap(), 7);
    }
}

#[test]
fn a_handle_whose_runtime_is_gone_cancels_and_does_not_hang() {
    for runtime in both() {
        let handle = runtime.handle().clone();
        drop(runtime);
        let errors = [
            both()[1].block_on(handle.spawn(async {})).unwrap_err(),
            both()[1].block_on(handle.spawn_blocking(|| ())).unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.is_cancelled()), "{errors:?}");
        // A future that needs no runtime still works, and one that needs it has an error.
        assert_eq!(handle.block_on(async { 7 }), 7);
        assert!(handle.block_on(TcpListener::bind("127.0.0.1:0")).is_err());
        let _entered = handle.enter();
        assert_eq!(Handle::current().id(), handle.id());
    }
}

/// Sockets and timers of several runtimes, whose tasks are joined from one another.
#[test]
fn a_task_of_one_runtime_serves_a_task_of_another() {
    let [threads, current] = both();
    let (told, address) = oneshot::channel();
    let server = threads.spawn(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let _ = told.send(listener.local_addr()?);
        let (stream, _) = listener.accept().await?;
        time::sleep(Duration::from_millis(1)).await;
        stream.writable().await?;
        stream.try_write(b"hello")
    });
    let said = current.block_on(async {
        let stream = TcpStream::connect(address.await.unwrap()).await.unwrap();
        let mut buffer = [0; 5];
        tokio::io::AsyncReadExt::read_exact(&mut { stream }, &mut buffer).await.unwrap();
        server.await.unwrap().unwrap();
        buffer
    });
    assert_eq!(&said, b"hello");
}

/// Each attribute and each way to block names a runtime of its own.
#[test]
fn each_block_on_has_its_own_runtime() {
    #[tokio::main(flavor = "current_thread")]
    async fn main() -> tokio::runtime::Id {
        let inside = spawn_blocking(|| Handle::current().id()).await.unwrap();
        assert_eq!(inside, Handle::current().id());
        task::yield_now().await;
        inside
    }
    let ids: BTreeSet<_> = (0..3).map(|_| main().to_string()).collect();
    assert_eq!(ids.len(), 3);
}
