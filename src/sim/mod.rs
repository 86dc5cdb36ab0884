//! Simulations: a program of tasks runs on one thread, under a virtual clock, and a seed decides the rest.
//! Requires the feature `sim`.
//!
//! A simulation chooses by its seed which of the ready tasks is polled next, and how long closures that block
//! take. Its clock stands while tasks are ready, and then jumps to the next timer or packet. So a run takes
//! no longer than its polls do. The same seed gives the same run, and other seeds give other runs: a bug that
//! shows once in ten thousand runs is found, and then happens again as often as it takes to understand it.
//!
//! ```
//! use std::time::Duration;
//! use paceline::sim::Sim;
//! use paceline::{Timer, spawn, timeout};
//!
//! for seed in 0..100 {
//!     let mut sim = Sim::new(seed);
//!     let late = sim.block_on(async {
//!         let (ask, asked) = async_channel::bounded(1);
//!         spawn(async move {
//!             while asked.recv().await.is_ok() {
//!                 Timer::after(Duration::from_millis(20)).await;
//!             }
//!         })
//!         .detach();
//!         // One request waits while another one is served.
//!         let requests = async { for n in 0..3 { ask.send(n).await.unwrap() } };
//!         timeout(Duration::from_millis(10), requests).await.is_err()
//!     });
//!     assert!(late, "with seed {seed}");
//! }
//! ```
//!
//! With the feature `macros`, `#[paceline::sim(seeds = 1000)]` makes a function a test that runs under so
//! many seeds. The guide has a chapter on simulations, with a table of what is
//! controlled, what is detected, and what is outside.
//!
//! # What a simulation runs
//!
//! All of this crate's own types work as they do elsewhere: [`spawn`](crate::spawn()),
//! [`Timer`](crate::Timer), [`timeout`](crate::timeout()), [`Strand`](crate::Strand), and an
//! [`Executor`](crate::Executor) that is made inside. What needs no runtime works, too: channels and locks of
//! other crates. [`clock::now`](crate::clock::now) returns the virtual time.
//!
//! A closure that [blocks](crate::blocking) runs on the simulation's thread, in a task of its own, at a
//! random later time. A [job](crate::blocking::Job)'s result comes at a random time after that, so its
//! deadline may pass before the closure begins, or between its effects and its result.
//!
//! To make a pipe, to wait for a child process, or to register any other descriptor of the operating system
//! is an error of the kind [`Unsupported`](std::io::ErrorKind::Unsupported).
//!
//! The clocks and random numbers of the operating system, and with them the order of a `HashMap`, belong to
//! the simulation if the test program has [`sim_libc!`](crate::sim_libc!) outside of its functions.
//!
//! # The network
//!
//! The sockets of [`net`](crate::net) belong to a simulated network. Its hosts are the nodes of the
//! simulation: see [`Sim::node`] and [`Network`]. A task runs on the host of the task that spawned it.
//! The test itself is on a host named `test`. Names of nodes can be looked up.
//!
//! Packets take time, and may be lost; TCP sends them again. What happens to a packet is an event, as a poll
//! is. The network exists on Linux and Android. Elsewhere, to make a socket is an error, too.
//!
//! # Files
//!
//! Each node has files of its own, which survive a crash of the node, except for what was not synced. The
//! functions of [`blocking::fs`](crate::blocking::fs) act on them; see [`Files`].
//!
//! # What is an error
//!
//! A simulation fails, and [`Sim::run_for`] or [`Sim::block_on`] panics with the reason, if
//!
//! - a thread outside of it wakes one of its tasks, or spawns one: the message names the thread and the spawn
//!   line of the task;
//! - the future of a `block_on` waits, and nothing else will happen: the message lists the waiting tasks;
//! - tasks wake each other for ever, and the clock stands;
//! - [`check`] finds that its second run differs from the first.
//!
//! The message has the seed. If the thread panics for another reason while a [`Sim`] exists, the drop of the
//! [`Sim`] prints the seed, the faults so far, and what the nodes noted and sent; and if the process aborts
//! in a simulation, that prints the seed (on Unix).

#[cfg_attr(all(unix, not(miri)), path = "aborts_unix.rs")]
#[cfg_attr(not(all(unix, not(miri))), path = "aborts_plain.rs")]
mod aborts;
mod closures;
mod control;
mod events;
mod files;
mod hooks;
mod journal;
#[doc(hidden)]
#[cfg_attr(
    not(all(any(target_os = "linux", target_os = "android"), target_pointer_width = "64")),
    path = "libc_calls_off.rs"
)]
pub mod libc_calls;
mod net;
mod network;
mod nodes;
mod order;
mod pieces;
mod plan;
mod presence;
mod report;
mod rng;
mod run;
mod seeds;
mod shrink;
#[expect(clippy::module_inception, reason = "named after its type, as the others are")]
mod sim;
mod simulation;
mod sockets;
mod story;
mod system;
mod tasks;
mod trace_file;
mod way;

