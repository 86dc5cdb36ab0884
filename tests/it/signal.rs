//! Signals of the process, each test in a process of its own.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_lite::future;
use paceline::signal::{Signal, Signals, ctrl_c};
use paceline::{Timer, block_on, spawn};
use rustix::process::{Signal as Number, getpid, kill_process};

use crate::given_time::RecvSoon;
use crate::setups::is_child;

fn send(signal: Number) {
    kill_process(getpid(), signal).unwrap();
}

#[test]
fn each_listener_gets_each_signal() {
    if !is_child("signal::each_listener_gets_each_signal", ":") {
        return;
    }
    block_on(async {
        let mut one = Signals::new([Signal::User1, Signal::Terminate]).unwrap();
        let mut other = Signals::new([Signal::Terminate]).unwrap();
        let early = ctrl_c();
        send(Number::INT);
        early.await.unwrap();
        send(Number::TERM);
        send(Number::USR1);
        let mut both = [one.next().await.unwrap(), one.next().await.unwrap()];
        both.sort_unstable_by_key(|signal| *signal as u8);
        assert_eq!(both, [Signal::Terminate, Signal::User1]);
        assert_eq!(other.next().await.unwrap(), Signal::Terminate);
        // No receiver is left over, and a dropped listener does not end the others.
        assert!(future::poll_once(one.next()).await.is_none());
        drop(other);
        let waits = spawn(async move { one.next().await.unwrap() });
        Timer::after(Duration::from_millis(20)).await;
        send(Number::USR1);
        assert_eq!(waits.await, Signal::User1);
        // From its first use on, the signal does not end the process.
        send(Number::TERM);
    });
}

/// A storm of signals is seen as one or more, and never as none.
#[test]
fn none_is_missed_in_a_storm() {
    if !is_child("signal::none_is_missed_in_a_storm", ":") {
        return;
    }
    block_on(async {
        let mut signals = Signals::new([Signal::User2]).unwrap();
        for _ in 0..200 {
            (0..300).for_each(|_| send(Number::USR2));
            assert_eq!(signals.next().await.unwrap(), Signal::User2);
        }
    });
}

/// Polls `next` of `signals` once, on a thread of its own: a poll that never returns fails the test.
fn is_pending(signals: Signals) {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut signals = signals;
        let signal = block_on(future::poll_once(signals.next()));
        let _ = tell.send(signal.is_none());
    });
    assert_eq!(told.recv_soon(), Ok(true), "a poll of `next` does not return, or returns a signal");
}

/// Fails if only the handlers keep the write end of the socket pair open.
#[test]
fn without_a_handler_next_is_pending() {
    if !is_child("signal::without_a_handler_next_is_pending", ":") {
        return;
    }
    is_pending(Signals::new([]).unwrap());
    let signals = Signals::new([Signal::User1]).unwrap();
    #[allow(deprecated, reason = "other crates may still call this function")]
    let removed = signal_hook_registry::unregister_signal(Number::USR1.as_raw());
    assert!(removed);
    is_pending(signals);
}
