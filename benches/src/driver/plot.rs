//! Makes a plot from a sweep.

use super::ace;
use super::sweep::{Cell, Metric, STARVED, Sweep};
use crate::svg::{Axis, Mark, Marker, Plot, Scale, Series, Style};

/// The text around the lines of a plot.
pub(crate) struct Caption<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) x_scale: Scale,
    /// The label of the vertical axis, with its unit.
    pub(crate) y: &'a str,
    /// How many units of the metric make one unit of the axis.
    pub(crate) y_unit: f64,
    /// The rivals that do not take part, with the reasons; may be empty.
    pub(crate) left_out: &'static str,
}

const GREEN: &str = "#007a53";

/// The styles in the order of the legend. A variant is dashed, in the colour of its original or a similar
/// one.
const STYLES: [(&str, &str, Marker, bool); 10] = [
    ("paceline", GREEN, Marker::Circle, false),
    ("paceline-unblock", "#58a618", Marker::Square, true),
    ("paceline-portable", "#8a9a00", Marker::Diamond, true),
    ("tokio", "#1f5fbf", Marker::Square, false),
    ("tokio-ct", "#6fa8ee", Marker::Square, true),
    ("tokio-spawn-blocking", "#6fa8ee", Marker::Triangle, true),
    ("tokio-block-in-place", "#4a3fbf", Marker::Diamond, true),
    ("smol", "#e08a00", Marker::Diamond, false),
    (ace::NAME, "#d0312d", Marker::Square, false),
    ("floor", "#222222", Marker::Diamond, false),
];

/// Returns the style of a rival, which is the same in all plots.
fn style(rival: &str) -> Style {
    let known = STYLES.iter().find(|(name, ..)| *name == rival);
    let (_, colour, marker, dashed) = known.copied().unwrap_or(("", "#bbbbbb", Marker::Circle, true));
    Style { colour, marker, dashed, bold: rival == "paceline" }
}

/// Sorts series into the order of the legend.
fn sort(series: &mut [Series]) {
    let place = |series: &Series| STYLES.iter().position(|(name, ..)| *name == series.name);
    series.sort_by_key(|series| place(series).unwrap_or(STYLES.len()));
}

/// Plots the medians of one metric over the points, with their quartiles. The notes name the missing rivals.
pub(crate) fn plot(sweep: &Sweep, metric: Metric, caption: &Caption<'_>) -> Plot {
    let mut series: Vec<Series> = Vec::new();
    for (point, cells) in &sweep.rows {
        for cell in cells {
            let Some(figure) = cell.spread(metric) else { continue };
            let unit = |value: f64| value / caption.y_unit;
            let (y, low, high) = (unit(figure.median), unit(figure.lower), unit(figure.upper));
            let mark = Mark { x: point.x, y, low, high, hollow: starves(cell) };
            match series.iter_mut().find(|series| series.name == cell.rival) {
                Some(series) => series.points.push(mark),
                None => {
                    let (name, style) = (cell.rival.clone(), style(&cell.rival));
                    series.push(Series { name, style, points: vec![mark] });
                }
            }
        }
    }
    sort(&mut series);
    let axis = |label: &str, scale| Axis { label: label.to_owned(), scale };
    Plot {
        title: caption.title.to_owned(),
        notes: notes(sweep, caption),
        footer: String::new(),
        x: axis(caption.x, caption.x_scale),
        y: axis(caption.y, Scale::Fitting),
        series,
    }
}

fn starves(cell: &Cell) -> bool {
    cell.spread(STARVED).is_some_and(|starved| starved.median >= 1.0)
}

fn notes(sweep: &Sweep, caption: &Caption<'_>) -> Vec<String> {
    let cells = || sweep.rows.iter().flat_map(|(_, cells)| cells);
    let rounds = cells().map(|cell| cell.runs.len()).max().unwrap_or(0);
    let mut notes =
        vec![format!("{}. Medians of {rounds} alternating rounds; bars: quartiles.", sweep.title)];
    if !caption.left_out.is_empty() {
        notes.push(format!("Not here: {}.", caption.left_out));
    }
    notes.extend(absences(sweep));
    if cells().any(starves) {
        notes.push(
            "Empty markers: some connections got no answer at all, and are in no other figure.".to_owned(),
        );
    }
    notes
}

/// Returns a sentence for each rival and reason, with the points to which it applies.
fn absences(sweep: &Sweep) -> Vec<String> {
    let mut absences: Vec<(&str, &str, Vec<String>)> = Vec::new();
    for (point, cells) in &sweep.rows {
        for cell in cells.iter().filter(|cell| cell.runs.is_empty()) {
            let (rival, reason) = (cell.rival.as_str(), cell.absent.as_deref().unwrap_or("not measured"));
            match absences.iter_mut().find(|known| (known.0, known.1) == (rival, reason)) {
                Some(known) => known.2.push(point.x.to_string()),
                None => absences.push((rival, reason, vec![point.x.to_string()])),
            }
        }
    }
    let sentence = |(rival, reason, points): (&str, &str, Vec<String>)| {
        format!("No {rival} at {}: {reason}.", points.join(", "))
    };
    absences.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::{APART, RIVALS};

    #[test]
    fn every_rival_has_a_look_of_its_own() {
        let known = |rival: &str| STYLES.iter().any(|(name, ..)| *name == rival);
        assert!(RIVALS.iter().chain(APART).chain(&[ace::NAME]).all(|rival| known(rival)));
        let looks = STYLES.map(|(_, colour, marker, dashed)| format!("{colour}{marker:?}{dashed}"));
        assert!(looks.iter().all(|look| looks.iter().filter(|other| *other == look).count() == 1));
    }
}
