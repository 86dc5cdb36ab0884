//! The folder for figures and plots.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::bystanders::Watch;
use super::environment;
use super::plan::Plan;
use crate::svg::Plot;
use crate::workloads::Outcome;

/// The share of the processor, in percent, that other programs may use, and by which a count of ticks may be
/// wrong.
const TOLERABLE: f64 = 7.0;

/// The folder of one kind of run, so that a quick run never replaces the plots of a full one.
#[derive(Debug)]
pub(crate) struct Results {
    run: String,
    folder: PathBuf,
    machine: Value,
    settings: Value,
    workloads: Vec<Value>,
    /// The observation since the workload began.
    watch: Watch,
    /// The load by other programs before and during each workload, in percent of all cores.
    foreign_load: Vec<Value>,
}

impl Results {
    /// Opens `results/RUN` of this package, independent of the current folder; or of the current folder if
    /// the package's source does not exist on this machine.
    pub(crate) fn open(run: &str, plan: &Plan) -> io::Result<Results> {
        // First of all: the description says whether the source has changed, and results of an earlier run
        // may be part of the source.
        let machine = environment::describe();
        let package = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let all = if package.is_dir() { package.join("results") } else { PathBuf::from("results") };
        let folder = all.join(run);
        let named = |error: io::Error| io::Error::other(format!("{}: {error}", folder.display()));
        // Plots of an earlier run would be taken for plots of this one.
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

    /// Runs a workload, saves its figures, and warns if other programs use the machine before or during the
    /// run.
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

    /// Returns the line that names the system of a plot.
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

    /// Writes the raw figures so far, so that an interrupted run keeps those of completed workloads.
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
