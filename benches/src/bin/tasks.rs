//! Measures the cost of tasks and timers: `tasks [--quick] [--only NAME]... [--json FILE]`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: paceline_bench::tasks::Counting = paceline_bench::tasks::Counting;

fn main() -> ExitCode {
    paceline_bench::tasks::main()
}
