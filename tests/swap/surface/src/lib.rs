//! The parts of `async-executor`, `async-io` and `blocking` that programs rely on at compile time: names,
//! signatures, auto traits. Code that must *not* compile is here; the rest is in `tests/`.
//!
//! An executor lives exactly as long as the borrows of its tasks. So its lifetime cannot be shortened:
//!
//! ```compile_fail
//! fn shorter<'a>(executor: &'a async_executor::Executor<'static>) -> &'a async_executor::Executor<'a> { executor }
//! ```
//! ```compile_fail
//! fn shorter<'a>(executor: &'a async_executor::LocalExecutor<'static>) -> &'a async_executor::LocalExecutor<'a> { executor }
//! ```
//!
//! Futures of a local executor need not be `Send`, those of the others must be:
//!
//! ```compile_fail
//! async_executor::Executor::new().spawn(std::future::pending::<std::rc::Rc<()>>());
//! ```
//! ```compile_fail
//! static EXECUTOR: async_executor::StaticExecutor = async_executor::StaticExecutor::new();
//! EXECUTOR.spawn(std::future::pending::<std::rc::Rc<()>>());
//! ```
//!
//! A handle whose reads could replace the descriptor has no `AsyncRead`:
//!
//! ```compile_fail
//! struct Swaps(Vec<std::net::TcpStream>);
//! impl std::io::Read for Swaps {
//!     fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> { self.0[0].read(buf) }
//! }
//! fn reads<T: futures_lite::AsyncRead>() {}
//! reads::<async_io::Async<Swaps>>();
//! ```
