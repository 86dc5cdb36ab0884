//! The `tasks` program: runs the cases, alternating between rivals, and prints the table.

use std::error::Error;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::cases::{Case, Sample, Scale, cases};
use super::memory;
use super::rivals::{self, Rival};
use crate::stats::{Spread, spread};

const USAGE: &str =
    "usage: tasks [--quick] [--rounds N] [--only NAME]... [--without RIVAL] [--json FILE] [--list]";

struct Options {
    rounds: usize,
    scale: Scale,
    only: Vec<String>,
    without: Vec<String>,
    json: Option<String>,
}

impl Options {
    fn wants(&self, case: &str) -> bool {
        let names = |only: &String| case == only || only == "memory" && case.starts_with("mem-");
        self.only.is_empty() || self.only.iter().any(names)
    }
}

struct Contestant {
    name: &'static str,
    cases: Vec<Case>,
    memory_child: fn(&str),
}

fn contestant<R: Rival>() -> Contestant {
    Contestant { name: R::NAME, cases: cases::<R>(), memory_child: memory::child::<R> }
}

fn contestants() -> Vec<Contestant> {
    vec![
        contestant::<rivals::Tokio>(),
        contestant::<rivals::Smol>(),
        #[cfg(feature = "paceline")]
        contestant::<rivals::Paceline>(),
    ]
}

/// One line of the table: a spread per rival, in the contestants' order.
struct Row {
    name: String,
    what: &'static str,
    unit: &'static str,
    figures: Vec<Option<Spread>>,
}

/// The program behind `src/bin/tasks.rs`.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    crate::descriptors::raise_limit();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tasks: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let contestants = contestants();
    if let [child, case, rival] = arguments {
        if child == "--child" {
            let contestant = contestants.iter().find(|one| one.name == rival).ok_or("no such rival")?;
            (contestant.memory_child)(case);
            return Ok(());
        }
    }
    let Some(options) = parse(arguments, &contestants)? else { return Ok(()) };
    let contestants: Vec<_> =
        contestants.into_iter().filter(|one| !options.without.iter().any(|name| name == one.name)).collect();
    let mut rows = timed(&options, &contestants);
    rows.extend(remembered(&options, &contestants));
    let names: Vec<_> = contestants.iter().map(|one| one.name).collect();
    if !rows.is_empty() {
        print(&names, &["tokio", "smol"], &rows, &options);
    }
    let shared = serial(&options);
    if !shared.is_empty() {
        print(&SHARED, &SHARED[..1], &shared, &options);
    }
    if let Some(path) = &options.json {
        let all = [to_json(&names, &rows), to_json(&SHARED, &shared)].concat();
        let all = json!({ "workers": rivals::THREADS, "cases": all });
        std::fs::write(path, format!("{all:#}\n"))?;
    }
    Ok(())
}

#[cfg(feature = "paceline")]
use super::serial::{CASES as SERIAL, CONTESTANTS as SHARED};
#[cfg(not(feature = "paceline"))]
const SHARED: [&str; 1] = ["none"];

/// Runs the cases that do not compare runtimes, but ways to share state between tasks.
#[cfg(feature = "paceline")]
fn serial(options: &Options) -> Vec<Row> {
    let chosen = SERIAL.iter().filter(|case| options.wants(case.name));
    let rows = chosen.map(|case| {
        let figures = alternate(options.rounds, &case.runs, |run| run(options.scale));
        Row { name: case.name.to_owned(), what: case.operation, unit: "ns", figures }
    });
    rows.collect()
}

#[cfg(not(feature = "paceline"))]
fn serial(_: &Options) -> Vec<Row> {
    vec![]
}

/// Returns the names of those cases.
fn serial_names() -> impl Iterator<Item = &'static str> {
    #[cfg(feature = "paceline")]
    let names = SERIAL.iter().map(|case| case.name);
    #[cfg(not(feature = "paceline"))]
    let names = std::iter::empty();
    names
}

fn parse(arguments: &[String], contestants: &[Contestant]) -> Result<Option<Options>, Box<dyn Error>> {
    let mut options =
        Options { rounds: 9, scale: Scale { divisor: 1 }, only: vec![], without: vec![], json: None };
    let known: Vec<&str> = contestants[0].cases.iter().map(|case| case.name).collect();
    let remembered = memory::CASES.iter().flat_map(|case| case.rows.map(|(name, _)| name)).chain(["memory"]);
    let known: Vec<&str> = known.into_iter().chain(remembered).chain(serial_names()).collect();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().cloned().ok_or(USAGE);
        match word.as_str() {
            "--quick" => (options.rounds, options.scale) = (3, Scale { divisor: 5 }),
            "--rounds" => options.rounds = value()?.parse::<usize>()?.max(1),
            "--only" => options.only.push(value()?),
            "--without" => options.without.push(value()?),
            "--json" => options.json = Some(value()?),
            "--list" => {
                println!("{}", known.join("\n"));
                return Ok(None);
            }
            _ => return Err(USAGE.into()),
        }
    }
    match options.only.iter().find(|only| !known.contains(&only.as_str())) {
        Some(unknown) => Err(format!("unknown case {unknown:?}; the cases are {}", known.join(", ")).into()),
        None => Ok(Some(options)),
    }
}

