//! The features `tokio-io` and `tokio`.
#![cfg(unix)]
#![allow(unreachable_pub)]

#[path = "../it/children.rs"]
mod children;
mod context;
#[cfg(target_os = "linux")]
mod cost;
mod fork;
mod io;
#[cfg(target_os = "linux")]
#[path = "../it/resting.rs"]
mod resting;
#[allow(dead_code)]
#[path = "../it/setups.rs"]
mod setups;
