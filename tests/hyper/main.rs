//! HTTP by hyper over `paceline::hyper`, from the outside.
//!
//! | what | where |
//! |---|---|
//! | memory that reads go into, shutdown, slices; timers; where tasks run | `adapters` |
//! | HTTP/1: requests, bodies, upgrades, timeouts, half-closed streams | `http1` |
//! | HTTP/2: streams, bodies, tunnels, pings that nobody answers | `http2` |
//! | peers that reset, graceful ends, and that nobody else notices | `ends` |
#![cfg(unix)]
#![allow(unreachable_pub)]

mod adapters;
#[cfg(not(miri))]
mod ends;
#[cfg(not(miri))]
mod http1;
#[cfg(not(miri))]
mod http2;
#[cfg(not(miri))]
mod scene;
#[path = "../it/setups.rs"]
#[allow(dead_code)]
mod setups;
