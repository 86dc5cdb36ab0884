//! Has a hot path grown by more than 5 % over the figures committed in `instructions.txt`?
//!
//! `instructions --check [CASE]... | --accept`. A crate root of its own, like `statistics.rs`: inlining
//! depends on all code of a crate that uses paceline's generic code, so a count may change with code that
//! does not run.

mod cases;
mod gate;

use std::process::ExitCode;

fn main() -> ExitCode {
    gate::main()
}
