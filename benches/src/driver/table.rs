//! Tables on the terminal.

use super::sweep::{COMPARED, Cell, Metric, Sweep, base};

/// Prints one block per point and one line per rival: medians, the spread of the first metric, ratios to
/// tokio, and a remark if a rival is missing or something failed.
pub(crate) fn print(sweep: &Sweep, metrics: &[Metric]) {
    println!("\n## {}\n", sweep.title);
    for (point, cells) in &sweep.rows {
        let rounds = cells.iter().map(|cell| cell.runs.len()).max().unwrap_or(0);
        println!("{} (medians of {rounds})", point.label);
        head(metrics, |metric| metric.name, ["+-%", "/tokio"]);
        head(metrics, |metric| metric.unit, ["", ""]);
        cells.iter().for_each(|cell| line(cell, metrics, base(cells)));
    }
}

fn head(metrics: &[Metric], word: fn(&Metric) -> &str, [spread, ratio]: [&str; 2]) {
    print!("  {:20}", "");
    for (index, metric) in metrics.iter().enumerate() {
        print!(" {:>9}", word(metric));
        if index == 0 {
            print!(" {spread:>5}");
        }
        if is_compared(metric) {
            print!(" {ratio:>6}");
        }
    }
    println!();
}

fn is_compared(metric: &Metric) -> bool {
    COMPARED.iter().any(|compared| compared.name == metric.name)
}

fn line(cell: &Cell, metrics: &[Metric], base: Option<&Cell>) {
    print!("  {:20}", cell.rival);
    for (index, metric) in metrics.iter().enumerate() {
        let Some(figure) = cell.spread(*metric) else { break };
        print!(" {:>9.*}", metric.decimals, figure.median);
        if index == 0 {
            print!(" {:5.1}", figure.percent());
        }
        if is_compared(metric) {
            match base.and_then(|base| cell.ratio(base, *metric)) {
                Some(ratio) => print!(" {:6.2}", ratio.median),
                None => print!(" {:>6}", "-"),
            }
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
