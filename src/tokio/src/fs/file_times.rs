//! [`FileTimes`]: the times to set on a file.

use std::time::SystemTime;

#[derive(Debug, Clone, Default)]
#[must_use = "must be applied to a file via `File::set_times` to have any effect"]
pub struct FileTimes(std::fs::FileTimes);

impl FileTimes {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn set_accessed(self, t: SystemTime) -> Self {
        Self(self.0.set_accessed(t))
    }

    pub fn set_modified(self, t: SystemTime) -> Self {
        Self(self.0.set_modified(t))
    }

    #[cfg(target_vendor = "apple")]
    pub fn set_created(self, t: SystemTime) -> Self {
        Self(std::os::darwin::fs::FileTimesExt::set_created(self.0, t))
    }

    #[cfg(windows)]
    pub fn set_created(self, t: SystemTime) -> Self {
        Self(std::os::windows::fs::FileTimesExt::set_created(self.0, t))
    }

    pub(super) fn into_std(self) -> std::fs::FileTimes {
        self.0
    }
}
