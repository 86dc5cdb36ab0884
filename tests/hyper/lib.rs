//! HTTP by hyper over `paceline::hyper`, seen from the outside.
//!
//! | what | where |
//! |---|---|
//! | the memory of reads, shutdown, slices; timers; where tasks run | `adapters` |
//! | HTTP/1: requests, bodies, upgrades, timeouts, half-closed streams | `http1` |
//! | HTTP/2: streams, bodies, tunnels, unanswered pings | `http2` |
//! | peers that reset, graceful ends, and other connections beside them | `ends` |
#![cfg(all(unix, test))]
#![allow(unreachable_pub)]

mod adapters;
#[cfg(not(miri))]
mod ends;
#[allow(dead_code)]
#[path = "../it/given_time.rs"]
mod given_time;
#[cfg(not(miri))]
mod http1;
#[cfg(not(miri))]
mod http2;
#[cfg(all(target_os = "linux", not(miri)))]
#[allow(dead_code)]
#[path = "../it/idle_threads.rs"]
mod idle_threads;
#[cfg(not(miri))]
mod scene;
#[path = "../it/setups.rs"]
#[allow(dead_code)]
mod setups;
