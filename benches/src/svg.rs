//! Line plots as SVG, with no dependency: labelled axes, log or linear scales, a legend.

use std::fmt::Write;

/// One line of a plot.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// Which colour and marker, so that a name looks alike in all plots.
    pub style: usize,
    /// Drawn thicker.
    pub bold: bool,
    /// In ascending x.
    pub points: Vec<Mark>,
}

/// A point with its range.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Where on the horizontal axis.
    pub x: f64,
    /// The median.
    pub y: f64,
    /// The lower quartile.
    pub low: f64,
    /// The upper quartile.
    pub high: f64,
}

/// How values map to an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From zero.
    Linear,
    /// Powers of ten get a line; values must be positive.
    Log,
    /// Every x that occurs gets the same room: for a few values, zero among them.
    Steps,
}

/// An axis with its unit.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Say the unit, too.
    pub label: String,
    /// How values map to it.
    pub scale: Scale,
}

/// A plot to be rendered.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The line on top.
    pub title: String,
    /// A smaller line below it.
    pub note: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Drawn in this order; the legend has it, too.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 480.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 58.0;

/// Tell apart with and without colour: markers differ as well.
const COLOURS: [&str; 12] = [
    "#0b6e4f", "#d1495b", "#30638e", "#edae49", "#7b4fa3", "#3a3a3a", "#00a6a6", "#a05a2c", "#8fb339",
    "#e377c2", "#7f7f7f", "#1f4e9e",
];

/// An axis with its range fixed: values to pixels.
struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
    steps: Vec<f64>,
    from: f64,
    to: f64,
}

impl Ruler {
    fn new(scale: Scale, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Ruler {
        let mut steps: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        steps.sort_by(f64::total_cmp);
        steps.dedup();
        let (least, most) = (steps.first().copied().unwrap_or(1.0), steps.last().copied().unwrap_or(1.0));
        let (low, high) = match scale {
            Scale::Linear => (0.0, nice_above(most)),
            // A little room below and above, so that no marker lies on the frame.
            Scale::Log => (least.max(1e-9) / 1.25, most.max(1e-9) * 1.25),
            Scale::Steps => (-0.5, steps.len() as f64 - 0.5),
        };
        Ruler { scale, low, high, steps, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Log => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            Scale::Steps => {
                let place = self.steps.iter().position(|step| *step >= value).unwrap_or(0) as f64;
                (place - self.low) / (self.high - self.low)
            }
        };
        self.from + share * (self.to - self.from)
    }

    fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => (0..=5).map(|part| self.high * f64::from(part) / 5.0).collect(),
            Scale::Steps => self.steps.clone(),
            Scale::Log => {
                let decades = (self.high / self.low).log10();
                let between: &[f64] = if decades > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let first = self.low.log10().floor() as i32;
                let last = self.high.log10().ceil() as i32;
                let ticks =
                    (first..=last).flat_map(|power| between.iter().map(move |one| one * 10_f64.powi(power)));
                ticks.filter(|tick| (self.low..=self.high).contains(tick)).collect()
            }
        }
    }
}

/// The next of 1, 2, 2.5, 5, 10 times a power of ten.
fn nice_above(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(1e-9).log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|step| step * power >= value * 1.02);
    step.unwrap_or(10.0) * power
}

