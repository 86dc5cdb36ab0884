use super::super::Direction;
use super::*;

fn key(number: u32) -> (Key, Happened) {
    (Key::new(number, 7), Happened { ready: [true, false], ..Happened::NOTHING })
}

/// Returns the numbers of these events.
fn numbers(events: impl IntoIterator<Item = Event>) -> Vec<u32> {
    let number = |event| match event {
        Event::Source(key, _) => key.index(),
        Event::Timer(_) => panic!("a share has events of sources"),
    };
    events.into_iter().map(number).collect()
}

fn all(share: &Own<'_>) -> Vec<u32> {
    numbers(iter::from_fn(|| share.take()))
}

#[test]
fn an_event_comes_out_as_it_went_in() {
    for bits in 0..=u8::MAX {
        let is_set = |bit| bits & bit != 0;
        let happened =
            Happened { ready: [1, 2].map(is_set), cut: [4, 8].map(is_set), marks: Marks(bits >> 4) };
        for key in
            [Key::new(0, 0), Key::new(u32::MAX >> (u32::BITS - INDEX_BITS), (1 << GENERATION_BITS) - 1)]
        {
            let Event::Source(seen, what) = unpack(pack(key, happened)) else { panic!("no source") };
            assert_eq!((seen, what), (key, happened));
        }
    }
    assert_eq!(Direction::BOTH.len(), 2, "four bits are for two directions");
}

#[test]
fn the_owner_takes_its_events_in_their_order() {
    let shares = Shares::default();
    let own = shares.join();
    for round in 0..5 {
        assert_eq!((own.left(), shares.is_any_left()), (0, false));
        own.fill((0..100).map(|number| key(round * 100 + number)));
        assert_eq!((own.left(), shares.is_any_left()), (100, true));
        assert_eq!(all(&own), (round * 100..round * 100 + 100).collect::<Vec<_>>());
    }
}

#[test]
fn a_thief_takes_half_and_at_most_so_many() {
    let shares = Shares::default();
    let [victim, thief] = [(); 2].map(|()| shares.join());
    assert!(thief.steal().is_none(), "there is none");
    for (left, stolen) in [(1, 1), (2, 1), (3, 2), (10, 5), (63, 32), (64, 32), (CAPACITY as u32, MOST)] {
        victim.fill((0..left).map(key));
        assert_eq!(numbers(thief.steal()), [0]);
        assert_eq!((thief.left(), victim.left()), (stolen as usize - 1, (left - stolen) as usize));
        assert_eq!(all(&thief), (1..stolen).collect::<Vec<_>>());
        assert_eq!(all(&victim), (stolen..left).collect::<Vec<_>>());
    }
    assert_eq!(shares.stolen(), 1 + 1 + 2 + 5 + 32 + 32 + 32);
}

#[test]
fn each_share_is_looked_at() {
    let shares = Shares::default();
    let own: Vec<_> = (0..4).map(|_| shares.join()).collect();
    for victim in 0..4 {
        for thief in (0..4).filter(|thief| *thief != victim) {
            own[victim].fill(iter::once(key(9)));
            assert_eq!(numbers(own[thief].steal()), [9], "{thief} steals of {victim}");
        }
    }
}

#[test]
fn a_share_that_is_left_is_found_with_its_events() {
    let shares = Shares::default();
    let [gone, stays] = [(); 2].map(|()| shares.join());
    gone.fill((0..6).map(key));
    drop(gone);
    assert!(shares.is_any_left());
    assert_eq!(numbers(stays.steal()), [0]);
    let next = shares.join();
    assert_eq!(all(&next), [3, 4, 5], "the next thread has it");
    assert_eq!(shares.words(), [(1, word(2, 0))], "the thief has what it has not taken");
}

/// Fails if shares that no thread has, and that have no events, are visited after the last one in use.
#[test]
fn a_peak_of_threads_makes_no_later_look_dearer() {
    let shares = Shares::default();
    let own = shares.join();
    let visited = || own.others().map(|(_, number)| number).collect::<Vec<_>>();
    let peak: Vec<_> = (0..64).map(|_| shares.join()).collect();
    assert_eq!(visited().len(), 64);
    for (share, events) in peak.iter().zip([2, 1]) {
        share.fill((0..events).map(key));
    }
    drop(peak);
    assert_eq!(visited(), [1, 2], "two of them have events");
    let words = shares.words();
    drop([(); 3].map(|()| shares.join()));
    assert_eq!((shares.words(), words.len()), (words, 2), "threads that come and go change none");
    assert!(shares.has_unowned());
    for stolen in [0, 1, 0] {
        assert_eq!(numbers(own.steal()), [stolen]);
    }
    assert!(own.steal().is_none() && !shares.has_unowned());
    drop(shares.join());
    assert_eq!((visited(), shares.words()), (vec![], vec![]));
}

#[test]
fn the_counts_wrap() {
    let shares = Shares::default();
    let [victim, thief] = [(); 2].map(|()| shares.join());
    let near = u32::MAX - 2;
    victim.share.word.store(word(near, near), Ordering::Relaxed);
    victim.fill((0..8).map(key));
    assert_eq!(numbers(thief.steal()), [0]);
    assert_eq!((all(&victim), all(&thief)), (vec![4, 5, 6, 7], vec![1, 2, 3]));
    assert_eq!(counts(victim.share.word.load(Ordering::Relaxed)), (5, 5));
}

#[test]
fn a_thread_steals_from_a_share_that_has_not_moved_since_it_looked_last() {
    let shares = Shares::default();
    let [first, own, _empty, last] = [(); 4].map(|()| shares.join());
    first.fill((0..4).map(key));
    last.fill((4..8).map(key));
    assert!(own.steal_what_is_stuck().is_none(), "it looks at the last one, the next that has events");
    for moves in [&last, &first] {
        moves.take();
        assert!(own.steal_what_is_stuck().is_none(), "that one has moved, and the next one is looked at");
    }
    for stolen in [5, 7] {
        assert_eq!(numbers(own.steal_what_is_stuck()), [stolen], "the last one has not moved");
        all(&own);
    }
    assert!(own.steal_what_is_stuck().is_none(), "it is empty, and the first one is looked at");
    assert_eq!(numbers(own.steal_what_is_stuck()), [1]);
}
