//! The example `redis` as a process: with third-party clients, and with connections that break the protocol.
//!
//! | file | what it shows |
//! |---|---|
//! | `served` | how the process is started, spoken to and ended |
//! | `framing` | any cut of the bytes gives the same commands, or the same error |
//! | `tools` | `redis-cli` and `redis-benchmark` get what they expect |
//! | `bad` | invalid input, incomplete commands and unread replies affect no other client |
//! | `stop` | no reply that is due is lost at the end |
#![cfg(all(unix, not(miri)))]
#![allow(unreachable_pub)]

mod bad;
mod framing;
#[path = "../../examples/testing/src/programs.rs"]
mod programs;
mod served;
mod stop;
mod tools;
