//! Behaviour, seen from the outside.
//!
//! The rows are those of a list of bugs of other runtimes; each test is named after its row. If a row has a
//! specific fix, the test says what makes it fail when it is removed from `src/`.
//!
//! | rows | where |
//! |---|---|
//! | L2, L4, L6, L7 (in short), L11, L12 | `promotion` |
//! | L7 (for minutes) | `../soak` |
//! | L1, L3, L4, L5, L8, L10, N2, S7 | loom models and unit tests beside the code in `src/` |
//! | L9 | unit tests of `reactor::batch`, and the model of `reactor::slumber` |
//! | N1, N3-N8 | `notify` |
//! | L13 | `blocking`, and a loom model beside the code |
//! | B1, B2, B4-B8 | `blocked_worker`; B3 is `promotion::surplus_threads_...` |
//! | LF5 | `default_without_workers`; with workers, tests with `Ping`; broken promises: `blocked_leader`, `all_workers_blocked`, `blocked_corner_cases` |
//! | blocked is not busy | `busy`; its reports, `stalls`; reports by the environment, `environment_reports` |
//! | S1-S6, S8 | `event_dispatch`; S6 also in `io` |
//! | objects that outlive a runtime | `outlives_runtime` |
//! | P1, P2 | `panics` |
//! | P5-P7, P9 | `callbacks` |
//! | P3, P4, P8 | `shutdown` |
//! | P10 | `fork` |
//! | wakers that panic or call back | `wakers`; P1 and P5 also in `panics` and `callbacks` |
//! | D1-D6 | `direct_polling` |
//! | short transfers that are not the last | `short_transfers` |
//! | R1-R7 | `cost` (R3 and R5 without their speed, which benches measure; R6 by what is left registered) |
//! | a `block_on` inside of a task | `nested` |
//! | strands | `strand`, `strand_inside` |
//! | closures that block: L13; deadlines, input; streams | `blocking`; `jobs`, `hanging_jobs`; `unblock_streams` |
//! | bad input, exhausted limits | `limits` |
//! | large futures, and where they are dropped | `large_futures` |
//! | a limit for a future | `timeout` |
//! | a runtime used from other threads | `handle` |
//! | sandboxes that refuse system calls of a runtime | `sandbox` |
//! | the graceful end of a runtime | `drain`, `drain_stuck`, `drain_with`, `drain_inside` |
//! | trust in cached readiness | `trusted` |
//! | a runtime without workers | `current_thread` |
//! | what each thread does | `threads` |
//! | the lists of tasks: unfinished, cancelled, panicked | `tasks` |
#![allow(unreachable_pub)]

mod all_workers_blocked;
#[cfg(unix)]
mod blocked_corner_cases;
mod blocked_leader;
#[cfg(unix)]
mod blocked_worker;
mod blocking;
#[cfg(all(target_os = "linux", not(miri)))]
mod busy;
#[cfg(unix)]
mod callbacks;
#[cfg(unix)]
mod cost;
mod current_thread;
#[cfg(unix)]
mod default_without_workers;
#[cfg(all(target_os = "linux", not(miri)))]
mod deputy_in_long_polls;
mod direct_polling;
mod drain;
mod drain_inside;
mod drain_stuck;
mod drain_with;
#[cfg(all(target_os = "linux", not(miri)))]
mod environment_reports;
#[cfg(unix)]
mod event_dispatch;
#[cfg(unix)]
mod foreign_tasks;
#[cfg(unix)]
mod fork;
#[cfg(unix)]
mod forked_children;
mod handle;
#[cfg(all(target_os = "linux", not(miri)))]
mod hanging_jobs;
#[cfg(unix)]
mod idle_threads;
mod io;
#[cfg(unix)]
mod io_unix;
mod jobs;
#[cfg(unix)]
mod large_futures;
#[cfg(unix)]
mod limits;
mod nested;
mod net;
#[cfg(unix)]
mod notify;
mod outlives_runtime;
#[cfg(unix)]
mod panics;
mod polled_again;
mod promotion;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod sandbox;
mod setups;
#[cfg(target_os = "linux")]
mod short_transfers;
mod shutdown;
#[cfg(unix)]
mod signal;
#[cfg(all(target_os = "linux", not(miri)))]
mod stalls;
mod strand;
mod strand_inside;
mod tasks;
#[cfg(all(target_os = "linux", not(miri)))]
mod threads;
mod timeout;
mod timer;
mod trusted;
mod unblock_streams;
#[cfg(unix)]
mod wakers;
