//! What are the costs of tasks, wakes, timers and their memory? Runs the `tasks` program, which measures
//! them.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::Outcome;
use crate::driver::child::Child;
use crate::driver::plan::Plan;
use crate::driver::plot::{sort, style};
use crate::driver::results::Results;
use crate::svg::{Axis, Mark, Plot, Scale, Series};

pub(super) const QUESTION: &str =
    "spawn, fan-out, wake, yield, ping-pong, timers, memory (the `tasks` program)";

pub(super) fn run(plan: &Plan, results: &mut Results) -> Outcome {
    let program = program()?;
    println!("\n## Task costs\n");
    let mut figures = ask(&program, plan, &[])?;
    figures["name"] = "tasks".into();
    results.add(figures);
    println!("\n## Task costs against how many there are\n");
    let mut figures = ask(&program, plan, &["--sizes"])?;
    let spawns = Sizes {
        prefix: "spawn-of-",
        title: "Spawning and awaiting tasks: cost per task, against how many at once",
        x: "tasks spawned before the first is awaited",
        y: "time per task (ns)",
    };
    results.save_plot("tasks-spawn", spawns.plot(&figures))?;
    let children = Sizes {
        prefix: "fan-out-to-",
        title: "Children that report to one parent: cost per child, against how many",
        x: "children",
        y: "time per child (ns)",
    };
    results.save_plot("tasks-fan-out", children.plot(&figures))?;
    let timers = Sizes {
        prefix: "timer-beside-",
        title: "Arming and cancelling a timer, against how many others are armed",
        x: "timers held",
        y: "time per timer armed and cancelled (ns)",
    };
    results.save_plot("tasks-timer", timers.plot(&figures))?;
    figures["name"] = "task-sizes".into();
    results.add(figures);
    Ok(())
}

fn ask(program: &Path, plan: &Plan, more: &[&str]) -> Result<Value, Box<dyn std::error::Error>> {
    let raw = std::env::temp_dir().join(format!("paceline-bench-tasks-{}.json", std::process::id()));
    let mut command = Command::new(program);
    command.args(more).arg("--json").arg(&raw);
    if plan.quick {
        command.arg("--quick");
    }
    let mut child = Child::spawn(&mut command)?;
    if !child.0.wait()?.success() {
        return Err("the `tasks` program failed".into());
    }
    let figures = serde_json::from_str(&std::fs::read_to_string(&raw)?)?;
    std::fs::remove_file(&raw)?;
    Ok(figures)
}

/// A plot of the cases with names `PREFIXn`, where n is the size.
struct Sizes {
    prefix: &'static str,
    title: &'static str,
    x: &'static str,
    y: &'static str,
}

impl Sizes {
    fn plot(&self, figures: &Value) -> Plot {
        let mut series: Vec<Series> = Vec::new();
        for case in figures["cases"].as_array().into_iter().flatten() {
            let size = case["case"].as_str().and_then(|name| name.strip_prefix(self.prefix)?.parse().ok());
            let (Some(x), Some(rivals)) = (size, case["rivals"].as_object()) else { continue };
            for (name, figure) in rivals {
                let number = |key: &str| figure[key].as_f64();
                let (Some(y), Some(low), Some(high)) = (number("median"), number("lower"), number("upper"))
                else {
                    continue;
                };
                let mark = Mark { x, y, low, high, hollow: false };
                match series.iter_mut().find(|series| series.name == *name) {
                    Some(series) => series.points.push(mark),
                    None => {
                        series.push(Series { name: name.clone(), style: style(name), points: vec![mark] });
                    }
                }
            }
        }
        sort(&mut series);
        let rounds =
            format!("{} workers. Medians of alternating rounds; bars: quartiles.", figures["workers"]);
        let absent = "Not here: floor, hsha and ace, which have no tasks; tokio-ct, which has no workers.";
        Plot {
            title: self.title.to_owned(),
            notes: vec![rounds, absent.to_owned()],
            footer: String::new(),
            x: Axis { label: self.x.to_owned(), scale: Scale::Log },
            y: Axis { label: self.y.to_owned(), scale: Scale::Fitting },
            series,
        }
    }
}

fn program() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("tasks"))
}

/// Builds the `tasks` program, since `cargo run` builds only the program that it runs, so the one beside it
/// may be missing or old. Does so under cargo only: a copied program brings its neighbour along.
pub(super) fn prepare() -> Outcome {
    let program = program()?;
    if let Some(cargo) = std::env::var_os("CARGO") {
        build(&cargo, &program)?;
    }
    if program.exists() {
        return Ok(());
    }
    Err("there is no `tasks` program beside this one: `cargo build --release -p paceline-bench`".into())
}

fn build(cargo: &OsStr, program: &Path) -> Outcome {
    // Programs are in TARGET/release, regardless of how cargo was told the target folder.
    let Some(target) = program.parent().and_then(Path::parent) else { return Ok(()) };
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--bin", "tasks", "--manifest-path", manifest]);
    command.arg("--target-dir").arg(target);
    // Other features than this program's would build all crates again.
    if !cfg!(feature = "paceline") {
        command.arg("--no-default-features");
    }
    if command.status()?.success() { Ok(()) } else { Err("the `tasks` program does not build".into()) }
}
