//! Tests of the promotion protocol with one thread: which state follows which, which threads are counted, and
//! which seat gets a token.

use super::*;
use Rank::{Guest, Host, Relief};

const RANKS: [Rank; 3] = [Relief, Guest, Host];

fn set() -> Leadership<u32> {
    Leadership::new(0, WakeOrder::default(), Duration::ZERO)
}

fn seat(rank: Rank) -> Arc<Seat> {
    Arc::new(Seat::new(rank))
}

fn join(set: &Leadership<u32>, rank: Rank) -> Follower<'_, u32> {
    set.join(seat(rank))
}

fn owes(follower: &Follower<'_, u32>) -> bool {
    follower.seat.owes.load(Ordering::Relaxed)
}

/// Puts a seat into the line that sleeps and is no member. So there is a rank to stand back for only if a
/// test adds a member.
fn asleep(set: &Leadership<u32>, rank: Rank) -> Arc<Seat> {
    let seat = seat(rank);
    set.line.enter(&seat, rank);
    seat
}

fn state(set: &Leadership<u32>) -> u8 {
    set.state.load(Ordering::Relaxed)
}

/// Returns the number of members of each rank.
fn members(set: &Leadership<u32>) -> [usize; 3] {
    RANKS.map(|rank| set.members[rank as usize].load(Ordering::Relaxed))
}

fn never() {
    unreachable!("no thread of lower rank leads");
}

#[test]
fn lf5_a_leader_makes_way_for_a_better_claim_only() {
    for leads in RANKS {
        for comes in RANKS {
            for beside in [0, OPEN_TO_ALL] {
                let state = led_by(leads) | beside;
                assert_eq!(
                    must_make_way(state, comes),
                    comes > leads,
                    "{comes:?} comes while {leads:?} leads"
                );
            }
        }
    }
}

#[test]
fn leadership_is_vacant_unless_a_state_of_a_leader_is_set() {
    let set = set();
    for beside in [0, BY_GUEST, BY_RELIEF, OPEN_TO_ALL] {
        for (leads, is_vacant) in [(VACANT, true), (LED, false)] {
            set.state.store(leads | beside, Ordering::Relaxed);
            assert_eq!(set.is_vacant(), is_vacant);
        }
    }
}

#[test]
fn the_waiting_seats_are_seen() {
    let set = set();
    assert!(set.waiting().is_empty());
    let waits = asleep(&set, Rank::Guest);
    assert!(matches!(&set.waiting()[..], [seat] if Arc::ptr_eq(seat, &waits)));
}

#[test]
fn lf5_the_best_rank_that_is_there_may_lead() {
    let set = set();
    assert_eq!(set.reach(), Relief);
    for rank in RANKS {
        let alone = join(&set, rank);
        assert_eq!(set.reach(), rank);
        let beside = join(&set, Relief);
        assert_eq!(set.reach(), rank);
        drop((alone, beside));
        assert_eq!(set.reach(), Relief);
    }
    let (_host, _guest) = (join(&set, Host), join(&set, Guest));
    assert_eq!(set.reach(), Host);
    set.state.store(OPEN_TO_ALL, Ordering::Relaxed);
    assert_eq!(set.reach(), Relief);
}

#[test]
fn a_member_is_counted_once_wherever_it_goes() {
    let set = set();
    let seat = seat(Guest);
    set.set_rank(&seat, Host);
    assert_eq!((members(&set), seat.rank()), ([0, 0, 0], Host), "it is no member yet");
    let follower = set.join(seat.clone());
    assert_eq!(members(&set), [0, 0, 1]);
    set.set_rank(&seat, Relief);
    assert_eq!((members(&set), seat.rank()), ([1, 0, 0], Relief));
    assert!(set.suspend(&seat));
    assert_eq!(members(&set), [0, 0, 0]);
    assert!(!set.suspend(&seat));
    assert_eq!(members(&set), [0, 0, 0]);
    set.resume(&seat);
    assert_eq!(members(&set), [1, 0, 0]);
    assert!(set.suspend(&seat), "it is a member again");
    set.resume(&seat);
    drop(follower);
    assert_eq!((members(&set), seat.is_member.is_set()), ([0, 0, 0], false));
}

