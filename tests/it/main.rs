//! Behaviour, seen from the outside.
//!
//! If a test guards a specific line of `src/`, its comment says what makes it fail when it is taken out. LF1
//! to LF9 are the invariants of `docs/src/internals.md`. Loom models and unit tests stand beside the code;
//! long stress is in `tests/soak`.
//!
//! | behaviour | modules |
//! |---|---|
//! | leadership is passed on, and no wakeup is lost | `promotion` |
//! | a future is polled again before any thread has looked for events | `polled_again` |
//! | notifications and timers: none is lost, none is needless | `notify` |
//! | events reach their source once, and no other source | `event_dispatch` |
//! | sockets, pipes, files | `io`, `io_unix`, `net` |
//! | several tasks at one source | `several_readers` |
//! | transfers that move less than requested | `short_transfers` |
//! | cached readiness beside calls on the descriptor itself | `raw_waits` |
//! | timers that are set while a task waits; a limit for a future | `timer`, `timeout` |
//! | a wake polls the task on the same thread | `direct_polling` |
//! | futures that are large, and where they are dropped | `large_futures` |
//! | tasks that `async-task` built | `foreign_tasks` |
//! | a task blocks its worker | `blocked_worker` |
//! | a thread that was to lead or to look for tasks blocks (LF5) | `blocked_leader` |
//! | all workers block; other places that block | `all_workers_blocked`, `blocked_corner_cases` |
//! | the default instance while it has no workers (LF5) | `default_without_workers` |
//! | a `block_on` inside of a task | `nested` |
//! | a thread that computes, or waits for a core, is not replaced | `busy` |
//! | how often the deputy looks while a poll takes long | `deputy_in_long_polls` |
//! | reports of stalls; reports that the environment asks for | `stalls`, `environment_reports` |
//! | what each thread does; which tasks are unfinished | `threads`, `tasks` |
//! | closures that block; deadlines, input; streams | `blocking`; `jobs`, `hanging_jobs`; `unblock_streams` |
//! | strands | `strand`, `strand_inside` |
//! | user code that calls back into the runtime; bad wakers | `callbacks`, `wakers` |
//! | a closure names the threads | `named_threads` |
//! | panics in user code | `panics` |
//! | the end of a runtime at once | `shutdown` |
//! | the graceful end of a runtime | `drain`, `drain_stuck`, `drain_with`, `drain_inside` |
//! | objects that outlive a runtime | `outlives_runtime` |
//! | a runtime used from other threads; without workers | `handle`; `current_thread` |
//! | signals; a child of `fork` | `signal`; `fork` |
//! | bad input, exhausted limits, refused system calls | `limits`, `sandbox` |
//! | descriptors that other code closes | `closed_descriptors` |
//! | system calls, wake-ups and polls that are not needed | `cost` |
//! | helpers | `setups`, `held_events`, `idle_threads`, `forked_children` |
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
#[cfg(all(target_os = "linux", not(miri)))]
mod closed_descriptors;
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
mod given_time;
mod handle;
#[cfg(all(target_os = "linux", not(miri)))]
mod hanging_jobs;
#[cfg(unix)]
mod held_events;
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
mod named_threads;
mod nested;
mod net;
#[cfg(unix)]
mod notify;
mod outlives_runtime;
#[cfg(unix)]
mod panics;
mod polled_again;
mod promotion;
mod raw_waits;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod sandbox;
mod setups;
#[cfg(unix)]
mod several_readers;
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
mod unblock_streams;
#[cfg(unix)]
mod wakers;