fn number(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        value if value >= 1e3 => format!("{}k", trimmed(value / 1e3)),
        value => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl Plot {
    /// The whole document.
    pub fn render(&self) -> String {
        let values = || self.series.iter().flat_map(|series| series.points.iter());
        let x = Ruler::new(self.x.scale, values().map(|mark| mark.x), LEFT, WIDTH - RIGHT);
        let y =
            Ruler::new(self.y.scale, values().flat_map(|mark| [mark.low, mark.high]), HEIGHT - BOTTOM, TOP);
        let mut svg = String::new();
        // Writing to a string cannot fail.
        let _ = self.draw(&mut svg, &x, &y);
        svg
    }

    fn draw(&self, svg: &mut String, x: &Ruler, y: &Ruler) -> std::fmt::Result {
        writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
             <text x=\"{LEFT}\" y=\"24\" font-size=\"16\" font-weight=\"bold\">{}</text>\n\
             <text x=\"{LEFT}\" y=\"44\" fill=\"#666\">{}</text>",
            escaped(&self.title),
            escaped(&self.note)
        )?;
        self.draw_axes(svg, x, y)?;
        for (index, series) in self.series.iter().enumerate() {
            draw_series(svg, index, series, x, y)?;
        }
        svg.write_str("</svg>\n")
    }

    fn draw_axes(&self, svg: &mut String, x: &Ruler, y: &Ruler) -> std::fmt::Result {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for tick in x.ticks() {
            let at = x.at(tick);
            writeln!(
                svg,
                "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#e6e6e6\"/>"
            )?;
            let text = number(tick);
            writeln!(
                svg,
                "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
                bottom + 18.0
            )?;
        }
        for tick in y.ticks() {
            let at = y.at(tick);
            writeln!(
                svg,
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#e6e6e6\"/>"
            )?;
            let (text, from, base) = (number(tick), LEFT - 8.0, at + 4.0);
            writeln!(svg, "<text x=\"{from}\" y=\"{base:.1}\" text-anchor=\"end\">{text}</text>")?;
        }
        writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#888\"/>",
            right - LEFT,
            bottom - TOP
        )?;
        let (middle, low) = ((LEFT + right) / 2.0, HEIGHT - 14.0);
        writeln!(
            svg,
            "<text x=\"{middle}\" y=\"{low}\" text-anchor=\"middle\">{}</text>",
            escaped(&self.x.label)
        )?;
        let middle = (TOP + bottom) / 2.0;
        writeln!(
            svg,
            "<text transform=\"translate(20 {middle}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escaped(&self.y.label)
        )
    }
}

fn draw_series(svg: &mut String, index: usize, series: &Series, x: &Ruler, y: &Ruler) -> std::fmt::Result {
    let colour = COLOURS[series.style % COLOURS.len()];
    let width = if series.bold { 3.0 } else { 1.6 };
    let line: Vec<String> =
        series.points.iter().map(|mark| format!("{:.1},{:.1}", x.at(mark.x), y.at(mark.y))).collect();
    let line = line.join(" ");
    writeln!(
        svg,
        "<polyline points=\"{line}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
    )?;
    for mark in &series.points {
        let (at, low, high) = (x.at(mark.x), y.at(mark.low), y.at(mark.high));
        writeln!(
            svg,
            "<line x1=\"{at:.1}\" y1=\"{low:.1}\" x2=\"{at:.1}\" y2=\"{high:.1}\" stroke=\"{colour}\" \
             stroke-width=\"5\" opacity=\"0.25\"/>"
        )?;
        marker(svg, series.style, at, y.at(mark.y), colour)?;
    }
    let (left, at) = (WIDTH - RIGHT + 16.0, TOP + 12.0 + 22.0 * index as f64);
    let end = left + 26.0;
    writeln!(
        svg,
        "<line x1=\"{left}\" y1=\"{at}\" x2=\"{end}\" y2=\"{at}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
    )?;
    marker(svg, series.style, left + 13.0, at, colour)?;
    writeln!(svg, "<text x=\"{}\" y=\"{}\">{}</text>", end + 6.0, at + 4.0, escaped(&series.name))
}

/// Circle, square, diamond, triangle, in turn.
fn marker(svg: &mut String, style: usize, x: f64, y: f64, colour: &str) -> std::fmt::Result {
    let corners: &[(f64, f64)] = match style % 4 {
        0 => return writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>"),
        1 => &[(-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)],
        2 => &[(0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)],
        _ => &[(0.0, -5.0), (4.5, 3.5), (-4.5, 3.5)],
    };
    let corners: Vec<String> =
        corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
    writeln!(svg, "<polygon points=\"{}\" fill=\"{colour}\"/>", corners.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_axis_spaces_decades_evenly_and_labels_them() {
        let ruler = Ruler::new(Scale::Log, [1.0, 1_000.0, 100_000.0].into_iter(), 0.0, 100.0);
        let (one, ten, hundred) = (ruler.at(1.0), ruler.at(10.0), ruler.at(100.0));
        assert!(((ten - one) - (hundred - ten)).abs() < 1e-9);
        assert_eq!(ruler.ticks().len(), 6);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.5, 20.0, 1_500.0, 2e6].map(number), ["0.5", "20", "1.5k", "2M"]);
    }

    #[test]
    fn the_top_of_a_linear_axis_lies_above_every_value() {
        for value in [0.3, 1.0, 7.7, 42.0, 260_000.0] {
            assert!(nice_above(value) > value);
        }
    }
}
