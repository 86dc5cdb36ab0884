//! The picture: a row for each thread, time from left to right, coloured by role.

use std::fmt::Write;
use std::time::Duration;

use paceline::{Role, ThreadKind};

use crate::record::{Lane, Record};

const WIDTH: f64 = 1000.0;
/// The left and upper edge of the rows, the distance between them, and the height of each.
const LEFT: f64 = 130.0;
const TOP: f64 = 104.0;
const ROW: f64 = 34.0;
const HEIGHT: f64 = 26.0;

const COLOURS: [(Role, &str); 7] = [
    (Role::Leads, "#2f9e44"),
    (Role::Follows, "#e4e7eb"),
    (Role::Processes, "#1c7ed6"),
    (Role::Blocks, "#e03131"),
    (Role::Computes, "#ae3ec9"),
    (Role::Starves, "#f59f00"),
    (Role::Outside, "#868e96"),
];

pub fn svg(record: &Record) -> String {
    let lasted = record.lanes.iter().filter_map(Lane::end).max().unwrap_or(Duration::from_millis(1));
    let x = |time: Duration| LEFT + time.as_secs_f64() / lasted.as_secs_f64() * (WIDTH - LEFT - 40.0);
    let bottom = TOP + ROW * record.lanes.len() as f64;
    let height = bottom + 60.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\" role=\"img\">\n\
         <title>What each thread of a runtime is at, over time</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"20\" y=\"26\" font-size=\"16\" font-weight=\"bold\">Three workers, and the role of each</text>\n\
         <text x=\"20\" y=\"46\" fill=\"#555\">A run of the example roles: six clients, and handlers that block or compute on \
         demand. Threads in brackets were added by the deputy.</text>\n"
    );
    let out = &mut svg;
    let mut at = 20.0;
    for (role, colour) in COLOURS {
        _ = writeln!(out, "<rect x=\"{at}\" y=\"58\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
        _ = writeln!(out, "<text x=\"{}\" y=\"68\">{role}</text>", at + 17.0);
        at += 38.0 + 6.6 * role.to_string().len() as f64;
    }
    for step in (0..=lasted.as_millis()).step_by(100) {
        let x = x(Duration::from_millis(step as u64));
        _ = writeln!(out, "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#ccc\"/>");
        _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{step} ms</text>",
            bottom + 18.0
        );
    }
    for (number, lane) in record.lanes.iter().enumerate() {
        let y = TOP + ROW * number as f64;
        let added = if lane.kind == ThreadKind::Worker { String::new() } else { format!(" ({})", lane.kind) };
        _ = writeln!(out, "<text x=\"20\" y=\"{}\">{}{added}</text>", y + 18.0, lane.name);
        for (role, colour) in COLOURS {
            let mut path = String::new();
            for span in lane.spans.iter().filter(|span| span.role == role) {
                let (from, to) = (x(span.from), x(span.to));
                _ = write!(path, "M{from:.1} {y}h{:.1}v{HEIGHT}h{:.1}z", to - from, from - to);
            }
            if !path.is_empty() {
                _ = writeln!(out, "<path fill=\"{colour}\" d=\"{path}\"/>");
            }
        }
    }
    for (time, what) in &record.marks {
        let x = x(*time);
        let (from, to) = (TOP - 14.0, bottom + 4.0);
        _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{from}\" x2=\"{x:.1}\" y2=\"{to}\" stroke=\"#222\" stroke-dasharray=\"3 3\"/>"
        );
        _ = writeln!(out, "<text x=\"{:.1}\" y=\"{}\">{what}</text>", x + 4.0, TOP - 8.0);
    }
    svg + "</svg>\n"
}
