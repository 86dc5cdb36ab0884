//! The machinery of the driver: processes, figures, tables, plots.

pub(crate) mod ace;
mod bystanders;
pub(crate) mod child;
pub(crate) mod division;
pub(crate) mod environment;
pub(crate) mod plan;
pub(crate) mod plot;
pub(crate) mod procfs;
pub(crate) mod results;
pub(crate) mod rig;
pub(crate) mod strace;
pub(crate) mod swapped;
pub(crate) mod sweep;
pub(crate) mod table;
pub(crate) mod tool;
