//! Properties that the program sees only where paceline is in the place of tokio, and ends of a runtime that
//! tokio's own tests do not reach.
#![cfg(not(miri))]

use std::collections::BTreeSet;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt, stdout};
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

/// The only thread has a closure that goes on when the runtime has ended, and others wait for the thread. All
/// of them run, as with the real tokio.
#[test]
fn closures_that_wait_for_a_thread_run_after_the_end() {
    let ends: [fn(Runtime); 2] =
        [Runtime::shutdown_background, |runtime| runtime.shutdown_timeout(Duration::from_millis(1))];
    for mut builder in [Builder::new_multi_thread(), Builder::new_current_thread()] {
        for end in ends {
            let runtime = builder.worker_threads(1).max_blocking_threads(1).build().unwrap();
            let (goes_on, waits) = mpsc::channel();
            let first = runtime.spawn_blocking(move || waits.recv().unwrap());
            let others: Vec<_> = (1..5).map(|number| runtime.spawn_blocking(move || number)).collect();
            let aborted = runtime.spawn_blocking(|| ());
            aborted.abort();
            end(runtime);
            goes_on.send(0).unwrap();
            let mut ran = Vec::new();
            both()[1].block_on(async {
                ran.push(first.await.unwrap());
                for other in others {
                    ran.push(other.await.unwrap());
                }
                assert!(aborted.await.unwrap_err().is_cancelled());
            });
            assert_eq!(ran, [0, 1, 2, 3, 4]);
        }
    }
}

/// A task's destructor spawns a closure when the runtime ends, and the drop of the runtime waits for that.
#[test]
fn a_closure_that_a_destructor_spawns_at_the_end_runs() {
    struct Spawns(mpsc::Sender<usize>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            let tell = self.0.clone();
            spawn_blocking(move || tell.send(7).unwrap());
        }
    }
    for runtime in both() {
        let (tell, told) = mpsc::channel();
        let spawns = Spawns(tell);
        runtime.spawn(async move {
            let _spawns = spawns;
            pending::<()>().await;
        });
        drop(runtime);
        assert_eq!(told.try_recv(), Ok(7));
    }
}

/// A drop waits for them.
#[test]
fn a_drop_waits_for_closures_that_wait_for_a_thread() {
    let runtime = Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
    let has_ended = runtime.spawn(pending::<()>());
    let ran = Arc::new(AtomicUsize::new(0));
    runtime.spawn_blocking(move || {
        while !has_ended.is_finished() {
            thread::yield_now();
        }
    });
    for _ in 0..4 {
        let counts = ran.clone();
        runtime.spawn_blocking(move || counts.fetch_add(1, Ordering::SeqCst));
    }
    drop(runtime);
    assert_eq!(ran.load(Ordering::SeqCst), 4);
}

/// A panic of the function that makes them is one of `build`. Later, the function may be called for a worker
/// that is added, by another thread.
#[test]
fn the_builder_makes_the_names_of_the_workers() {
    let (here, calls) = (thread::current().id(), Arc::new(Mutex::new(Vec::new())));
    let notes = calls.clone();
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).thread_name_fn(move || {
        let mut calls = notes.lock().unwrap();
        calls.push(thread::current().id());
        assert!(calls.iter().filter(|caller| **caller == here).count() < 3, "there are enough");
        "named".into()
    });
    let runtime = builder.build().unwrap();
    assert_eq!(runtime.block_on(runtime.spawn(async { thread_name() })).unwrap().unwrap(), "named");
    assert_eq!(calls.lock().unwrap()[..2], [here; 2]);
    let panic = catch_unwind(AssertUnwindSafe(|| builder.build())).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"there are enough"));
}

/// No address space has room for such a stack, so no thread can be started.
#[test]
#[cfg(target_os = "linux")]
fn without_a_thread_a_write_is_an_error_and_a_closure_a_panic() {
    let runtime = Builder::new_current_thread().thread_stack_size(1 << 60).build().unwrap();
    let errors = runtime.block_on(async {
        let mut file = File::from_std(std::fs::File::create("/dev/null").unwrap());
        [file.write(b"lost").await.unwrap_err(), stdout().write(b"lost").await.unwrap_err()]
    });
    assert!(errors.iter().all(|error| error.to_string().contains("cannot start a thread")), "{errors:?}");
    let panic = catch_unwind(AssertUnwindSafe(|| drop(runtime.spawn_blocking(|| ())))).unwrap_err();
    assert!(panic.downcast_ref::<String>().unwrap().starts_with("OS can't spawn worker thread: "));
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
        { stream }.read_exact(&mut buffer).await.unwrap();
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
