//! The example `redis`, as a process: what clients that are not ours say of it, and what becomes of those that are no clients at all.
//!
//! | file | what it shows |
//! |---|---|
//! | `served` | how the process is started, spoken to and ended |
//! | `framing` | any cut of the bytes gives the same commands, or the same error |
//! | `tools` | `redis-cli` and `redis-benchmark` get what they expect |
//! | `bad` | what is not the protocol, half of it, or not read, costs nobody else |
//! | `stop` | no reply that is due is lost at the end |
#![cfg(all(unix, not(miri)))]
#![allow(unreachable_pub)]

mod bad;
mod framing;
mod served;
mod stop;
mod tools;
