//! The costs of tasks: spawn, wake, yield, timers and memory, for each rival behind one small trait.
//!
//! Hypothesis: a runtime that polls a woken task on the thread that woke it needs no queue per wake, so
//! chains and ping-pongs are cheap; spawns are async-task's cost for both paceline and smol.

mod accuracy;
mod blocking;
mod calls;
mod cases;
mod channels;
mod memory;
mod report;
mod rivals;
#[cfg(feature = "paceline")]
mod serial;
mod spawns;
mod timers;
mod wakes;
mod yields;

pub use memory::Counting;
pub use report::main;
