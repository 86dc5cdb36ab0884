//! The executor traits of `futures`, [`Spawn`] and [`LocalSpawn`], for crates that take any executor.
//!
//! A task that is spawned through them is detached; `SpawnExt` and `LocalSpawnExt` of `futures` return
//! handles.
//!
//! ```
//! use futures::task::{Spawn, SpawnExt};
//! use paceline::{Executor, Runtime, block_on};
//!
//! fn answers(spawner: &impl Spawn) -> impl Future<Output = u8> {
//!     spawner.spawn_with_handle(async { 42 }).expect("it is not shut down")
//! }
//!
//! # fn main() -> std::io::Result<()> {
//! let runtime = Runtime::builder().threads(1).build()?;
//! assert_eq!(runtime.block_on(answers(&runtime)), 42);
//!
//! let executor = Executor::new();
//! assert_eq!(block_on(executor.run(answers(&executor))), 42);
//! # Ok(())
//! # }
//! ```

use futures::task::{FutureObj, LocalFutureObj, LocalSpawn, Spawn, SpawnError};

use crate::executor::{Executor, LocalExecutor};
use crate::runtime::{Handle, Runtime};

impl Spawn for Executor<'_> {
    #[track_caller]
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.spawn(future).detach();
        Ok(())
    }
}

impl LocalSpawn for LocalExecutor<'_> {
    #[track_caller]
    fn spawn_local_obj(&self, future: LocalFutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.spawn(future).detach();
        Ok(())
    }
}

/// Returns an error once the runtime is shut down, drained or dropped.
impl Spawn for Handle {
    #[track_caller]
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        self.status()?;
        self.spawn(future).detach();
        Ok(())
    }

    fn status(&self) -> Result<(), SpawnError> {
        if self.accepts() { Ok(()) } else { Err(SpawnError::shutdown()) }
    }
}

/// Returns an error once the runtime is shut down or drained.
impl Spawn for Runtime {
    #[track_caller]
    fn spawn_obj(&self, future: FutureObj<'static, ()>) -> Result<(), SpawnError> {
        (**self).spawn_obj(future)
    }

    fn status(&self) -> Result<(), SpawnError> {
        (**self).status()
    }
}