#[doc(hidden)]
pub use crate::simulated::{SystemClocks, system_clocks};
pub use control::Network;
pub use files::Files;
pub use net::{Packet, PacketBody, RuleId, Segment, Unreachable, Verdict};
pub use order::Order;
pub use report::Report;
pub use rng::Rng;
pub use run::check;
#[doc(hidden)]
pub use seeds::run_seeds;
pub use sim::Sim;

use std::any::Any;
use std::fmt::Display;
use std::panic::Location;
use std::sync::Arc;

use presence::current;

/// Returns a generator of random numbers for the program in the simulation that runs on this thread, as
/// [`Sim::rng`] does for the test around it. Each call returns another one.
///
/// ```
/// use paceline::sim::{self, Sim};
/// let roll = |seed| Sim::new(seed).block_on(async { sim::rng().below(1_000_000) });
/// assert_eq!(roll(7), roll(7));
/// ```
///
/// # Panics
///
/// If no simulation runs on this thread. For code that also runs outside of simulations, see [`try_rng`].
#[track_caller]
pub fn rng() -> Rng {
    try_rng().expect("`sim::rng`: no simulation runs on this thread; `sim::try_rng` returns `None` then")
}

/// Like [`rng()`], but returns `None` if no simulation runs on this thread.
///
/// ```
/// use paceline::sim::{self, Sim};
/// let from_the_seed = || sim::try_rng().map(|mut rng| rng.below(1000));
/// assert_eq!(from_the_seed(), None);
/// assert!(Sim::new(7).block_on(async move { from_the_seed() }) < Some(1000));
/// ```
pub fn try_rng() -> Option<Rng> {
    current().map(|simulation| simulation.rng())
}

/// Returns the name of the node on which the present task runs: `test` for a task of the test, and for the
/// test itself; `None` if no simulation runs on this thread. For example, the lines of a log may begin with
/// it.
///
/// ```
/// use paceline::sim::{self, Sim};
/// let mut sim = Sim::new(7);
/// let name = sim.client("shop", async { sim::node() });
/// assert_eq!(sim.block_on(name).as_deref(), Some("shop"));
/// assert_eq!(sim::node().as_deref(), Some("test"));
/// ```
pub fn node() -> Option<String> {
    current().map(|simulation| simulation.node())
}

/// Adds a text to the events of the simulation that runs on this thread: so [`check`] compares what a program
/// computes, and not only which tasks are polled when. Does nothing if no simulation runs.
///
/// ```
/// use paceline::sim::{self, Sim};
/// let hash_of = |text: &'static str| {
///     let mut sim = Sim::new(7);
///     sim.block_on(async move { sim::note(text) });
///     sim.report().hash
/// };
/// assert_eq!(hash_of("a"), hash_of("a"));
/// assert_ne!(hash_of("a"), hash_of("b"));
/// ```
pub fn note(text: impl Display) {
    if let Some(simulation) = current() {
        simulation.note(&text.to_string());
    }
}

/// Does what [`buggify!`](crate::buggify!) does with the feature `sim`. Programs use the macro.
#[doc(hidden)]
#[track_caller]
pub fn buggify(probability: f64) -> bool {
    assert!((0.0..=1.0).contains(&probability), "{probability} is no probability");
    // Not in the closure, which is not called by the caller.
    let at = Location::caller();
    current().is_some_and(|simulation| simulation.injects_fault(at, probability))
}

/// Returns true now and then in a simulation, by its seed, and false elsewhere: for faults that a program
/// injects into itself, so that a simulation finds what happens then. Without the feature `sim` it is false,
/// so it may stay in a program that is not simulated.
///
/// A seed makes about a quarter of the places in a program with this macro faulty. In these places, it is
/// true with the given probability. So in some runs one thing often goes wrong and everything else works,
/// which finds more than many faults at once. Each fault is an event with a text, as by
/// [`sim::note`](crate::sim::note).
///
/// # Panics
///
/// With the feature `sim`, if the probability is not between 0 and 1.
///
/// ```
/// use paceline::{buggify, sim::Sim};
///
/// async fn request() -> Result<(), &'static str> {
///     if buggify!(0.1) {
///         return Err("the connection was lost");
///     }
///     Ok(())
/// }
///
/// let faults = |seed| Sim::new(seed).block_on(async {
///     let mut faults = 0;
///     for _ in 0..1000 {
///         faults += usize::from(request().await.is_err());
///     }
///     faults
/// });
/// let faulty: Vec<usize> = (0..100).map(faults).filter(|faults| *faults > 0).collect();
/// assert!((10..40).contains(&faulty.len()) && faulty.iter().all(|faults| (50..150).contains(faults)));
/// ```
#[macro_export]
macro_rules! buggify {
    ($probability:expr) => {
        $crate::sim::buggify($probability)
    };
}

/// Returns the value of that type in the simulation that runs on this thread, made by the first call; `None`
/// if none runs. This is for the package that replaces tokio.
#[doc(hidden)]
pub fn local<T: Any + Send + Sync>(make: impl FnOnce() -> T) -> Option<Arc<T>> {
    current().map(|simulation| simulation.local(make))
}
