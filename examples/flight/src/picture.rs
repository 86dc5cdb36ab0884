//! The picture: for each thread its roles, and below them the tasks that it polls; time from left to right.

use std::fmt::Write;
use std::time::Duration;

use paceline::Role;
use paceline::trace::{Action, ThreadTrace, Trace};

use crate::polls;

const WIDTH: f64 = 1000.0;
/// The left and upper edge of the rows, and the distance between two threads.
const LEFT: f64 = 110.0;
const TOP: f64 = 96.0;
const ROW: f64 = 64.0;
/// The heights of a role and of a poll.
const ROLE: f64 = 22.0;
const POLL: f64 = 18.0;

const COLOURS: [(Role, &str); 3] =
    [(Role::Leads, "#2f9e44"), (Role::Follows, "#e4e7eb"), (Role::Processes, "#1c7ed6")];
const POLL_COLOUR: &str = "#f08c00";

/// A span of time, in the units of the picture.
type Span = (f64, f64);

/// Draws what the threads did between two times.
pub(crate) fn svg(trace: &Trace, from: Duration, to: Duration) -> String {
    let x = |at: Duration| {
        let share = at.saturating_sub(from).as_secs_f64() / (to - from).as_secs_f64();
        LEFT + share.min(1.0) * (WIDTH - LEFT - 20.0)
    };
    let is_shown = |thread: &&ThreadTrace| roles(thread, to).iter().any(|(role, ..)| *role == Role::Leads);
    let threads: Vec<_> = trace.threads.iter().filter(is_shown).collect();
    let bottom = TOP + ROW * threads.len() as f64;
    let height = bottom + 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\" \
         fill=\"#222\" role=\"img\">\n<title>Two workers while a task blocks one of them</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
         <text x=\"20\" y=\"28\" font-size=\"16\" font-weight=\"bold\">Two workers while a task blocks one of them</text>\n"
    );
    let out = &mut svg;
    let mut at = 20.0;
    let polls_too = COLOURS.iter().map(|(role, colour)| (role.to_string(), *colour));
    for (word, colour) in polls_too.chain([("polls a task".to_owned(), POLL_COLOUR)]) {
        _ = writeln!(out, "<rect x=\"{at}\" y=\"46\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
        _ = writeln!(out, "<text x=\"{}\" y=\"56\">{word}</text>", at + 17.0);
        at += 38.0 + 6.6 * word.len() as f64;
    }
    for (number, thread) in threads.iter().enumerate() {
        let y = TOP + ROW * number as f64;
        let name = thread.name.as_deref().unwrap_or("a thread");
        _ = writeln!(out, "<text x=\"20\" y=\"{}\">{name}</text>", y + 16.0);
        for (role, colour) in COLOURS {
            let spans = roles(thread, to).into_iter().filter(|(other, ..)| *other == role);
            draw(out, spans.map(|(_, begin, end)| (x(begin), x(end))), y, ROLE, colour);
        }
        let of_tasks = polls(thread).into_iter().filter(|(begin, end, _)| *end > from && *begin < to);
        draw(out, of_tasks.map(|(begin, end, _)| (x(begin), x(end))), y + ROLE + 4.0, POLL, POLL_COLOUR);
    }
    let step = Duration::from_millis(20);
    for mark in (0..).map(|number| from + step * number).take_while(|mark| *mark <= to) {
        let (x, millis) = (x(mark), (mark - from).as_millis());
        _ = writeln!(
            out,
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{millis} ms</text>",
            bottom + 10.0
        );
    }
    svg += "</svg>\n";
    svg
}

/// Returns the roles of a thread, each with its begin and end.
fn roles(thread: &ThreadTrace, end: Duration) -> Vec<(Role, Duration, Duration)> {
    let role = |event: &paceline::trace::TraceEvent| match event.action {
        Action::Role(role) => Some((role, event.at)),
        _ => None,
    };
    let begins: Vec<_> = thread.events.iter().filter_map(role).collect();
    let ends = begins.iter().skip(1).map(|(_, at)| *at).chain([end]);
    begins.iter().zip(ends).map(|((role, begin), end)| (*role, *begin, end)).collect()
}

/// Draws spans of one colour. Spans with no visible gap between them become one.
fn draw(out: &mut String, spans: impl Iterator<Item = Span>, y: f64, height: f64, colour: &str) {
    let mut merged: Vec<Span> = Vec::new();
    for (begin, end) in spans.filter(|(begin, end)| end > begin) {
        match merged.last_mut() {
            Some(last) if begin - last.1 < 0.15 => last.1 = end,
            _ => merged.push((begin, end)),
        }
    }
    let mut path = String::new();
    for (begin, end) in merged {
        let width = (end - begin).max(0.15);
        _ = write!(path, "M{begin:.2} {y}h{width:.2}v{height}h-{width:.2}z");
    }
    if !path.is_empty() {
        _ = writeln!(out, "<path fill=\"{colour}\" d=\"{path}\"/>");
    }
}
