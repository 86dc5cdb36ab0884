//! The library of the three programs of this package.
//!
//! | program | question |
//! |---|---|
//! | `paceline-bench` | how does paceline compare with its rivals? Tables, plots, raw figures |
//! | `serve` | one rival's HTTP responder, to be driven by wrk or anything else |
//! | `tasks` | what do a spawn, a wake, a timer and a task's memory cost? |
//!
//! - [`handler`]: the HTTP responder that every server runs; no I/O.
//! - [`servers`]: one file per rival that drives the handler.
//! - [`load`]: the load generator.
//! - [`tasks`]: the task costs; `transfer`: one end of a long stream; `fairness`: waits
//!   beside tasks that compute.
//! - `workloads`: one question per file; `driver`: what they share; [`svg`] and [`stats`]: plots and medians;
//!   `readme`: the tables of the project's README.

pub mod cli;
mod costs;
mod descriptors;
mod driver;
mod fairness;
pub mod handler;
pub mod load;
mod readme;
pub mod servers;
pub mod stats;
pub mod svg;
pub mod tasks;
mod transfer;
mod workloads;
