//! [`OpenOptions`]: options for opening a file.

use std::io;
use std::path::Path;

use super::{File, blocking, sync_fs};

#[derive(Clone, Debug)]
pub struct OpenOptions(sync_fs::OpenOptions);

macro_rules! options {
    ($($name:ident: $ty:ty),+ $(,)?) => {$(
        pub fn $name(&mut self, $name: $ty) -> &mut Self {
            self.0.$name($name);
            self
        }
    )+};
}

impl OpenOptions {
    pub fn new() -> Self {
        Self(sync_fs::OpenOptions::new())
    }

    options!(read: bool, write: bool, append: bool, truncate: bool, create: bool, create_new: bool);

    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let (path, options) = (path.as_ref().to_owned(), self.0.clone());
        blocking(move || options.open(path)).await.map(File::of)
    }
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::OpenOptionsExt;

    impl super::OpenOptions {
        options!(mode: u32, custom_flags: i32);
    }
}

#[cfg(windows)]
mod windows {
    use std::os::windows::fs::OpenOptionsExt;

    impl super::OpenOptions {
        options!(access_mode: u32, share_mode: u32, custom_flags: u32, attributes: u32, security_qos_flags: u32);
    }
}

impl From<std::fs::OpenOptions> for OpenOptions {
    fn from(options: std::fs::OpenOptions) -> Self {
        Self(options.into())
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}
