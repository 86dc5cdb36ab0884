//! Tables of the writes that a program has counted: by source line, and by line of memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

/// Writes by one thread, at one place in the source, to one line of memory.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    kind: String,
    file: String,
    source_line: u64,
    line: u64,
    thread: u64,
    count: f64,
}

/// The writes of some operations, such as requests.
#[derive(Debug)]
pub(crate) struct Written {
    rows: Vec<Row>,
    operations: f64,
}

/// The writes of one source line, for each operation.
#[derive(Debug, PartialEq)]
struct Site {
    kind: String,
    place: String,
    each: f64,
    /// The number of lines of memory.
    lines: usize,
    /// The number of threads that write to the same line of memory, at most.
    threads: usize,
}

/// A line of memory that several threads write.
#[derive(Debug, PartialEq)]
struct Shared {
    each: f64,
    /// The writes for each operation, by kind.
    kinds: BTreeMap<String, f64>,
    places: BTreeSet<String>,
}

/// Writes of a source line for each operation below which it is left out: they belong to starts, ends and
/// sleeps, not to the operation.
const LEAST: f64 = 0.02;
/// Writes of a line of memory for each operation below which it is left out: one of 64 connections has less.
const SHARED: f64 = 0.2;
/// Share of the writes to a line of memory above which the line belongs to one thread.
const MOST: f64 = 0.99;

impl Written {
    /// Reads what a program has counted while it did so many `operations`.
    pub(crate) fn read(counted: &Value, operations: f64) -> Option<Written> {
        let row = |row: &Value| {
            Some(Row {
                kind: row[0].as_str()?.to_owned(),
                file: row[1].as_str()?.to_owned(),
                source_line: row[2].as_u64()?,
                line: row[3].as_u64()?,
                thread: row[4].as_u64()?,
                count: row[5].as_f64()?,
            })
        };
        let rows = counted.as_array()?.iter().map(row).collect::<Option<_>>()?;
        Some(Written { rows, operations })
    }

    /// Returns what each source line writes, the most first.
    fn sites(&self) -> Vec<Site> {
        let mut rows: BTreeMap<(String, String), Vec<&Row>> = BTreeMap::new();
        for row in &self.rows {
            rows.entry((row.place(), row.kind.clone())).or_default().push(row);
        }
        let site = |((place, kind), rows): ((String, String), Vec<&Row>)| {
            let mut threads: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
            for row in &rows {
                threads.entry(row.line).or_default().insert(row.thread);
            }
            Site {
                kind,
                place,
                each: rows.iter().map(|row| row.count).sum::<f64>() / self.operations,
                lines: threads.len(),
                threads: threads.values().map(BTreeSet::len).max().unwrap_or(0),
            }
        };
        let mut sites: Vec<Site> = rows.into_iter().map(site).filter(|site| site.each >= LEAST).collect();
        sites.sort_by(|one, other| other.each.total_cmp(&one.each));
        sites
    }

    /// Returns the lines of memory that several threads write, the most written first.
    fn shared(&self) -> Vec<Shared> {
        let mut rows: BTreeMap<u64, Vec<&Row>> = BTreeMap::new();
        for row in &self.rows {
            rows.entry(row.line).or_default().push(row);
        }
        let mut shared = Vec::new();
        for rows in rows.into_values() {
            let mut kinds = BTreeMap::new();
            for row in &rows {
                *kinds.entry(row.kind.clone()).or_default() += row.count / self.operations;
            }
            let mut threads: BTreeMap<u64, f64> = BTreeMap::new();
            rows.iter()
                .for_each(|row| *threads.entry(row.thread).or_default() += row.count / self.operations);
            let (each, most) = (kinds.values().sum::<f64>(), threads.into_values().fold(0.0, f64::max));
            if each >= SHARED && most <= each * MOST {
                shared.push(Shared { each, kinds, places: rows.iter().map(|row| row.place()).collect() });
            }
        }
        shared.sort_by(|one, other| other.each.total_cmp(&one.each));
        shared
    }

    /// Prints both tables.
    pub(crate) fn print(&self, operation: &str) {
        println!("\n### By source line, for each {operation} ({:.0} in all)\n", self.operations);
        println!("  {:>7} {:7} {:>5} {:>7}  source line", "writes", "kind", "lines", "threads");
        for Site { kind, place, each, lines, threads } in self.sites() {
            println!("  {each:7.2} {kind:7} {lines:5} {threads:7}  {place:38} {}", code_at(&place));
        }
        println!("\n### Lines of memory that several threads write, for each {operation}\n");
        for Shared { each, kinds, places } in self.shared() {
            let kinds: Vec<String> = kinds.iter().map(|(kind, each)| format!("{kind} {each:.2}")).collect();
            println!("  {each:7.2} ({})", kinds.join(", "));
            places.iter().for_each(|place| println!("          {place:38} {}", code_at(place)));
        }
    }

    /// Returns the first table, for the raw figures.
    pub(crate) fn to_json(&self) -> Value {
        let site = |site: Site| {
            let Site { kind, place, each, lines, threads } = site;
            json!({ "place": place, "kind": kind, "each": each, "lines": lines, "threads": threads })
        };
        json!({ "operations": self.operations, "sites": self.sites().into_iter().map(site).collect::<Vec<_>>() })
    }
}

impl Row {
    fn place(&self) -> String {
        format!("{}:{}", self.file, self.source_line)
    }
}

/// Returns the code of a source line, which names what is written; empty if the source is not there.
fn code_at(place: &str) -> String {
    let Some((file, line)) = place.rsplit_once(':') else { return String::new() };
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file));
    let at = line.parse::<usize>().unwrap_or(1).saturating_sub(1);
    text.ok().and_then(|text| Some(text.lines().nth(at)?.trim().to_owned())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_added_up_by_source_line_and_by_line_of_memory() {
        let counted = json!([
            ["store", "c.rs", 4, 5, 0, 1000],
            ["store", "c.rs", 4, 5, 1, 5],
            ["modify", "a.rs", 1, 7, 0, 30],
            ["modify", "a.rs", 1, 7, 1, 10],
            ["store", "a.rs", 2, 7, 0, 20],
            ["store", "a.rs", 2, 8, 1, 20],
            ["lock", "b.rs", 3, 9, 0, 0],
        ]);
        let written = Written::read(&counted, 20.0).unwrap();
        let site = |kind: &str, place: &str, each, lines, threads| Site {
            kind: kind.into(),
            place: place.into(),
            each,
            lines,
            threads,
        };
        let expected = [
            site("store", "c.rs:4", 50.25, 1, 2),
            site("modify", "a.rs:1", 2.0, 1, 2),
            site("store", "a.rs:2", 2.0, 2, 1),
        ];
        assert_eq!(written.sites(), expected);
        let kinds = [("modify".into(), 2.0), ("store".into(), 1.0)].into();
        let places = ["a.rs:1".into(), "a.rs:2".into()].into();
        assert_eq!(written.shared(), [Shared { each: 3.0, kinds, places }]);
    }

    #[test]
    fn an_answer_in_another_form_is_none() {
        assert!([json!(7), json!([["store"]])].iter().all(|counted| Written::read(counted, 1.0).is_none()));
    }
}
