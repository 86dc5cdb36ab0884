//! A property that tokio's own tests do not check: the task count of a runtime that waits for signals.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use rustix::process::{Signal, getpid, kill_process};

use super::ctrl_c;
use super::unix::{SignalKind, signal};
use crate::runtime::{Builder, Handle};

/// Fails if a task of the runtime delivers the signals.
#[test]
fn a_runtime_counts_no_task_that_the_program_has_not_spawned() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let alive = || Handle::current().metrics().num_alive_tasks();
    runtime.block_on(async {
        {
            let mut interrupted = pin!(ctrl_c());
            let polled = poll_fn(|cx| Poll::Ready(interrupted.as_mut().poll(cx))).await;
            assert!(polled.is_pending());
            assert_eq!(alive(), 0);
        }
        let mut told = signal(SignalKind::user_defined2()).unwrap();
        kill_process(getpid(), Signal::USR2).unwrap();
        told.recv().await.unwrap();
        assert_eq!(alive(), 0);
    });
    // The notification reaches a current runtime, through a thread that was started in a former one.
    drop(runtime);
    let next = Builder::new_current_thread().enable_all().build().unwrap();
    next.block_on(async {
        let mut told = signal(SignalKind::user_defined2()).unwrap();
        kill_process(getpid(), Signal::USR2).unwrap();
        told.recv().await.unwrap();
        assert_eq!(alive(), 0);
    });
}
