//! The figures of a scene, how they compare, and their table.

use std::fmt;
use std::io;

use serde_json::{Map, Value, json};

use super::TOKIO;
use super::matrix::Scene;
use crate::fairness::scene::{BY_TASK, BY_THREAD, LIMIT, PING, READY, SPAWNED, TIMER, UNBLOCK, YIELD};

/// The kinds of waits in the order of the tables, with their titles.
pub(super) const KINDS: [(&str, &str); 8] = [
    (PING, "ping over a socket pair"),
    (READY, "a socket that is always ready"),
    (TIMER, "a timer of 10 ms, lateness"),
    (SPAWNED, "a task that a thread spawns"),
    (BY_TASK, "a task that a computing one wakes"),
    (BY_THREAD, "a task that a thread wakes"),
    (UNBLOCK, "the result of a blocking closure"),
    (YIELD, "two tasks that yield in a loop"),
];

/// The waits of one kind in one scene on one runtime.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    kind: &'static str,
    longest_ms: f64,
    median_ms: f64,
    count: u64,
    /// Whether all waits have ended.
    is_ended: bool,
}

impl Figure {
    /// Reads a line of a scene's process.
    pub(super) fn parse(line: &str) -> io::Result<Figure> {
        Figure::read(line).ok_or_else(|| io::Error::other(format!("not a line of figures: {line:?}")))
    }

    fn read(line: &str) -> Option<Figure> {
        let words: Vec<_> = line.split_whitespace().collect();
        let [kind, longest, median, count, is_ended] = words[..] else { return None };
        let ms = |word: &str| word.parse::<u64>().ok().map(|nanos| nanos as f64 / 1e6);
        Some(Figure {
            kind: kind_of(kind)?,
            longest_ms: ms(longest)?,
            median_ms: ms(median)?,
            count: count.parse().ok()?,
            is_ended: is_ended.parse().ok()?,
        })
    }

    /// Returns false if no wait began: where a task pauses before each, the pause may be endless.
    pub(super) fn has_waits(&self) -> bool {
        self.count > 0 || !self.is_ended
    }

    /// Returns the median of the waits that have ended, for the table.
    fn median(&self) -> String {
        if self.count == 0 { "-".to_owned() } else { millis(self.median_ms) }
    }

    fn to_json(&self) -> Value {
        json!({
            "longest_ms": self.longest_ms,
            "median_ms": self.median_ms,
            "waits": self.count,
            "is_ended": self.is_ended,
        })
    }

    fn from_json(kind: &'static str, value: &Value) -> Option<Figure> {
        Some(Figure {
            kind,
            longest_ms: value["longest_ms"].as_f64()?,
            median_ms: value["median_ms"].as_f64()?,
            count: value["waits"].as_u64()?,
            is_ended: value["is_ended"].as_bool()?,
        })
    }

    /// Returns the longest wait in milliseconds; without end, if it has not ended.
    pub(super) fn longest(&self) -> f64 {
        if self.is_ended { self.longest_ms } else { f64::INFINITY }
    }
}

/// Returns the kind with this name.
fn kind_of(name: &str) -> Option<&'static str> {
    KINDS.iter().map(|(kind, _)| *kind).find(|kind| *kind == name)
}

/// One scene on all runtimes: figures, or the reason if there are none.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) scene: Scene,
    pub(super) rivals: Vec<(&'static str, Result<Vec<Figure>, String>)>,
}

impl Measured {
    fn figure(&self, rival: &str, kind: &str) -> Option<&Figure> {
        let (_, figures) = self.rivals.iter().find(|(name, _)| *name == rival)?;
        figures.as_ref().ok()?.iter().find(|figure| figure.kind == kind)
    }

    pub(super) fn cell(&self, rival: &'static str, kind: &str) -> Option<Cell<'_>> {
        let figure = self.figure(rival, kind)?;
        Some(Cell { scene: &self.scene, rival, figure, tokio: self.figure(TOKIO, kind) })
    }

    /// Returns the cells that have a figure.
    pub(super) fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        let rivals = self.rivals.iter();
        let places = rivals.flat_map(|(rival, _)| KINDS.iter().map(move |(kind, _)| (*rival, *kind)));
        places.filter_map(|(rival, kind)| self.cell(rival, kind))
    }

    pub(super) fn to_json(&self) -> Value {
        let mut scene = self.scene.to_json();
        let mut rivals = Map::new();
        for (rival, figures) in &self.rivals {
            let figures = match figures {
                Ok(figures) => {
                    figures.iter().map(|figure| (figure.kind.to_owned(), figure.to_json())).collect()
                }
                Err(reason) => Map::from_iter([("absent".to_owned(), json!(reason))]),
            };
            rivals.insert((*rival).to_owned(), figures.into());
        }
        scene["rivals"] = rivals.into();
        scene
    }

