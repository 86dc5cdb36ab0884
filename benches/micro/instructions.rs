//! Has a hot path grown by more than 5 % over the figures committed in `instructions.txt`?
//!
//! `instructions --check [CASE]... | --accept`. A crate root of its own, like `statistics.rs`: what else the compiler
//! sees of paceline's generic code decides what it inlines, so a count may change with code that is not even run.

mod cases;
mod gate;

use std::process::ExitCode;

fn main() -> ExitCode {
    gate::main()
}
