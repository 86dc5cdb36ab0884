//! [`Report`]: what a simulation has done.

use std::fmt;
use std::time::Duration;

/// What a simulation has done so far.
///
/// ```
/// use std::time::Duration;
/// use paceline::Timer;
/// use paceline::sim::Sim;
///
/// let mut sim = Sim::new(7);
/// sim.spawn(Timer::after(Duration::from_secs(1))).detach();
/// let report = sim.run_for(Duration::from_secs(60));
/// assert_eq!(report.elapsed, Duration::from_secs(60));
/// println!("{report}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The seed of the simulation.
    pub seed: u64,
    /// A hash of all events: two runs with the same hash have done the same things in the same order.
    pub hash: u64,
    /// Spawns, wakes, polls and ends of tasks, texts that were [noted](super::note), packets, and changes of
    /// files.
    pub events: u64,
    /// Polls of tasks.
    pub polls: u64,
    /// Tasks that have panicked.
    pub panics: u64,
    /// The virtual time since the start of the simulation.
    pub elapsed: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, hash, events, polls, panics, elapsed } = self;
        write!(
            f,
            "seed {seed}: hash {hash:016x}, {events} events, {polls} polls in {elapsed:?} of virtual time"
        )?;
        if *panics > 0 { write!(f, ", {panics} panics of tasks") } else { Ok(()) }
    }
}