fn timed(options: &Options, contestants: &[Contestant]) -> Vec<Row> {
    let chosen = contestants[0].cases.iter().enumerate().filter(|(_, case)| options.wants(case.name));
    let rows = chosen.map(|(index, case)| {
        let figures =
            alternate(options.rounds, contestants, |contestant| (contestant.cases[index].run)(options.scale));
        Row { name: case.name.to_owned(), what: case.operation, unit: "ns", figures }
    });
    rows.collect()
}

/// Runs one rival after the other within a round, so that a slow minute of the machine affects all alike.
fn alternate<C>(rounds: usize, contestants: &[C], run: impl Fn(&C) -> Sample) -> Vec<Option<Spread>> {
    let mut samples = vec![Vec::new(); contestants.len()];
    for round in 0..=rounds {
        for (contestant, samples) in contestants.iter().zip(&mut samples) {
            let sample = run(contestant);
            // The first round warms up.
            if round > 0 {
                samples.push(sample.nanos_per_operation());
            }
        }
    }
    samples.iter().map(|samples| spread(samples)).collect()
}

fn remembered(options: &Options, contestants: &[Contestant]) -> Vec<Row> {
    let mut rows = Vec::new();
    for case in memory::CASES.iter().filter(|case| case.rows.iter().any(|(name, _)| options.wants(name))) {
        let measured = contestants.iter().map(|one| match memory::measure(case, one.name) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                eprintln!("tasks: {}, {}: {error}", case.rows[0].0, one.name);
                None
            }
        });
        let measured: Vec<_> = measured.collect();
        for (at, &(name, what)) in case.rows.iter().enumerate().filter(|(_, (name, _))| options.wants(name)) {
            let figures = |of: fn(&memory::Bytes) -> f64| {
                let figure = |bytes: &Option<[memory::Bytes; 2]>| spread(&[of(&bytes.as_ref()?[at])]);
                measured.iter().map(figure).collect()
            };
            let row = |unit, figures| Row { name: name.to_owned(), what, unit, figures };
            rows.push(row("B live", figures(|bytes| bytes.live)));
            rows.push(row("B rss", figures(|bytes| bytes.rss)));
        }
    }
    rows
}

/// Returns the best figure of the established rivals, to which the ratios refer.
fn best(contestants: &[&str], established: &[&str], row: &Row) -> Option<f64> {
    let figures = contestants.iter().zip(&row.figures).filter(|(one, _)| established.contains(one));
    figures.filter_map(|(_, figure)| figure.map(|spread| spread.median)).min_by(f64::total_cmp)
}

fn print(contestants: &[&str], established: &[&str], rows: &[Row], options: &Options) {
    println!(
        "{} workers, {} rounds after a warm-up, size 1/{}; medians, half-range between the quartiles in %, \
         ratio to the best of {}",
        rivals::THREADS,
        options.rounds,
        options.scale.divisor,
        established.join(" and ")
    );
    print!("{:19} {:7}", "case", "unit");
    contestants.iter().for_each(|one| print!(" {one:>10} {:>5} {:>6}", "+-%", "ratio"));
    println!("  one operation");
    for row in rows {
        print!("{:19} {:7}", row.name, row.unit);
        let best = best(contestants, established, row);
        for figure in &row.figures {
            match (figure, best) {
                (Some(spread), Some(best)) => {
                    print!(
                        " {:10.*} {:5.1} {:6.2}",
                        digits(spread.median),
                        spread.median,
                        spread.percent(),
                        spread.median / best
                    );
                }
                (Some(spread), None) => print!(" {:10.0} {:5.1} {:>6}", spread.median, spread.percent(), "-"),
                (None, _) => print!(" {:>10} {:>5} {:>6}", "none", "-", "-"),
            }
        }
        println!("  {}", row.what);
    }
}

/// Digits after the point.
fn digits(figure: f64) -> usize {
    usize::from(figure < 100.0)
}

fn to_json(contestants: &[&str], rows: &[Row]) -> Vec<Value> {
    let rows = rows.iter().map(|row| {
        let figures: serde_json::Map<String, Value> = contestants
            .iter()
            .zip(&row.figures)
            .map(|(one, figure)| ((*one).to_owned(), figure.map_or(Value::Null, Spread::to_json)))
            .collect();
        json!({ "case": row.name, "what": row.what, "unit": row.unit, "rivals": figures })
    });
    rows.collect()
}
