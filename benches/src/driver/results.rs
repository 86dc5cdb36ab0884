//! Where figures and plots go.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::bystanders::Watch;
use super::environment;
use super::plan::Plan;
use crate::svg::Plot;
use crate::workloads::Outcome;

/// Percent of the processor that other programs may use, and that a count of ticks may be off.
const TOLERABLE: f64 = 7.0;

/// A folder of its own for every kind of run, so that a quick one never replaces the plots of a full one.
#[derive(Debug)]
pub(crate) struct Results {
    run: String,
    folder: PathBuf,
    machine: Value,
    settings: Value,
    workloads: Vec<Value>,
    /// Since the workload began.
    watch: Watch,
    /// What others used before and during each workload, in percent of all cores.
    foreign_load: Vec<Value>,
}

impl Results {
    /// `results/RUN` of this package, wherever it was called from; or of the current folder where the package's
    /// source is gone.
    pub(crate) fn open(run: &str, plan: &Plan) -> io::Result<Results> {
        // First: it says whether the source has changed, and what an earlier run wrote may be part of it.
        let machine = environment::describe();
        let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let all = if package.is_dir() { package.join("results") } else { PathBuf::from("results") };
        let folder = all.join(run);
        let named = |error: io::Error| io::Error::other(format!("{}: {error}", folder.display()));
        // Plots of an earlier run would pass for this one's.
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(named(error)),
            _ => fs::create_dir_all(&folder).map_err(named)?,
        }
        Ok(Results {
            run: run.to_owned(),
            machine,
            settings: plan.to_json(),
            workloads: Vec::new(),
            watch: Watch::start(),
            foreign_load: Vec::new(),
            folder,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn machine(&self) -> &Value {
        &self.machine
    }

    /// Runs a workload, saves its figures, and says when others use the machine before or meanwhile.
    pub(crate) fn run(&mut self, workload: impl FnOnce(&mut Results) -> Outcome) -> Outcome {
        let before = Watch::glance();
        if before > TOLERABLE {
            println!("WARNING: other programs use {before:.0} % of the processor; figures will be suspect");
        }
        self.watch = Watch::start();
        workload(self)?;
        let during = self.watch.percent();
        if during > TOLERABLE {
            println!(
                "WARNING: meanwhile others used {during:.0} % of the processor; the figures are suspect"
            );
        }
        self.foreign_load.push(json!({ "before": before.round(), "during": during.round() }));
        Ok(self.save(false)?)
    }

    pub(crate) fn add(&mut self, figures: Value) {
        self.workloads.push(figures);
    }

    pub(crate) fn save_plot(&self, name: &str, plot: Plot) -> io::Result<()> {
        println!("plot: results/{}/{name}.svg", self.run);
        let plot = Plot { footer: self.footer(), ..plot };
        fs::write(self.folder.join(format!("{name}.svg")), plot.render())
    }

    /// On what a plot's figures were taken.
    fn footer(&self) -> String {
        let text = |name: &str| self.machine[name].as_str().unwrap_or("?");
        let date = text("date").split('T').next().unwrap_or_default();
        let cores = &self.machine["cores"];
        let mut footer = format!("{}, {cores} cores; Linux {}; {date}", text("processor"), text("kernel"));
        let meanwhile = self.watch.percent();
        if meanwhile > TOLERABLE {
            footer.push_str(&format!("; SUSPECT: meanwhile others used {meanwhile:.0} % of the processor"));
        }
        footer
    }

    /// Writes the raw figures so far: what is interrupted keeps those of the workloads before.
    pub(crate) fn save(&self, complete: bool) -> io::Result<()> {
        let figures = json!({
            "run": self.run,
            "complete": complete,
            "machine": self.machine,
            "settings": self.settings,
            "foreign_load_percent": self.foreign_load,
            "workloads": self.workloads,
        });
        fs::write(self.folder.join("figures.json"), format!("{figures:#}\n"))
    }
}