    /// Reads the figures of these runtimes. Returns `None` if the value is of another kind.
    pub(super) fn from_json(value: &Value, rivals: &[&'static str]) -> Option<Measured> {
        let figures = |rival: &str| {
            let read =
                |(kind, _): &(&'static str, _)| Figure::from_json(kind, &value["rivals"][rival][*kind]);
            KINDS.iter().filter_map(read).collect()
        };
        let rivals = rivals.iter().map(|rival| (*rival, Ok(figures(rival)))).collect();
        Some(Measured { scene: Scene::from_json(value)?, rivals })
    }
}

/// One figure beside tokio's.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    pub(super) scene: &'a Scene,
    pub(super) rival: &'static str,
    pub(super) figure: &'a Figure,
    tokio: Option<&'a Figure>,
}

impl Cell<'_> {
    /// Whether the longest wait is longer than tokio's.
    fn is_above_tokio(&self) -> bool {
        self.tokio.is_some_and(|tokio| self.figure.longest() > tokio.longest())
    }

    /// Whether the longest wait is longer than two ticks and two polls.
    pub(super) fn is_above_limit(&self) -> bool {
        self.figure.longest() > self.scene.limit_ms()
    }

    /// Whether the limit is claimed as a bound, and the longest wait is above it.
    pub(super) fn breaks_bound(&self) -> bool {
        self.scene.is_bounded() && self.is_above_limit()
    }

    pub(super) fn is_marked(&self) -> bool {
        self.is_above_tokio() && self.is_above_limit()
    }

    /// Returns the longest wait as a multiple of the limit, or of tokio's wait if that is longer.
    pub(super) fn excess(&self) -> f64 {
        self.figure.longest() / self.tokio.map_or(0.0, Figure::longest).max(self.scene.limit_ms())
    }

    /// Returns the longest wait, with its mark.
    pub(super) fn longest(&self) -> String {
        let mark = if self.is_marked() { "!" } else { " " };
        format!("{}{mark}", longest(self.figure))
    }
}

impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rival, kind, scene) = (self.rival, title(self.figure.kind), self.scene);
        let with_unit = |figure: &Figure| {
            if figure.is_ended { longest(figure) + " ms" } else { longest(figure) }
        };
        let tokio = self.tokio.map_or_else(|| "-".to_owned(), with_unit);
        let (wait, limit) = (with_unit(self.figure), scene.limit_ms());
        write!(f, "{rival}, {kind}: {wait} (tokio {tokio}, limit {limit} ms): {scene}")
    }
}

fn title(kind: &str) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, title)| title)
}

fn longest(figure: &Figure) -> String {
    if figure.is_ended { millis(figure.longest_ms) } else { format!("> {} s", LIMIT.as_secs()) }
}

/// Returns milliseconds with three digits, but no more than three after the point.
fn millis(figure: f64) -> String {
    let digits = match figure {
        ..0.995 => 3,
        ..9.95 => 2,
        ..99.5 => 1,
        _ => 0,
    };
    format!("{figure:.digits$}")
}

/// Prints a row for each kind of wait: the longest on each runtime, then the medians.
pub(super) fn print(measured: &Measured) {
    let scene = &measured.scene;
    println!("\n{scene} (two ticks and two polls: {} ms)", scene.limit_ms());
    print!("  {:34}", "");
    measured.rivals.iter().for_each(|(rival, _)| print!(" {rival:>9} "));
    print!("   medians:");
    measured.rivals.iter().for_each(|(rival, _)| print!(" {rival:>9}"));
    println!();
    for (kind, title) in KINDS {
        if measured.rivals.iter().all(|(rival, _)| measured.figure(rival, kind).is_none()) {
            continue;
        }
        print!("  {title:34}");
        for (rival, _) in &measured.rivals {
            let cell = measured.cell(rival, kind);
            print!(" {:>10}", cell.map_or_else(|| "- ".to_owned(), |cell| cell.longest()));
        }
        print!("{:11}", "");
        for (rival, _) in &measured.rivals {
            let figure = measured.figure(rival, kind);
            print!(" {:>9}", figure.map_or_else(|| "-".to_owned(), Figure::median));
        }
        println!();
    }
    for (rival, figures) in &measured.rivals {
        if let Err(reason) = figures {
            println!("  {rival} absent: {reason}");
        }
    }
}

/// How many cells of a runtime are above which limits.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    cells: usize,
    above_tokio: usize,
    marked: usize,
    bounded: usize,
    above_bound: usize,
    unended: usize,
}

