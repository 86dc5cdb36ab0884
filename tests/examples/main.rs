//! The examples `echo` and `roles` as processes, with third-party clients. (`redis` has tests of its own.)
//!
//! | file | what it shows |
//! |---|---|
//! | `process`, `programs` | how an example is started, listened to and ended |
//! | `all` | each example answers `--help` and refuses wrong arguments; `stall`, `timers` report correctly |
//! | `echo` | every byte comes back; thousands of connections, if the system allows them; a clean end |
//! | `shards` | each shard serves connections, on cores of its own; none is cut off at a clean end |
//! | `roles` | frames as text, a picture, and the view in a terminal emulated by Python |
#![cfg(all(unix, not(miri)))]
#![allow(unreachable_pub)]

mod all;
mod echo;
mod process;
#[path = "../../examples/testing/src/programs.rs"]
mod programs;
mod roles;
#[cfg(target_os = "linux")]
mod shards;
