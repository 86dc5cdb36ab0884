//! [`shrink`]: finds a small part of a list that still has a property.

/// Returns a part of `all` for which `holds` is true, where `holds(all)` is, in the same order. It is
/// smallest in that no single item can be left out, unless `holds` has said `None`, which ends the search at
/// once.
///
/// This is the algorithm `ddmin` of Zeller and Hildebrandt (*Simplifying and Isolating Failure-Inducing
/// Input*, 2002), without the step that tries a part instead of the rest.
pub(super) fn shrink<T: Clone>(all: &[T], mut holds: impl FnMut(&[T]) -> Option<bool>) -> Vec<T> {
    let mut left = all.to_vec();
    if left.is_empty() {
        return left;
    }
    // Most lists have no item that matters.
    match holds(&[]) {
        Some(false) => {}
        Some(true) => return Vec::new(),
        None => return left,
    }
    let mut size = left.len().div_ceil(2);
    while size > 0 && left.len() > 1 {
        let (mut at, mut is_smaller) = (0, false);
        while at < left.len() {
            let end = (at + size).min(left.len());
            let without = [&left[..at], &left[end..]].concat();
            // The empty list was tried.
            match if without.is_empty() { Some(false) } else { holds(&without) } {
                Some(true) => (left, is_smaller) = (without, true),
                Some(false) => at = end,
                None => return left,
            }
        }
        if size > 1 || !is_smaller {
            size /= 2;
        }
    }
    left
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::*;

    /// Fails if an item is left that could be left out, or if one is missing that cannot.
    #[test]
    fn what_is_left_is_what_matters() {
        let all: Vec<u32> = (0..100).collect();
        assert_eq!(shrink::<u32>(&[], |_| unreachable!("`holds(all)` is true")), []);
        for wanted in [vec![], vec![0], vec![99], vec![3, 50, 51], (20..40).collect(), all.clone()] {
            let mut tries = 0;
            let left = shrink(&all, |part| {
                tries += 1;
                Some(wanted.iter().all(|item| part.contains(item)))
            });
            assert_eq!(left, wanted);
            assert!(tries <= 1 + 20 * wanted.len().max(1) || wanted.len() > 20, "{tries} {wanted:?}");
        }
    }

    /// Fails if items that matter only together with others are lost, or if one that can go alone stays.
    #[test]
    fn no_single_item_can_be_left_out_of_the_rest() {
        let all: Vec<u32> = (0..30).collect();
        // A pair of neighbours is enough.
        let holds = |part: &[u32]| part.windows(2).any(|two| two[1] == two[0] + 1 && two[0] % 7 == 3);
        let left = shrink(&all, |part| Some(holds(part)));
        assert!(holds(&left) && left.len() == 2, "{left:?}");
    }

    #[test]
    fn the_search_ends_when_it_is_told_to() {
        let all: Vec<u32> = (0..64).collect();
        let mut tries = 0;
        let left = shrink(&all, |part| {
            tries += 1;
            (tries < 4).then(|| part.contains(&63))
        });
        assert_eq!((tries, left), (4, (48..64).collect()));
    }
}
