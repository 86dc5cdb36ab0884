//! A flight recorder: shows what the threads of a runtime did in the last seconds, after something was slow.
//! And [dumps](crate::Handle::dump) of tasks: what each task waits for, after nothing moves any more.
//!
//! A [`FlightRecorder`] records while the program runs, and keeps the most recent events. When a request took
//! too long, or a task blocks its thread, the program takes a [snapshot](Recorder::snapshot), and writes it
//! in the format of [Perfetto](https://ui.perfetto.dev) or of dial9.
//!
//! ```
//! use paceline::trace::FlightRecorder;
//!
//! # fn main() -> std::io::Result<()> {
//! let runtime = paceline::Runtime::builder().threads(2).build()?;
//! let recorder = FlightRecorder::new().start(&runtime);
//! runtime.block_on(runtime.spawn(async { 6 * 7 }));
//!
//! let mut file = Vec::new();    // or a file
//! recorder.snapshot().write_perfetto(&mut file)?;
//! # assert!(!file.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! With the feature, a [`Stall`](crate::Stall) also names the line that blocks.
//!
//! # What it costs
//!
//! Without the feature `trace` nothing. With the feature and without a recorder, a poll of a task costs some
//! loads of a thread-local pointer, and a task takes 16 bytes more. While a recorder runs, a poll costs about
//! 150 nanoseconds, for five notes with a time each.
//!
//! # When nothing works any more
//!
//! A snapshot needs neither a worker nor the reactor, so it works while all threads of the runtime are
//! blocked. Take it on a thread that waits for a signal, in a panic hook, or in
//! [`Builder::on_stall`](crate::Builder::on_stall). A signal handler itself must not take one, because a
//! snapshot allocates.

mod dial9;
mod dump;
mod events;
mod names;
pub(crate) mod perfetto;
mod recorder;
mod seats;
#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod sketch;
mod timeline;
mod varint;
mod waits;

pub use crate::flight::{FoundIn, Reason};
pub use dump::{Dump, TaskDump, TaskState};
pub use events::{Action, ThreadTrace, Trace, TraceEvent};
pub use recorder::{FlightRecorder, Recorder};
pub use waits::{TaskWait, waits};
