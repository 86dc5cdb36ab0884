//! From a sweep to a plot.

use super::sweep::{Metric, STARVED, Sweep};
use crate::servers::RIVALS;
use crate::svg::{Axis, Mark, Plot, Scale, Series};

/// What a plot says around its lines.
pub(crate) struct Caption<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) x_scale: Scale,
    pub(crate) y: &'a str,
    pub(crate) y_scale: Scale,
}

/// Colour and marker of a rival, alike in all plots whoever else takes part. paceline has the first.
pub(crate) fn style(rival: &str) -> usize {
    const BEFORE: usize = 2;
    match rival {
        "paceline" => 0,
        super::ace::NAME => 1,
        _ => RIVALS.iter().position(|known| *known == rival).unwrap_or(RIVALS.len()) + BEFORE,
    }
}

/// Medians of one metric over the points, with their quartiles. Whoever is missing is named in the note.
pub(crate) fn plot(sweep: &Sweep, metric: Metric, caption: &Caption<'_>) -> String {
    let mut series: Vec<Series> = Vec::new();
    let mut absent = Vec::new();
    let mut starving: Vec<String> = Vec::new();
    for (point, cells) in &sweep.rows {
        for cell in cells {
            let name = cell.rival.clone();
            if cell.spread(STARVED).is_some_and(|starved| starved.median >= 1.0) && !starving.contains(&name)
            {
                starving.push(name.clone());
            }
            match cell.spread(metric) {
                Some(figure) => {
                    let mark = Mark { x: point.x, y: figure.median, low: figure.lower, high: figure.upper };
                    match series.iter_mut().find(|series| series.name == name) {
                        Some(series) => series.points.push(mark),
                        None => {
                            let (style, bold) = (style(&name), name == "paceline");
                            series.push(Series { name, style, bold, points: vec![mark] });
                        }
                    }
                }
                None => absent.push(format!("no {name} at {}", point.label)),
            }
        }
    }
    let rounds =
        sweep.rows.iter().flat_map(|(_, cells)| cells).map(|cell| cell.runs.len()).max().unwrap_or(0);
    let note = format!("medians and quartiles of {rounds} alternating rounds");
    if !starving.is_empty() {
        absent.push(format!("{} left connections without any answer", starving.join(", ")));
    }
    let axis = |label: &str, scale| Axis { label: label.to_owned(), scale };
    Plot {
        title: caption.title.to_owned(),
        note: [note].into_iter().chain(absent).collect::<Vec<_>>().join("; "),
        x: axis(caption.x, caption.x_scale),
        y: axis(caption.y, caption.y_scale),
        series,
    }
    .render()
}
