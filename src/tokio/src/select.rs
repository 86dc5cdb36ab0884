//! `select!`: the real tokio's, but in a simulation of `paceline::sim` the simulation chooses the branch that
//! is polled first.
//!
//! The macro calls the inner rule of the real one, which takes the expression for that choice; it was checked
//! for the versions in Cargo.toml. `BRANCHES` is a constant inside of that rule.

pub use real::select as real_select;

/// Waits on several branches, and returns when the first of them is done.
#[macro_export]
macro_rules! select {
    (biased; $($t:tt)*) => {
        $crate::select::real_select!(biased; $($t)*)
    };
    (else $($t:tt)*) => {
        $crate::select::real_select!(else $($t)*)
    };
    () => {
        $crate::select::real_select!()
    };
    ($p:pat = $($t:tt)*) => {
        $crate::select::real_select!(@{ start={ $crate::select::first_branch(BRANCHES) }; () } $p = $($t)*)
    };
}

/// Returns the number of the branch to poll first, of so many.
pub fn first_branch(branches: u32) -> u32 {
    match paceline::sim::try_rng() {
        Some(mut rng) => rng.below(branches.into()) as u32,
        None => real::macros::support::thread_rng_n(branches),
    }
}
