//! Tables on the terminal.

use super::sweep::{Cell, Metric, RATE, Sweep};

/// One block per point, one line per rival: medians, the rate's spread, its ratio to the first rival, and a word
/// wherever a rival is missing or something failed.
pub(crate) fn print(sweep: &Sweep, metrics: &[Metric]) {
    println!("\n## {}\n", sweep.title);
    for (point, cells) in &sweep.rows {
        let rounds = cells.iter().map(|cell| cell.runs.len()).max().unwrap_or(0);
        println!("{} (medians of {rounds})", point.label);
        print!("  {:18}", "");
        for metric in metrics {
            print!(" {:>10}", metric.name);
            if metric.name == RATE.name {
                print!(" {:>5} {:>6}", "+-%", "ratio");
            }
        }
        print!("\n  {:18}", "");
        for metric in metrics {
            print!(" {:>10}", metric.unit);
            if metric.name == RATE.name {
                print!(" {:5} {:6}", "", "");
            }
        }
        println!();
        let base = cells.iter().find_map(|cell| cell.spread(RATE)).map_or(f64::NAN, |rate| rate.median);
        cells.iter().for_each(|cell| line(cell, metrics, base));
    }
}

fn line(cell: &Cell, metrics: &[Metric], base: f64) {
    print!("  {:18}", cell.rival);
    for metric in metrics {
        let Some(figure) = cell.spread(*metric) else { break };
        print!(" {:>10.*}", metric.decimals, figure.median);
        if metric.name == RATE.name {
            print!(" {:5.1} {:6.2}", figure.percent(), figure.median / base);
        }
    }
    if cell.errors() > 0 {
        print!("  {} ERRORS", cell.errors());
    }
    match &cell.absent {
        Some(reason) => println!("  absent: {reason}"),
        None => println!(),
    }
}