#[test]
fn lf4_vacant_leadership_goes_to_one_sleeping_follower_that_may_lead() {
    let set = set();
    assert!(!set.pass_on(Reason::Work), "no follower sleeps");
    let [first, second] = [(); 2].map(|()| asleep(&set, Guest));
    set.state.store(LED, Ordering::Relaxed);
    assert!(!set.pass_on(Reason::Work), "a thread leads");
    set.state.store(VACANT, Ordering::Relaxed);
    let host = join(&set, Host);
    assert!(!set.pass_on(Reason::Work), "the host is awake and may lead");
    assert_eq!((set.woken.get(), first.is_called() || second.is_called()), (0, false));
    // A host that leaves passes on what is vacant.
    drop(host);
    assert!(set.pass_on(Reason::Work), "a follower is on the way");
    assert_eq!((set.woken.get(), first.is_called(), second.is_called()), (1, false, true));
}

#[test]
fn lf5_a_rescue_opens_vacant_leadership_to_any_rank() {
    let set = set();
    let _host = join(&set, Host);
    for led in [LED, LED | BY_GUEST] {
        set.state.store(led, Ordering::Relaxed);
        assert!(set.rescue(), "a thread leads");
        assert_eq!(state(&set), led);
    }
    set.state.store(VACANT, Ordering::Relaxed);
    assert!(!set.rescue(), "no follower sleeps");
    assert_eq!(state(&set), OPEN_TO_ALL);
    let relief = asleep(&set, Relief);
    assert!(set.rescue());
    assert!(relief.take_lead());
    assert_eq!((state(&set), set.woken.get()), (OPEN_TO_ALL, 1));
}

/// Leadership stays open until a host has it, or a thread with a better claim waits.
#[test]
fn lf5_open_leadership_stays_open_until_a_better_claim_is_back() {
    let set = set();
    let host = join(&set, Host);
    let guest = join(&set, Guest).try_lead().expect_err("it stands back");
    set.rescue();
    let guest = guest.try_lead().expect("it is open");
    assert_eq!(state(&set), LED | BY_GUEST | OPEN_TO_ALL);
    let guest = guest.vacate();
    assert_eq!(state(&set), OPEN_TO_ALL);

    let guest = guest.try_lead().expect("it is open still");
    let waits = asleep(&set, Host);
    let guest = guest.vacate();
    assert_eq!(state(&set), VACANT);
    let guest = guest.try_lead().expect_err("it is no more");
    assert!(!set.line.leave(&waits));

    set.rescue();
    let host = host.try_lead().expect("no thread leads");
    assert_eq!(state(&set), LED);
    drop((host, guest));
    assert_eq!((state(&set), members(&set)), (VACANT, [0, 0, 0]));
}

#[test]
fn lf1_no_thread_leads_beside_a_leader() {
    let set = set();
    for leads in RANKS {
        let leader = join(&set, leads).insist().expect("no thread leads");
        assert_eq!(state(&set), led_by(leads));
        assert!(join(&set, Host).try_lead().is_err());
        assert!(join(&set, Host).insist().is_err());
        drop(leader);
        assert!(set.is_vacant());
    }
    assert_eq!(set.taken.get(), 3);
}

#[test]
fn lf5_a_thread_that_insists_leads_whatever_its_rank_but_only_once() {
    let set = set();
    let _host = join(&set, Host);
    for rank in [Guest, Relief] {
        let led = join(&set, rank).insist().expect("no thread leads").vacate();
        assert!(owes(&led) && !led.is_granted());
        assert!(led.try_lead().is_err());
    }
    assert!(!owes(&join(&set, Host).try_lead().expect("no thread leads").vacate()));
}

#[test]
fn a_leader_knows_which_followers_wait() {
    let set = set();
    let leader = join(&set, Guest).try_lead().expect("no thread leads");
    let displaced = leader.displaced();
    assert!(!displaced() && !leader.has_follower());
    let equal = asleep(&set, Guest);
    assert!(!displaced() && leader.has_follower());
    let better = asleep(&set, Host);
    assert!(displaced() && leader.has_follower());
    assert!(matches!(set.line.call(Host), Called::Wake(_)));
    assert!(!displaced() && !leader.has_follower(), "a follower is on the way");
    assert!(set.line.leave(&better));
    assert!(!displaced() && leader.has_follower());
    assert!(!set.line.leave(&equal));
    assert!(!displaced() && !leader.has_follower());

    let host = join(&set, Host);
    drop(leader);
    let leader = host.try_lead().expect("no thread leads");
    asleep(&set, Guest);
    assert!(!leader.has_follower() && !leader.is_wake_worth(9), "a guest does not lead beside a host");
    asleep(&set, Host);
    assert!(leader.has_follower() && !leader.displaced()(), "no claim is better");
}

