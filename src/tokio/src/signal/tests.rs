//! Properties that tokio's own tests do not check.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use super::unix::{Signal as Listener, SignalKind, signal};
use super::{ctrl_c, registry};
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

/// Sends the signal, and blocks until it was delivered.
fn deliver(number: Signal) {
    let last = registry::last_delivery(number.as_raw());
    kill_process(getpid(), number).unwrap();
    while registry::last_delivery(number.as_raw()) == last {
        thread::sleep(Duration::from_millis(1));
    }
}

async fn has_received(listener: &mut Listener) -> bool {
    poll_fn(|cx| Poll::Ready(listener.poll_recv(cx).is_ready())).await
}

#[test]
fn a_listener_receives_what_was_sent_in_the_poll_that_makes_it() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let kind = SignalKind::user_defined1();
    runtime.block_on(async {
        drop(signal(kind).unwrap());
        deliver(Signal::USR1);
        let task = crate::task::LocalSet::new();
        assert_eq!(
            poll_fn(|cx| Poll::Ready(pin!(task.run_until(async { 7 })).poll(cx))).await,
            Poll::Ready(7)
        );
        let mut first = signal(kind).unwrap();
        assert!(has_received(&mut first).await, "a set was polled within this poll");
        assert!(!has_received(&mut first).await, "it was one signal");

        let mut next = signal(kind).unwrap();
        assert!(!has_received(&mut next).await, "this poll has received the signal");

        deliver(Signal::USR1);
        crate::task::yield_now().await;
        let mut late = signal(kind).unwrap();
        assert!(!has_received(&mut late).await, "the signal was sent in a former poll");
        assert!(has_received(&mut next).await);
    });
    deliver(Signal::USR1);
    let _inside = runtime.enter();
    let outside = signal(kind).unwrap();
    assert!(!runtime.block_on(async { has_received(&mut { outside }).await }), "no poll ran");
}
