//! Compares two runs of the workload, as before and after a change of paceline.

use std::fs;

use serde_json::Value;

use super::cells::{Cell, KINDS, Measured, Tally};
use super::{Outcome, RIVALS, TOKIO};

type Runs = Result<Vec<Measured>, Box<dyn std::error::Error>>;

/// Prints the waits of two `figures.json` that have a mark, break the bound or are missing in one of the two;
/// then how many there are in each. Only scenes count that both have.
pub(crate) fn compare(arguments: &[String]) -> Outcome {
    let [before, after] = arguments else { return Err("usage: fairness-change BEFORE AFTER".into()) };
    let (before, after) = (read(before)?, read(after)?);
    let pairs = pairs(&before, &after);
    for (before, after) in &pairs {
        print(before, after);
    }
    for rival in RIVALS {
        let tally = |runs: &mut dyn Iterator<Item = &Measured>| {
            Tally::of(&runs.flat_map(Measured::cells).collect::<Vec<_>>(), rival)
        };
        println!("\n{rival} before: {}", tally(&mut pairs.iter().map(|pair| pair.0)));
        println!("{rival} after:  {}", tally(&mut pairs.iter().map(|pair| pair.1)));
    }
    Ok(())
}

fn read(path: &str) -> Runs {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let figures: Value = serde_json::from_str(&text)?;
    let workloads = figures["workloads"].as_array().map_or(&[][..], Vec::as_slice);
    let scenes: Vec<_> =
        workloads.iter().filter_map(|one| Measured::from_json(&one["scene"], RIVALS)).collect();
    if scenes.is_empty() { Err(format!("{path} has no scene of `fairness`").into()) } else { Ok(scenes) }
}

/// Returns each scene that is in both runs.
fn pairs<'a>(before: &'a [Measured], after: &'a [Measured]) -> Vec<(&'a Measured, &'a Measured)> {
    let earlier = |after: &Measured| before.iter().find(|before| before.scene == after.scene);
    after.iter().filter_map(|after| Some((earlier(after)?, after))).collect()
}

fn print(before: &Measured, after: &Measured) {
    let mut is_first = true;
    for (rival, (kind, title)) in RIVALS.iter().flat_map(|rival| KINDS.iter().map(move |kind| (rival, kind)))
    {
        let cells = [before, after].map(|run| run.cell(rival, kind));
        if *rival == TOKIO || !is_of_note(&cells) {
            continue;
        }
        if is_first {
            println!("\n{} (two ticks and two polls: {} ms)", after.scene, after.scene.limit_ms());
            is_first = false;
        }
        let [before, after] = cells.map(|cell| cell.map_or_else(|| "- ".to_owned(), |cell| cell.longest()));
        println!("  {title:34} {rival:>9} {before:>10} -> {after}");
    }
}

/// Whether one of the two cells has a mark or breaks the bound, or is missing.
fn is_of_note(cells: &[Option<Cell<'_>>; 2]) -> bool {
    let found = cells.iter().flatten();
    found.clone().count() == 1 || found.clone().any(|cell| cell.is_marked() || cell.breaks_bound())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::matrix::Matrix;
    use super::*;

    #[test]
    fn only_scenes_of_both_runs_are_compared() {
        let run = |matrix: Matrix| -> Vec<_> {
            let measured = |scene| Measured { scene, rivals: vec![] };
            matrix.scenes().into_iter().map(measured).collect()
        };
        let full = run(Matrix::full());
        let mut other = run(Matrix::full());
        other.truncate(7);
        assert_eq!(pairs(&full, &other).len(), 7);
        assert!(pairs(&full, &other).iter().all(|(before, after)| before.scene == after.scene));
        // A quick run has shorter windows.
        assert!(pairs(&full, &run(Matrix::quick())).is_empty());
    }

    /// Fails if a wait that is only in one of the runs, where it may be endless in the other, is left out.
    #[test]
    fn a_cell_is_of_note_if_one_run_lacks_it() {
        let json = |wait: f64| {
            let figure = |ms| json!({ "longest_ms": ms, "median_ms": 0.1, "waits": 9, "is_ended": true });
            let mut scene = Matrix::full().scenes()[0].to_json();
            scene["rivals"] = json!({ TOKIO: { "ping": figure(1.0) }, "swapped": { "ping": figure(wait) } });
            Measured::from_json(&scene, &[TOKIO, "swapped"]).unwrap()
        };
        let runs = [json(1.5), json(2.5)];
        let [short, long] = &runs;
        let cell = |run: &'static str| match run {
            "short" => short.cell("swapped", "ping"),
            "long" => long.cell("swapped", "ping"),
            _ => None,
        };
        let noted = [["short", "short"], ["short", "none"], ["short", "long"], ["none", "none"]];
        assert_eq!(noted.map(|pair| is_of_note(&pair.map(cell))), [false, true, true, false]);
    }

    #[test]
    fn a_file_without_scenes_is_an_error() {
        assert!(read("/nonexistent/figures.json").is_err());
        assert!(compare(&["one".to_owned()]).is_err());
    }
}