#[test]
fn lf2_a_free_promotion_wakes_no_follower_and_a_paid_one_wakes_one() {
    let set = set();
    let [first, second] = [(); 2].map(|()| asleep(&set, Host));
    let busy = join(&set, Host).try_lead().expect("no thread leads").vacate();
    assert_eq!((set.free.get(), set.paid.get(), set.woken.get()), (1, 0, 0));
    let busy = busy.try_lead().expect("no thread leads").promote();
    assert_eq!((set.free.get(), set.paid.get(), set.woken.get()), (1, 1, 1));
    assert!(set.is_vacant() && !first.is_called() && second.take_lead());
    drop(busy);
}

/// A guest that led owes leadership to the host that sleeps. A guest that did not wakes no thread.
#[test]
#[cfg_attr(miri, ignore = "it forgets a follower, which leaks")]
fn lf5_a_guest_that_led_wakes_the_host_it_stood_in_for() {
    let set = set();
    let host = asleep(&set, Host);
    set.add_member(Host);
    for (led, woken) in [(false, 0), (true, 1)] {
        let mut guest = join(&set, Guest);
        if led {
            guest = guest.insist().expect("no thread leads").vacate();
        }
        let _ = guest.seat.wake_root();
        let Waited::Awake(guest) = guest.follow(None, never) else { panic!("its future was woken") };
        assert_eq!((set.woken.get(), host.is_called(), owes(&guest)), (woken, led, false));
        // Leaves without a look at the line.
        set.suspend(&guest.seat);
        std::mem::forget(guest);
    }
}

#[test]
fn a_choice_that_came_too_late_is_forgotten() {
    let set = set();
    let _leader = join(&set, Host).try_lead().expect("no thread leads");
    let guest = join(&set, Guest);
    guest.set_claims(true, false);
    let _ = guest.seat.wake_root();
    let Waited::Awake(guest) = guest.follow(None, never) else { panic!("its future was woken") };
    assert!(!guest.is_granted());
}

#[test]
fn a_follower_is_unneeded_when_its_limit_has_passed() {
    let set = set();
    let _leader = join(&set, Host).try_lead().expect("no thread leads");
    for rank in RANKS {
        assert!(matches!(join(&set, rank).follow(Some(Duration::ZERO), never), Waited::Unneeded));
        assert!(set.line.is_empty());
    }
    assert_eq!((set.spun_nanos.get(), members(&set)), (0, [0, 0, 1]));
}

/// Fails if a chosen follower waits for the thread that chose it, which here never wakes it: the token is set
/// with the choice.
#[test]
fn a_chosen_follower_leads_although_its_limit_has_passed_and_no_thread_wakes_it() {
    let set = set();
    let seat = seat(Host);
    let guest = join(&set, Guest).insist().expect("no thread leads");
    let displace = || {
        set.state.store(VACANT, Ordering::Relaxed);
        assert!(matches!(set.line.call(Host), Called::Wake(_)), "it is in the line");
    };
    let turn = set.join(seat.clone()).follow(Some(Duration::ZERO), displace);
    assert!(matches!(turn, Waited::Lead(_)));
    assert!(!seat.is_called(), "no token is left");
    drop(turn);
    drop(guest);
}

#[test]
fn the_time_that_a_follower_stays_awake_is_counted() {
    let set: Leadership<u32> = Leadership::new(0, WakeOrder::default(), Duration::from_millis(50));
    let _leader = join(&set, Host).try_lead().expect("no thread leads");
    let stayed_awake = |_: &u32| {
        assert!(matches!(join(&set, Host).follow(Some(Duration::ZERO), never), Waited::Unneeded));
        set.spun_nanos.get() > 0
    };
    assert!((0..1000).any(|n| stayed_awake(&n)));
}

#[test]
fn a_wake_is_worth_it_only_where_a_follower_sleeps_and_two_events_are_left() {
    let set = set();
    let leader = join(&set, Host).try_lead().expect("no thread leads");
    assert!(!leader.has_follower() && !leader.is_wake_worth(9));
    asleep(&set, Host);
    assert!(leader.has_follower());
    assert_eq!([0, 1, 2].map(|left| leader.is_wake_worth(left)), [false, false, true]);
    drop(leader.promote());
    let again = join(&set, Host).try_lead().expect("no thread leads");
    assert!(!again.has_follower() && !again.is_wake_worth(9), "the follower is on its way");
}
