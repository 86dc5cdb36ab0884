//! Who is called, where nothing happens at once.

use super::*;

const ALL: [(Rank, &str); 5] = [
    (Rank::Guest, "guest 1"),
    (Rank::Host, "host 1"),
    (Rank::Relief, "relief"),
    (Rank::Host, "host 2"),
    (Rank::Guest, "guest 2"),
];

/// Calls all whose rank is `reach` or better, one after the other.
fn called(order: Order, reach: Rank) -> Vec<&'static str> {
    let line = Line::new(order);
    ALL.into_iter().for_each(|(rank, name)| line.enter(&Arc::new(name), rank));
    let next = || match line.call(reach) {
        Called::Wake(who) => {
            assert!(matches!(line.call(reach), Called::OnTheWay | Called::Nobody), "one at a time");
            assert!(line.leave(&who));
            Some(*who)
        }
        Called::OnTheWay => unreachable!("who was called has left"),
        Called::Nobody => None,
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn the_best_rank_comes_first_and_of_these_the_last_or_the_first_that_came() {
    use Order::{FirstInFirstOut, LastInFirstOut};
    let lifo = ["host 2", "host 1", "guest 2", "guest 1", "relief"];
    let fifo = ["host 1", "host 2", "guest 1", "guest 2", "relief"];
    for (reach, count) in [(Rank::Host, 2), (Rank::Guest, 4), (Rank::Relief, 5)] {
        assert_eq!(called(LastInFirstOut, reach), lifo[..count]);
        assert_eq!(called(FirstInFirstOut, reach), fifo[..count]);
    }
}

#[test]
fn who_leaves_by_itself_was_not_called_and_cannot_be() {
    let line = Line::new(Order::default());
    let [guest, host] = [(); 2].map(Arc::new);
    line.enter(&guest, Rank::Guest);
    line.enter(&host, Rank::Host);
    assert!(line.has_better(Rank::Guest) && !line.has_better(Rank::Host));
    assert!(!line.leave(&host));
    assert!(line.has_better(Rank::Relief) && !line.has_better(Rank::Guest));
    assert!(matches!(line.call(Rank::Relief), Called::Wake(who) if Arc::ptr_eq(&who, &guest)));
    assert!(line.is_empty() && line.somebody_comes());
}
