//! What the attributes `main` and `test` put a function's body into.

use std::future::Future;

use crate::pool::block_on::block_on;
use crate::runtime::Runtime;

/// The body of `main`.
///
/// # Panics
///
/// If the default instance with so many threads cannot be made.
#[track_caller]
pub fn main<T>(threads: Option<usize>, body: impl Future<Output = T>) -> T {
    if let Some(threads) = threads {
        if let Err(error) = Runtime::builder().threads(threads).install() {
            panic!("`#[paceline::main]` cannot start: {error}");
        }
    }
    block_on(body)
}

/// The body of a test.
///
/// # Panics
///
/// If its runtime cannot be made.
#[track_caller]
pub fn test<T>(threads: Option<usize>, body: impl Future<Output = T>) -> T {
    match Runtime::builder().threads(threads.unwrap_or(1)).build() {
        Ok(runtime) => runtime.block_on(body),
        Err(error) => panic!("`#[paceline::test]` cannot start: {error}"),
    }
}
