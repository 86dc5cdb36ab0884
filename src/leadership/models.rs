//! Loom models of the promotion protocol. The models of the line show what is claimed of the line alone.
//!
//! A lost promotion shows as a deadlock: a follower parks for ever. A thread that leads again or leaves would
//! hide the loss. So threads of these models that have done their part do neither until the others are done.

use std::time::Duration;

use super::*;
use crate::reactor::Slumber;
use crate::sync::models::{Latch, model};
use loom::sync::Notify;
use loom::thread;

type Set = Leadership<u32>;

fn set(order: WakeOrder) -> Arc<Set> {
    Arc::new(Leadership::new(0, order, Duration::ZERO))
}

fn join(set: &Set, rank: Rank) -> Follower<'_, u32> {
    set.join(Arc::new(Seat::new(rank)))
}

/// Leads at once, for the start of a model.
fn lead_first(set: &Set, rank: Rank) -> Leader<'_, u32> {
    join(set, rank).insist().expect("no thread leads yet")
}

fn wait_to_lead(mut follower: Follower<'_, u32>) -> Leader<'_, u32> {
    loop {
        match follower.follow(None, || {}) {
            Waited::Lead(leader) => return leader,
            Waited::Awake(woken) => follower = woken,
            Waited::Unneeded => unreachable!("waits without a limit"),
        }
    }
}

/// Asserts that the set is as new: all threads have left.
fn assert_nothing_left(set: &Set) {
    assert!(set.is_vacant());
    assert!(!set.line.has_called(), "a called sleeper is on the way for ever");
    assert!(set.line.is_empty());
    assert!(set.members.iter().all(|members| members.load(Ordering::Relaxed) == 0));
}

fn lead_and_leave(set: &Set) {
    let mut leader = wait_to_lead(join(set, Rank::Host));
    leader.with(|value| *value += 1);
    drop(leader.vacate());
}

/// LF1: a leader sees what the last one did to the guarded value, and never do two threads have it. A
/// thread that leaves passes leadership on, so no thread is left behind.
fn all_lead_once(order: WakeOrder) {
    model(move || {
        let set = set(order);
        let others = [(); 2].map(|()| {
            let set = set.clone();
            thread::spawn(move || lead_and_leave(&set))
        });
        lead_and_leave(&set);
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(lead_first(&set, Rank::Guest).with(|value| *value), 3);
        assert_nothing_left(&set);
    });
}

#[test]
fn lf1_one_thread_at_a_time_has_the_guarded_value_last_in_first_out() {
    all_lead_once(WakeOrder::LastInFirstOut);
}

#[test]
fn lf1_one_thread_at_a_time_has_the_guarded_value_first_in_first_out() {
    all_lead_once(WakeOrder::FirstInFirstOut);
}

/// A leader that leaves for good, for example by a panic, has no promotion left to make but the one in
/// its `drop`.
#[test]
fn a_leader_that_is_dropped_passes_leadership_on() {
    model(|| {
        let set = set(WakeOrder::default());
        let leader = lead_first(&set, Rank::Host);
        let others = [(); 2].map(|()| {
            let set = set.clone();
            thread::spawn(move || drop(wait_to_lead(join(&set, Rank::Host))))
        });
        drop(leader);
        others.into_iter().for_each(|thread| thread.join().unwrap());
        assert_nothing_left(&set);
    });
}

/// The promotion comes before, while, or after the follower falls asleep.
#[test]
fn a_promotion_beside_a_park_is_not_lost() {
    model(|| {
        let set = set(WakeOrder::default());
        let mut leader = lead_first(&set, Rank::Host);
        let other = {
            let set = set.clone();
            thread::spawn(move || wait_to_lead(join(&set, Rank::Host)).with(|value| assert_eq!(*value, 1)))
        };
        leader.with(|value| *value = 1);
        let busy = leader.promote();
        other.join().unwrap();
        drop(busy);
        assert_nothing_left(&set);
    });
}

/// Starts a leader on another thread that wakes the root future of the follower in `seat`, and promotes. The
/// leader stays away until the latch opens.
fn wake_and_promote(set: &Arc<Set>, seat: &Arc<Seat>) -> (thread::JoinHandle<()>, std::sync::Arc<Latch>) {
    let led = Latch::new();
    set.state.store(LED, Ordering::Relaxed);
    let thread = {
        let (set, seat, led) = (set.clone(), seat.clone(), led.clone());
        thread::spawn(move || {
            let leader = Leader { follower: join(&set, Rank::Host) };
            let _ = seat.wake_root();
            let busy = leader.promote();
            led.wait();
            drop(busy);
        })
    };
    (thread, led)
}

/// LF8: a follower is chosen to lead and its root future is woken at the same time. The follower returns
/// to its future, so the other follower has to lead.
#[test]
fn a_follower_with_both_tokens_uses_both() {
    model(|| {
        let set = set(WakeOrder::default());
        let seat = Arc::new(Seat::new(Rank::Host));
        let (promoter, done) = wake_and_promote(&set, &seat);
        let led = Latch::new();
        let other = {
            let (set, led) = (set.clone(), led.clone());
            thread::spawn(move || {
                let busy = wait_to_lead(join(&set, Rank::Host)).vacate();
                led.open();
                drop(busy);
            })
        };
        let follower = set.join(seat);
        let mut root = false;
        let mut follower = match follower.follow(None, || {}) {
            Waited::Awake(follower) => {
                root = follower.seat.take_root();
                assert!(root);
                follower
            }
            Waited::Lead(leader) => leader.promote(),
            Waited::Unneeded => unreachable!("waits without a limit"),
        };
        // A long poll: no parked thread may depend on this one.
        led.wait();
        // The other token waits, wherever the first one has led this thread.
        while !root {
            follower = match follower.follow(None, || {}) {
                Waited::Awake(follower) => follower,
                Waited::Lead(leader) => leader.vacate(),
                Waited::Unneeded => unreachable!("waits without a limit"),
            };
            root = follower.seat.take_root();
        }
        drop(follower);
        done.open();
        [promoter, other].into_iter().for_each(|thread| thread.join().unwrap());
        assert_nothing_left(&set);
    });
}

/// The chosen follower leaves the set instead of leading, because its future is done.
#[test]
fn a_woken_follower_that_leaves_passes_leadership_on() {
    model(|| {
        let set = set(WakeOrder::default());
        let seat = Arc::new(Seat::new(Rank::Host));
        let (promoter, done) = wake_and_promote(&set, &seat);
        let other = {
            let set = set.clone();
            thread::spawn(move || drop(wait_to_lead(join(&set, Rank::Host))))
        };
        let follower = set.join(seat);
        drop(follower.follow(None, || {}));
        other.join().unwrap();
        done.open();
        promoter.join().unwrap();
        assert_nothing_left(&set);
    });
}

/// The limit passes at the moment at which the follower is chosen. The follower then leads, or leaves and
/// passes leadership on.
#[test]
fn a_follower_that_times_out_while_it_is_chosen_keeps_leadership() {
    model(|| {
        let set = set(WakeOrder::default());
        let leader = lead_first(&set, Rank::Host);
        let impatient = {
            let set = set.clone();
            thread::spawn(move || {
                let woken = set.woken.get();
                let turn = join(&set, Rank::Host).follow(Some(Duration::ZERO), || {});
                if let Waited::Unneeded = turn {
                    assert_eq!(set.woken.get(), woken, "it was chosen");
                }
            })
        };
        let busy = leader.promote();
        impatient.join().unwrap();
        drop(busy);
        assert_nothing_left(&set);
    });
}

/// Followers enter, time out and enter again while some are chosen. Each is on the list once or not at
/// all. So no absent follower is chosen, no present one is forgotten, and no token is left in an empty seat.
#[test]
fn the_list_survives_followers_that_come_and_go_while_others_are_chosen() {
    model(|| {
        let set = set(WakeOrder::LastInFirstOut);
        let leader = lead_first(&set, Rank::Host);
        let others = [(); 2].map(|()| {
            let set = set.clone();
            thread::spawn(move || {
                let seat = Arc::new(Seat::new(Rank::Host));
                for _ in 0..2 {
                    let follower = set.join(seat.clone());
                    drop(follower.follow(Some(Duration::ZERO), || {}));
                }
                seat
            })
        });
        let busy = leader.promote();
        set.pass_on(Reason::Work);
        let seats = others.map(|thread| thread.join().unwrap());
        drop(busy);
        assert_nothing_left(&set);
        assert!(seats.iter().all(|seat| !seat.take_lead()));
    });
}

/// A poller that a leader can sleep in.
struct Poller {
    slumber: Slumber,
    bell: Notify,
}

impl Poller {
    fn new() -> Arc<Self> {
        Arc::new(Self { slumber: Slumber::new(), bell: Notify::new() })
    }

    fn sleep(&self, cancelled: impl FnOnce() -> bool) {
        let _announced = self.slumber.announce();
        if !cancelled() {
            self.bell.wait();
        }
    }

    fn interrupt(&self) {
        self.slumber.interrupt(|| self.bell.notify());
    }
}

/// A thread of lower rank leads, asleep in the poller, and a thread of better rank joins. The leader makes
/// way, and leads again when the other thread has left.
fn leader_makes_way(worse: Rank, better: Rank) {
    model(move || {
        let set = set(WakeOrder::default());
        let poller = Poller::new();
        let leader = lead_first(&set, worse);
        let comes = {
            let (set, poller) = (set.clone(), poller.clone());
            thread::spawn(move || {
                let turn = join(&set, better).follow(None, || poller.interrupt());
                assert!(matches!(turn, Waited::Lead(_)));
            })
        };
        poller.sleep(leader.displaced());
        drop(wait_to_lead(leader.vacate()));
        comes.join().unwrap();
        assert_nothing_left(&set);
    });
}

#[test]
fn lf5_a_guest_makes_way_for_a_host_and_takes_over_from_it() {
    leader_makes_way(Rank::Guest, Rank::Host);
}

#[test]
fn lf5_a_relief_makes_way_for_a_guest_and_takes_over_from_it() {
    leader_makes_way(Rank::Relief, Rank::Guest);
}

/// The last host leaves, and a guest that parked because there was a host has to lead.
#[test]
fn lf5_the_last_host_leaves_leadership_to_a_guest() {
    model(|| {
        let set = set(WakeOrder::default());
        let host = join(&set, Rank::Host);
        let guest = {
            let set = set.clone();
            thread::spawn(move || drop(wait_to_lead(join(&set, Rank::Guest))))
        };
        drop(host);
        guest.join().unwrap();
        assert_nothing_left(&set);
    });
}

/// The same with two hosts that leave at once, of which one may rely on the other's call.
#[test]
fn lf5_two_hosts_that_leave_at_once_leave_leadership_to_a_guest() {
    model(|| {
        let set = set(WakeOrder::default());
        let host = join(&set, Rank::Host);
        let other = {
            let set = set.clone();
            thread::spawn(move || drop(join(&set, Rank::Host)))
        };
        let guest = {
            let set = set.clone();
            thread::spawn(move || drop(wait_to_lead(join(&set, Rank::Guest))))
        };
        drop(host);
        [guest, other].into_iter().for_each(|thread| thread.join().unwrap());
        assert_nothing_left(&set);
    });
}

/// The only host is in a long poll. The guest leads when the deputy opens leadership, again and again, and
/// the host gets its place back when it returns.
#[test]
fn lf5_a_guest_stands_in_for_a_host_that_does_not_come() {
    model(|| {
        let set = set(WakeOrder::default());
        let (poller, led) = (Poller::new(), Latch::new());
        let busy = lead_first(&set, Rank::Host).vacate();
        let guest = {
            let (set, poller, led) = (set.clone(), poller.clone(), led.clone());
            thread::spawn(move || {
                let once = wait_to_lead(join(&set, Rank::Guest)).vacate();
                // No better claim has returned: leadership is still open.
                let leader = wait_to_lead(once);
                led.open();
                poller.sleep(leader.displaced());
                drop(wait_to_lead(leader.vacate()));
            })
        };
        set.rescue();
        led.wait();
        let mut busy = Some(busy);
        while let Some(host) = busy.take() {
            match host.follow(None, || poller.interrupt()) {
                Waited::Lead(leader) => drop(leader),
                Waited::Awake(host) => busy = Some(host),
                Waited::Unneeded => unreachable!("waits without a limit"),
            }
        }
        guest.join().unwrap();
        assert_nothing_left(&set);
    });
}
