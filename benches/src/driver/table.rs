//! Tables on the terminal.

use super::sweep::{Cell, Metric, Sweep};

/// Prints one block per point and one line per rival: medians, the spread of the first metric, its ratio to
/// the first rival, and a remark if a rival is missing or something failed.
pub(crate) fn print(sweep: &Sweep, metrics: &[Metric]) {
    println!("\n## {}\n", sweep.title);
    for (point, cells) in &sweep.rows {
        let rounds = cells.iter().map(|cell| cell.runs.len()).max().unwrap_or(0);
        println!("{} (medians of {rounds})", point.label);
        print!("  {:18}", "");
        for (index, metric) in metrics.iter().enumerate() {
            print!(" {:>10}", metric.name);
            if index == 0 {
                print!(" {:>5} {:>6}", "+-%", "ratio");
            }
        }
        print!("\n  {:18}", "");
        for (index, metric) in metrics.iter().enumerate() {
            print!(" {:>10}", metric.unit);
            if index == 0 {
                print!(" {:5} {:6}", "", "");
            }
        }
        println!();
        let base = cells.iter().find_map(|cell| cell.spread(*metrics.first()?));
        let base = base.map_or(f64::NAN, |figure| figure.median);
        cells.iter().for_each(|cell| line(cell, metrics, base));
    }
}

fn line(cell: &Cell, metrics: &[Metric], base: f64) {
    print!("  {:18}", cell.rival);
    for (index, metric) in metrics.iter().enumerate() {
        let Some(figure) = cell.spread(*metric) else { break };
        print!(" {:>10.*}", metric.decimals, figure.median);
        if index == 0 {
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
