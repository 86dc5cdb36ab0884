//! Where figures and plots go.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::environment;
use super::plan::Plan;

/// The folder `results/` of this package, or of the current folder where the package's source is gone.
#[derive(Debug)]
pub(crate) struct Results {
    folder: PathBuf,
    workloads: Vec<Value>,
    /// Percent of all cores, before each workload.
    foreign_load: Vec<f64>,
}

impl Results {
    pub(crate) fn open() -> io::Result<Results> {
        let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let folder = if package.is_dir() { package.join("results") } else { PathBuf::from("results") };
        fs::create_dir_all(&folder)?;
        Ok(Results { folder, workloads: Vec::new(), foreign_load: Vec::new() })
    }

    /// To be called between workloads: says, and notes, when others use the machine.
    pub(crate) fn look_around(&mut self) {
        const TOLERABLE: f64 = 5.0;
        let load = environment::foreign_load();
        if load > TOLERABLE {
            println!(
                "WARNING: other programs use {load:.0} % of the processor; the figures below are suspect"
            );
        }
        self.foreign_load.push(load);
    }

    pub(crate) fn add(&mut self, figures: Value) {
        self.workloads.push(figures);
    }

    pub(crate) fn save_plot(&self, name: &str, svg: &str) -> io::Result<()> {
        let path = self.folder.join(format!("{name}.svg"));
        println!("plot: results/{name}.svg");
        fs::write(path, svg)
    }

    /// Writes the raw figures; the name says which run they are of.
    pub(crate) fn save(self, run: &str, plan: &Plan) -> io::Result<()> {
        let figures = json!({
            "run": run,
            "machine": environment::describe(),
            "settings": {
                "rounds": plan.rounds,
                "warm_ms": plan.warm.as_millis() as u64,
                "window_ms": plan.window.as_millis() as u64,
                "server_threads": plan.threads,
                "load_threads": plan.load_threads,
            },
            "foreign_load_percent": self.foreign_load,
            "workloads": self.workloads,
        });
        println!("raw figures: results/{run}.json");
        fs::write(self.folder.join(format!("{run}.json")), format!("{figures:#}\n"))
    }
}
