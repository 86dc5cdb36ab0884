//! Signals of the process, each test in a process of its own.

use std::time::Duration;

use futures_lite::future;
use paceline::signal::{Signal, Signals, ctrl_c};
use paceline::{Timer, block_on, spawn};
use rustix::process::{Signal as Number, getpid, kill_process};

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
        // Nobody is left over, and one that is dropped is no end for the others.
        assert!(future::poll_once(one.next()).await.is_none());
        drop(other);
        let waits = spawn(async move { one.next().await.unwrap() });
        Timer::after(Duration::from_millis(20)).await;
        send(Number::USR1);
        assert_eq!(waits.await, Signal::User1);
        // From the first use on it does not end the process.
        send(Number::TERM);
    });
}

/// A storm is seen as one or more, and never as none.
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
