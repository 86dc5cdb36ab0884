//! The functions that run the body of a function with the attribute `main` or `test`.

use std::future::Future;

use crate::current::block_on;
use crate::runtime::{Builder, Runtime};

/// Runs the body of `main` in a `block_on` of the default instance, which is installed here with that number
/// of threads, if one is given.
///
/// # Panics
///
/// If the default instance with that number of threads cannot be made.
#[track_caller]
pub fn main<T>(threads: Option<usize>, body: impl Future<Output = T>) -> T {
    if let Some(threads) = threads {
        if let Err(error) = Runtime::builder().threads(threads).install() {
            panic!("`#[paceline::main]` cannot start: {error}");
        }
    }
    block_on(body)
}

/// Runs the body of `main` in a runtime of the current thread, which ends with it.
///
/// # Panics
///
/// If the runtime cannot be made.
#[track_caller]
pub fn main_on_current_thread<T>(body: impl Future<Output = T>) -> T {
    start("main", Runtime::builder().current_thread()).block_on(body)
}

/// Runs the body of a test in a runtime of its own with that number of threads, or with one, which ends with
/// the test.
///
/// # Panics
///
/// If the runtime cannot be made.
#[track_caller]
pub fn test<T>(threads: Option<usize>, body: impl Future<Output = T>) -> T {
    start("test", Runtime::builder().threads(threads.unwrap_or(1))).block_on(body)
}

/// Runs the body of a test in a runtime of the current thread, which ends with the test.
///
/// # Panics
///
/// If the runtime cannot be made.
#[track_caller]
pub fn test_on_current_thread<T>(body: impl Future<Output = T>) -> T {
    start("test", Runtime::builder().current_thread()).block_on(body)
}

/// Runs the body of a test in a runtime of the current thread, with the clock paused.
///
/// # Panics
///
/// If the runtime cannot be made.
#[cfg(feature = "test-clock")]
#[track_caller]
pub fn test_with_paused_clock<T>(body: impl Future<Output = T>) -> T {
    start("test", Runtime::builder().current_thread().start_paused(true)).block_on(body)
}

/// Builds the runtime of an attribute. Panics, with the name of the attribute, if that fails.
#[track_caller]
fn start(attribute: &str, builder: Builder) -> Runtime {
    builder.build().unwrap_or_else(|error| panic!("`#[paceline::{attribute}]` cannot start: {error}"))
}
