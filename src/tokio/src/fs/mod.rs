//! Files and folders. Their calls block, so the runtime's blocking threads make them. `sync_fs` is
//! `std::fs`, or with the feature `sim` one whose calls act on the files of the node in a simulation.

mod dir_builder;
mod file;
mod file_times;
mod open_options;
mod read_dir;

use std::io;
use std::path::{Path, PathBuf};

pub use dir_builder::DirBuilder;
pub use file::File;
pub use file_times::FileTimes;
pub use open_options::OpenOptions;
pub use read_dir::{DirEntry, ReadDir, read_dir};

use paceline::blocking::sync_fs;
use sync_fs::{Metadata, Permissions};

use crate::context;

/// Makes a call of the standard library on a blocking thread.
async fn blocking<T: Send + 'static>(call: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    context::expect().spawn_blocking(call).await.unwrap_or_else(|_| Err(failed()))
}

/// The error of a call that was not made because the runtime has ended, or that panicked.
fn failed() -> io::Error {
    io::Error::other("background task failed")
}

macro_rules! functions {
    ($($name:ident($($path:ident),+ $(; $arg:ident: $arg_ty:ty)?) -> $out:ty $(= $call:path)?;)+) => {$(
        pub async fn $name($($path: impl AsRef<Path>),+ $(, $arg: $arg_ty)?) -> io::Result<$out> {
            $(let $path = $path.as_ref().to_owned();)+
            blocking(move || functions!(@call $name $($call)?)($($path),+ $(, $arg)?)).await
        }
    )+};
    (@call $name:ident) => { sync_fs::$name };
    (@call $name:ident $call:path) => { $call };
}

functions! {
    canonicalize(path) -> PathBuf;
    copy(from, to) -> u64;
    create_dir(path) -> ();
    create_dir_all(path) -> ();
    hard_link(original, link) -> ();
    metadata(path) -> Metadata;
    read(path) -> Vec<u8>;
    read_link(path) -> PathBuf;
    read_to_string(path) -> String;
    remove_dir(path) -> ();
    remove_dir_all(path) -> ();
    remove_file(path) -> ();
    rename(from, to) -> ();
    set_permissions(path; perm: Permissions) -> ();
    symlink_metadata(path) -> Metadata;
    try_exists(path) -> bool = sync_fs::exists;
}

#[cfg(unix)]
functions! {
    symlink(original, link) -> () = sync_fs::symlink;
}

#[cfg(windows)]
functions! {
    symlink_dir(original, link) -> () = sync_fs::symlink_dir;
    symlink_file(original, link) -> () = sync_fs::symlink_file;
}

pub async fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let (path, contents) = (path.as_ref().to_owned(), contents.as_ref().to_owned());
    blocking(move || sync_fs::write(path, contents)).await
}
