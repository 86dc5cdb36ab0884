//! Compares paceline with its rivals: `paceline-bench --quick`, `--full`, or the name of a workload.

use std::process::ExitCode;

fn main() -> ExitCode {
    paceline_bench::cli::main()
}
