//! [`OpenOptions`]: how a file is opened.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::file::{File, Opened, SimulatedFile};
use super::unsupported;
use crate::simulated::files::OpenFlags;
use crate::simulated::with_simulation;

/// As [`std::fs::OpenOptions`].
#[derive(Clone)]
pub struct OpenOptions {
    real: std::fs::OpenOptions,
    flags: OpenFlags,
    /// Why a simulation does not open a file with them.
    refused: Option<&'static str>,
}

macro_rules! options {
    ($($name:ident)+) => {$(
        #[doc = concat!("As [`std::fs::OpenOptions::", stringify!($name), "`].")]
        pub fn $name(&mut self, $name: bool) -> &mut Self {
            self.real.$name($name);
            self.flags.$name = $name;
            self
        }
    )+};
}

impl OpenOptions {
    /// As [`std::fs::OpenOptions::new`].
    #[must_use]
    #[expect(clippy::new_without_default, reason = "that of std has none")]
    pub fn new() -> Self {
        let flags = OpenFlags { mode: 0o644, ..OpenFlags::default() };
        Self { real: std::fs::OpenOptions::new(), flags, refused: None }
    }

    options!(read write append truncate create create_new);

    /// As [`std::fs::OpenOptions::open`].
    pub fn open<P: AsRef<Path>>(&self, path: P) -> io::Result<File> {
        let path = path.as_ref();
        let simulated = with_simulation(|simulation| {
            if let Some(refused) = self.refused {
                return Err(unsupported(refused));
            }
            let number = simulation.files().open(path, self.flags)?;
            Ok(File(Opened::Simulated(Arc::new(SimulatedFile::new(simulation, number)))))
        });
        simulated.unwrap_or_else(|| self.real.open(path).map(File::from))
    }
}

impl File {
    /// As [`std::fs::File::open`].
    pub fn open<P: AsRef<Path>>(path: P) -> io::Result<File> {
        Self::options().read(true).open(path)
    }

    /// As [`std::fs::File::create`].
    pub fn create<P: AsRef<Path>>(path: P) -> io::Result<File> {
        Self::options().write(true).create(true).truncate(true).open(path)
    }

    /// As [`std::fs::File::create_new`].
    pub fn create_new<P: AsRef<Path>>(path: P) -> io::Result<File> {
        Self::options().read(true).write(true).create_new(true).open(path)
    }

    /// As [`std::fs::File::options`].
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }
}

#[cfg(unix)]
impl std::os::unix::fs::OpenOptionsExt for OpenOptions {
    fn mode(&mut self, mode: u32) -> &mut Self {
        self.real.mode(mode);
        self.flags.mode = mode & 0o7777;
        self
    }

    fn custom_flags(&mut self, flags: i32) -> &mut Self {
        self.real.custom_flags(flags);
        const REFUSED: &str = "a simulation opens no file with `custom_flags`: leave them out there, and call \
                               `sync_data` in place of O_DSYNC";
        // Options of the standard library are refused with any flags.
        if let None | Some(REFUSED) = self.refused {
            self.refused = (flags != 0).then_some(REFUSED);
        }
        self
    }
}

#[cfg(windows)]
impl std::os::windows::fs::OpenOptionsExt for OpenOptions {
    fn access_mode(&mut self, access: u32) -> &mut Self {
        self.refuse().access_mode(access);
        self
    }

    fn share_mode(&mut self, val: u32) -> &mut Self {
        self.refuse().share_mode(val);
        self
    }

    fn custom_flags(&mut self, flags: u32) -> &mut Self {
        self.refuse().custom_flags(flags);
        self
    }

    fn attributes(&mut self, val: u32) -> &mut Self {
        self.refuse().attributes(val);
        self
    }

    fn security_qos_flags(&mut self, flags: u32) -> &mut Self {
        self.refuse().security_qos_flags(flags);
        self
    }
}

#[cfg(windows)]
impl OpenOptions {
    fn refuse(&mut self) -> &mut std::fs::OpenOptions {
        self.refused = Some("a simulation opens no file with options of Windows: leave them out there");
        &mut self.real
    }
}

impl From<std::fs::OpenOptions> for OpenOptions {
    fn from(real: std::fs::OpenOptions) -> Self {
        let refused = "a simulation cannot read `std::fs::OpenOptions`: make those of `tokio::fs`, or of \
                       `paceline::blocking::fs`, instead";
        Self { real, refused: Some(refused), ..Self::new() }
    }
}

impl fmt::Debug for OpenOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.real.fmt(f)
    }
}
