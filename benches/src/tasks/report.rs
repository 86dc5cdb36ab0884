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

/// The rivals to the better of which the ratios refer.
const ESTABLISHED: &[&str] = &["tokio", "smol"];

/// One line of the table: the figures of the rounds per rival, in the contestants' order.
struct Row {
    name: String,
    what: &'static str,
    unit: &'static str,
    figures: Vec<Vec<f64>>,
}

impl Row {
    /// Returns the figures of each rival divided by the best of the established ones, round by round.
    fn ratios(&self, established: &[usize]) -> impl Iterator<Item = Option<Spread>> {
        let best = |round: usize| {
            let figures = established.iter().filter_map(|one| self.figures[*one].get(round).copied());
            // A ratio to nothing, such as bytes that are not kept, says nothing.
            figures.min_by(f64::total_cmp).filter(|best| *best >= 1.0)
        };
        self.figures.iter().map(move |figures| {
            let ratios = figures.iter().enumerate().filter_map(|(round, figure)| Some(figure / best(round)?));
            spread(&ratios.collect::<Vec<_>>())
        })
    }
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
        print(&names, ESTABLISHED, &rows, &options);
    }
    let shared = serial(&options);
    if !shared.is_empty() {
        print(&SHARED, &SHARED[..1], &shared, &options);
    }
    if let Some(path) = &options.json {
        let all = [to_json(&names, ESTABLISHED, &rows), to_json(&SHARED, &SHARED[..1], &shared)].concat();
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

/// Runs one rival after the other within a round, and every second round in reverse order, so that a slow
/// minute of the machine affects all alike.
fn alternate<C>(rounds: usize, contestants: &[C], run: impl Fn(&C) -> Sample) -> Vec<Vec<f64>> {
    let mut samples = vec![Vec::new(); contestants.len()];
    for round in 0..=rounds {
        let mut turns: Vec<_> = contestants.iter().zip(&mut samples).collect();
        if round % 2 == 1 {
            turns.reverse();
        }
        for (contestant, samples) in turns {
            let sample = run(contestant);
            // The first round warms up.
            if round > 0 {
                samples.push(sample.nanos_per_operation());
            }
        }
    }
    samples
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
                let figure = |bytes: &Option<[memory::Bytes; 2]>| bytes.as_ref().map(|bytes| of(&bytes[at]));
                measured.iter().map(|bytes| figure(bytes).into_iter().collect()).collect()
            };
            let row = |unit, figures| Row { name: name.to_owned(), what, unit, figures };
            rows.push(row("B live", figures(|bytes| bytes.live)));
            rows.push(row("B rss", figures(|bytes| bytes.rss)));
        }
    }
    rows
}

/// Returns the places of the established rivals, to which the ratios refer.
fn places(contestants: &[&str], established: &[&str]) -> Vec<usize> {
    (0..contestants.len()).filter(|place| established.contains(&contestants[*place])).collect()
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
    let places = places(contestants, established);
    print!("{:19} {:7}", "case", "unit");
    contestants.iter().for_each(|one| print!(" {one:>10} {:>5} {:>6}", "+-%", "ratio"));
    println!("  one operation");
    for row in rows {
        print!("{:19} {:7}", row.name, row.unit);
        for (figures, ratio) in row.figures.iter().zip(row.ratios(&places)) {
            match spread(figures) {
                Some(Spread { median, .. }) => print!(" {median:10.*}", digits(median)),
                None => print!(" {:>10}", "none"),
            }
            let percent = spread(figures).map_or("-".to_owned(), |spread| format!("{:.1}", spread.percent()));
            let ratio = ratio.map_or("-".to_owned(), |ratio| format!("{:.2}", ratio.median));
            print!(" {percent:>5} {ratio:>6}");
        }
        println!("  {}", row.what);
    }
}

/// Digits after the point.
fn digits(figure: f64) -> usize {
    usize::from(figure < 100.0)
}

fn to_json(contestants: &[&str], established: &[&str], rows: &[Row]) -> Vec<Value> {
    let places = places(contestants, established);
    let by_name = |spreads: Vec<Option<Spread>>| -> serde_json::Map<String, Value> {
        let named = contestants.iter().zip(spreads);
        named.map(|(one, found)| ((*one).to_owned(), found.map_or(Value::Null, Spread::to_json))).collect()
    };
    let rows = rows.iter().map(|row| {
        let figures = row.figures.iter().map(|figures| spread(figures)).collect();
        json!({
            "case": row.name,
            "what": row.what,
            "unit": row.unit,
            "rivals": by_name(figures),
            "of_best": by_name(row.ratios(&places).collect()),
        })
    });
    rows.collect()
}
