//! The features `tokio-io` and `tokio`.
#![cfg(all(unix, test))]
#![allow(unreachable_pub)]

mod context;
#[cfg(target_os = "linux")]
mod cost;
mod fork;
#[allow(dead_code)]
#[path = "../it/forked_children.rs"]
mod forked_children;
#[allow(dead_code)]
#[path = "../it/given_time.rs"]
mod given_time;
#[cfg(target_os = "linux")]
#[path = "../it/idle_threads.rs"]
mod idle_threads;
mod io;
#[allow(dead_code)]
#[path = "../it/setups.rs"]
mod setups;
