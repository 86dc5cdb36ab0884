//! Loom models of a seat: the two tokens against the two places to sleep.

use super::*;
use crate::sync::models::model;
use crate::sync::{Arc, ProtocolCell};
use loom::sync::Notify;
use loom::thread;

/// The root token is set before, while, or after the leader falls asleep in the poller. The leader
/// sees what the setter did before.
#[test]
fn a_root_token_beside_a_sleep_in_the_poller_is_not_lost() {
    model(|| {
        let seat = Arc::new(Seat::new(Rank::Host));
        let bell = Arc::new(Notify::new());
        let data = Arc::new(ProtocolCell::new(0));
        let waker = {
            let (seat, bell, data) = (seat.clone(), bell.clone(), data.clone());
            thread::spawn(move || {
                // SAFETY: the sleeper does not use the cell before it has the token.
                unsafe { data.with_mut(|data| *data = 1) };
                if seat.wake_root() {
                    bell.notify();
                }
            })
        };
        if seat.start_polling() {
            while !seat.root_woken() {
                bell.wait();
            }
            seat.stop_polling();
        }
        assert!(seat.take_root());
        // SAFETY: the waker set the token after its own use.
        assert_eq!(unsafe { data.with_mut(|data| *data) }, 1);
        waker.join().unwrap();
    });
}

/// LF8: both tokens are set while the thread parks. The thread gets both, in any order.
#[test]
fn lf8_two_tokens_for_one_seat_are_both_seen() {
    model(|| {
        let seat = Arc::new(Seat::new(Rank::Host));
        let chooser = {
            let seat = seat.clone();
            thread::spawn(move || {
                seat.grant_lead();
                seat.unpark_granted();
            })
        };
        let waker = {
            let seat = seat.clone();
            thread::spawn(move || assert!(!seat.wake_root()))
        };
        let (mut lead, mut root) = (false, false);
        while !(lead && root) {
            let woken = seat.park(None);
            assert!(woken.lead || woken.root);
            assert!(!(lead && woken.lead));
            lead |= woken.lead;
            root |= woken.root && seat.take_root();
        }
        chooser.join().unwrap();
        waker.join().unwrap();
        assert!(!seat.is_asleep() && !seat.root_woken() && !seat.take_lead());
    });
}

/// A thread that never sleeps sees what the token's setter did before, too.
#[test]
fn a_root_token_taken_awake_brings_what_came_before_it() {
    model(|| {
        let seat = Arc::new(Seat::new(Rank::Host));
        let data = Arc::new(ProtocolCell::new(0));
        let waker = {
            let (seat, data) = (seat.clone(), data.clone());
            thread::spawn(move || {
                // SAFETY: the other thread does not use the cell before it has the token.
                unsafe { data.with_mut(|data| *data = 1) };
                assert!(!seat.wake_root());
            })
        };
        while !seat.take_root() {
            sync::spin_hint();
        }
        // SAFETY: the waker set the token after its own use.
        assert_eq!(unsafe { data.with_mut(|data| *data) }, 1);
        waker.join().unwrap();
    });
}