impl Tally {
    pub(super) fn of<'a>(cells: &[Cell<'a>], rival: &str) -> Tally {
        let cells: Vec<_> = cells.iter().filter(|cell| cell.rival == rival).collect();
        let count = |is: fn(&Cell<'a>) -> bool| cells.iter().filter(|cell| is(cell)).count();
        Tally {
            cells: cells.len(),
            above_tokio: count(Cell::is_above_tokio),
            marked: count(Cell::is_marked),
            bounded: count(|cell| cell.scene.is_bounded()),
            above_bound: count(Cell::breaks_bound),
            unended: count(|cell| !cell.figure.is_ended),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "cells": self.cells,
            "above_tokio": self.above_tokio,
            "above_tokio_and_limit": self.marked,
            "cells_with_bound": self.bounded,
            "above_bound": self.above_bound,
            "not_ended": self.unended,
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { cells, above_tokio, marked, bounded, above_bound, unended } = self;
        write!(
            f,
            "{cells} cells, {above_tokio} above tokio's, {marked} of them above two ticks and two polls (`!`); \
             with at most one task more than workers {above_bound} of {bounded} above two ticks and two polls; \
             {unended} without an end"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::fairness::matrix::Matrix;

    /// A scene with 2 workers, and a limit of 22 ms.
    fn measured(tasks: usize, tokio: &str, swapped: &str) -> Measured {
        let figures = |line: &str| Ok(vec![Figure::parse(line).unwrap()]);
        let scenes = Matrix::full().scenes();
        let scene = scenes
            .into_iter()
            .find(|scene| (scene.workers, scene.tasks, scene.limit_ms()) == (2, tasks, 22.0));
        let rivals = vec![(TOKIO, figures(tokio)), ("swapped", figures(swapped)), ("none", Err("x".into()))];
        Measured { scene: scene.unwrap(), rivals }
    }

    #[test]
    fn a_line_of_a_scene_is_read() {
        let figure = Figure::parse("unblock 1500000 250000 7 false").unwrap();
        assert_eq!((figure.kind, figure.longest_ms, figure.median_ms, figure.count), (UNBLOCK, 1.5, 0.25, 7));
        assert_eq!(longest(&figure), "> 30 s");
        let has_waits = |line: &str| Figure::parse(line).unwrap().has_waits();
        assert!(
            has_waits("ping 1 0 0 false") && has_waits("ping 1 1 1 true") && !has_waits("ping 0 0 0 true")
        );
        for line in ["", "unblock 1 1 1", "nosuch 1 1 1 true", "ping 1.5 1 1 true"] {
            assert!(Figure::parse(line).is_err(), "{line:?}");
        }
    }

    /// Fails if a cell is marked that is only above one of the two.
    #[test]
    fn a_cell_is_marked_if_it_is_above_tokio_and_the_limit() {
        let longest = |tokio: &str, swapped: &str| {
            let line = |wait: &str| format!("ping {wait} 1 1 {}", wait != "30000000000");
            measured(3, &line(tokio), &line(swapped)).cell("swapped", PING).unwrap().longest()
        };
        assert_eq!(longest("5000000", "22000000"), "22.0 ");
        assert_eq!(longest("5000000", "23000000"), "23.0!");
        assert_eq!(longest("24000000", "23000000"), "23.0 ");
        assert_eq!(longest("24000000", "30000000000"), "> 30 s!");
        assert_eq!(longest("30000000000", "30000000000"), "> 30 s ");
    }

    #[test]
    fn a_bound_is_claimed_for_one_task_more_than_workers() {
        let tally = |tasks| {
            let measured = measured(tasks, "ping 1000000 1 1 true", "ping 30000000 1 1 true");
            let cells: Vec<_> = measured.cells().collect();
            assert_eq!(cells.len(), 2);
            Tally::of(&cells, "swapped")
        };
        let all = Tally { cells: 1, above_tokio: 1, marked: 1, bounded: 1, above_bound: 1, unended: 0 };
        assert_eq!(tally(3), all);
        assert_eq!(tally(5), Tally { bounded: 0, above_bound: 0, ..all });
    }

    #[test]
    fn figures_are_read_as_they_were_written() {
        let written = measured(3, "ping 1000000 1 1 true", "timer 30000000 5 9 false");
        let read = Measured::from_json(&written.to_json(), &[TOKIO, "swapped"]).unwrap();
        assert_eq!(read.scene, written.scene);
        assert_eq!(read.rivals, written.rivals[..2]);
    }

    #[test]
    fn milliseconds_have_three_digits() {
        let texts = [0.0012, 0.9999, 9.96, 99.96, 12_345.6].map(millis);
        assert_eq!(texts, ["0.001", "1.00", "10.0", "100", "12346"]);
    }
}
