//! Behaviour, from the outside.
//!
//! Rows are those of the list of bugs that others had; each test is named after its row. Where a row's fix can be named,
//! the test says what, taken out of `src/`, makes it fail.
//!
//! | rows | where |
//! |---|---|
//! | L2, L4, L6, L7 (in short), L11, L12 | `promotion` |
//! | L7 (for minutes) | `../soak` |
//! | L1, L3, L4, L5, L8, L10, N2, S7 | loom models and unit tests beside the code in `src/` |
//! | L9 | unit tests of `reactor::batch`, and the model of `reactor::slumber` |
//! | N1, N3-N8 | `notify` |
//! | L13 | `blocking`, and a loom model beside the code |
//! | B1, B2, B4-B8 | `blind`; B3 is `promotion::l11_b3_...` |
//! | LF5 | `alone`; with workers, what `Ping` is for; where a promise is broken on purpose, `answerable`, `stuck` and `relatives` |
//! | blocked is not busy | `busy`; what is told of it, `stalls` |
//! | S1-S6, S8 | `stale`; S6 also in `io` |
//! | what outlives a runtime | `outlive` |
//! | P1, P2 | `panics` |
//! | P5-P7, P9 | `callbacks` |
//! | P3, P4, P8 | `shutdown` |
//! | P10 | `fork` |
//! | wakers that panic or call back | `wakers`; P1 and P5 also in `panics` and `callbacks` |
//! | D1-D6 | `direct` |
//! | short transfers that are not the last | `short` |
//! | R1-R7 | `cost` (R3 and R5 for correctness only, R6 by what is left registered; their speed is for benches) |
//! | a `block_on` inside of a task | `nested` |
//! | strands | `strand`, `strand_inside` |
//! | what blocks on purpose: L13; deadlines, bad input; streams | `blocking`; `jobs`, `lost`; `unblock_streams` |
//! | bad input, exhausted limits | `limits` |
//! | a limit for a future | `timeout` |
//! | a runtime from threads that are not its own | `handle` |
//! | the graceful end of a runtime | `drain`; who is stuck, `drain_stuck`; with jobs, strands, handles, `drain_with` |
//! | trust in what is known about a descriptor | `trusted` |
//! | a runtime without workers | `current_thread` |
//! | what each thread is at | `threads` |
//! | the map of the source | `layers` |
#![allow(unreachable_pub)]

mod again;
#[cfg(unix)]
mod answerable;
mod io;
mod layers;

#[cfg(unix)]
mod alone;
#[cfg(unix)]
mod blind;
#[cfg(unix)]
mod blocking;
#[cfg(all(target_os = "linux", not(miri)))]
mod busy;
#[cfg(unix)]
mod callbacks;
#[cfg(unix)]
mod children;
#[cfg(unix)]
mod cost;
#[cfg(unix)]
mod current_thread;
#[cfg(unix)]
mod direct;
#[cfg(unix)]
mod drain;
#[cfg(unix)]
mod drain_stuck;
#[cfg(unix)]
mod drain_with;
#[cfg(unix)]
mod fork;
#[cfg(unix)]
mod handle;
#[cfg(unix)]
mod io_unix;
#[cfg(unix)]
mod jobs;
#[cfg(unix)]
mod limits;
#[cfg(all(target_os = "linux", not(miri)))]
mod lost;
#[cfg(unix)]
mod nested;
mod net;
#[cfg(unix)]
mod notify;
#[cfg(unix)]
mod outlive;
#[cfg(unix)]
mod panics;
#[cfg(unix)]
mod promotion;
#[cfg(unix)]
mod relatives;
#[cfg(unix)]
mod resting;
#[cfg(unix)]
mod setups;
#[cfg(target_os = "linux")]
mod short;
#[cfg(unix)]
mod shutdown;
mod signal;
#[cfg(unix)]
mod stale;
#[cfg(all(target_os = "linux", not(miri)))]
mod stalls;
#[cfg(unix)]
mod strand;
#[cfg(unix)]
mod strand_inside;
#[cfg(unix)]
mod stuck;
#[cfg(all(target_os = "linux", not(miri)))]
mod threads;
#[cfg(unix)]
mod timeout;
mod timer;
#[cfg(unix)]
mod trusted;
#[cfg(unix)]
mod unblock_streams;
#[cfg(unix)]
mod wakers;
