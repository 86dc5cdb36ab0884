//! To be written.
pub fn spawn() {}
