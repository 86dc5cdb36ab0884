//! Renders a plot as text.

use std::fmt::{Result, Write};

use super::ruler::{Ruler, number};
use super::{Mark, Marker, Plot, Series, Style};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 180.0;
/// The height of the frame around the lines.
const FRAME: f64 = 370.0;
const BOTTOM: f64 = 78.0;
const LINE: f64 = 17.0;
/// How many letters of a note fit into a line.
const LETTERS: usize = 118;

/// The position of the frame, which depends on the number of notes.
struct Frame {
    top: f64,
    bottom: f64,
    x: Ruler,
    y: Ruler,
}

impl Plot {
    /// Returns the whole document.
    pub fn render(&self) -> String {
        let notes = self.notes.iter().flat_map(|note| broken(note)).collect::<Vec<_>>();
        let top = 42.0 + LINE * notes.len() as f64;
        let bottom = top + FRAME;
        let marks = || self.series.iter().flat_map(|series| series.points.iter());
        let heights = marks().flat_map(|mark| [mark.low, mark.high]);
        let frame = Frame {
            top,
            bottom,
            x: Ruler::new(self.x.scale, marks().map(|mark| mark.x), LEFT, WIDTH - RIGHT),
            y: Ruler::new(self.y.scale, heights, bottom, top),
        };
        let mut svg = String::new();
        // Writing to a string cannot fail.
        let _ = self.draw(&mut svg, &frame, &notes);
        svg
    }

    fn draw(&self, svg: &mut String, frame: &Frame, notes: &[String]) -> Result {
        let height = frame.bottom + BOTTOM;
        let title = escaped(&self.title);
        writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\" role=\"img\">\n\
             <title>{title}</title>\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#fff\"/>\n\
             <text x=\"20\" y=\"26\" font-size=\"16\" font-weight=\"bold\">{title}</text>"
        )?;
        for (index, note) in notes.iter().enumerate() {
            let at = 46.0 + LINE * index as f64;
            writeln!(svg, "<text x=\"20\" y=\"{at}\" fill=\"#555\">{}</text>", escaped(note))?;
        }
        let footer = escaped(&self.footer);
        writeln!(
            svg,
            "<text x=\"20\" y=\"{}\" font-size=\"11\" fill=\"#777\">{footer}</text>",
            height - 10.0
        )?;
        self.draw_axes(svg, frame)?;
        for series in self.series.iter().rev() {
            draw_series(svg, series, frame)?;
        }
        for (index, series) in self.series.iter().enumerate() {
            draw_legend(svg, index, series, frame.top)?;
        }
        svg.write_str("</svg>\n")
    }

    fn draw_axes(&self, svg: &mut String, frame: &Frame) -> Result {
        let Frame { top, bottom, x, y } = frame;
        let right = WIDTH - RIGHT;
        for tick in x.measured() {
            let (at, below, text) = (x.at(tick), bottom + 18.0, number(tick));
            writeln!(
                svg,
                "<line x1=\"{at:.1}\" y1=\"{top}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#e6e6e6\"/>\n\
                 <text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{text}</text>"
            )?;
        }
        for tick in y.ticks() {
            let (at, from, base, text) = (y.at(tick), LEFT - 8.0, y.at(tick) + 4.0, number(tick));
            writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#e6e6e6\"/>\n\
                 <text x=\"{from}\" y=\"{base:.1}\" text-anchor=\"end\">{text}</text>"
            )?;
        }
        let (wide, high) = (right - LEFT, bottom - top);
        writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" fill=\"none\" stroke=\"#888\"/>"
        )?;
        let (centre, middle, low) = ((LEFT + right) / 2.0, (top + bottom) / 2.0, bottom + 40.0);
        let (across, up) = (escaped(&self.x.label), escaped(&self.y.label));
        writeln!(
            svg,
            "<text x=\"{centre}\" y=\"{low}\" font-size=\"13\" text-anchor=\"middle\">{across}</text>\n\
             <text transform=\"translate(30 {middle}) rotate(-90)\" font-size=\"13\" text-anchor=\"middle\">{up}</text>"
        )
    }
}

fn width(style: Style) -> f64 {
    if style.bold { 3.5 } else { 1.6 }
}

fn dashes(style: Style) -> &'static str {
    if style.dashed { " stroke-dasharray=\"6 4\"" } else { "" }
}

fn draw_series(svg: &mut String, series: &Series, frame: &Frame) -> Result {
    let (style, colour) = (series.style, series.style.colour);
    let place = |mark: &Mark| (frame.x.at(mark.x), frame.y.at(mark.y));
    let line = series.points.iter().map(|mark| {
        let (x, y) = place(mark);
        format!("{x:.1},{y:.1}")
    });
    writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\"{}/>",
        line.collect::<Vec<_>>().join(" "),
        width(style),
        dashes(style)
    )?;
    for mark in &series.points {
        let ((x, y), low, high) = (place(mark), frame.y.at(mark.low), frame.y.at(mark.high));
        // The bars of the variants would hide those of their originals.
        if !style.dashed {
            writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{low:.1}\" x2=\"{x:.1}\" y2=\"{high:.1}\" stroke=\"{colour}\" \
                 stroke-width=\"5\" opacity=\"0.25\"/>"
            )?;
        }
        draw_marker(svg, style, (x, y), mark.hollow)?;
    }
    Ok(())
}

fn draw_legend(svg: &mut String, index: usize, series: &Series, top: f64) -> Result {
    let (style, colour) = (series.style, series.style.colour);
    let (from, at) = (WIDTH - RIGHT + 14.0, top + 10.0 + 23.0 * index as f64);
    let to = from + 32.0;
    writeln!(
        svg,
        "<line x1=\"{from}\" y1=\"{at}\" x2=\"{to}\" y2=\"{at}\" stroke=\"{colour}\" stroke-width=\"{}\"{}/>",
        width(style),
        dashes(style)
    )?;
    draw_marker(svg, style, (from + 16.0, at), false)?;
    let weight = if style.bold { " font-weight=\"bold\"" } else { "" };
    writeln!(svg, "<text x=\"{}\" y=\"{}\"{weight}>{}</text>", to + 6.0, at + 4.0, escaped(&series.name))
}

fn draw_marker(svg: &mut String, style: Style, (x, y): (f64, f64), hollow: bool) -> Result {
    let colour = style.colour;
    let fill = if hollow { "#fff" } else { colour };
    let ink = format!("fill=\"{fill}\" stroke=\"{colour}\" stroke-width=\"1.5\"");
    let corners: &[(f64, f64)] = match style.marker {
        Marker::Circle => return writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" {ink}/>"),
        Marker::Square => &[(-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)],
        Marker::Diamond => &[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)],
        Marker::Triangle => &[(0.0, -5.0), (4.5, 3.5), (-4.5, 3.5)],
    };
    let corners: Vec<String> =
        corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
    writeln!(svg, "<polygon points=\"{}\" {ink}/>", corners.join(" "))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Breaks a note into lines that fit.
fn broken(note: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in note.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= LETTERS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_broken_and_loses_nothing() {
        let note = "word ".repeat(60);
        let lines = broken(&note);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.len() <= LETTERS));
        assert_eq!(lines.join(" "), note.trim());
    }
}
