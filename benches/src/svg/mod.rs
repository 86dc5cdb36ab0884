//! Line plots as SVG, with no dependency: labelled axes, log or linear scales, a legend beside the lines.
//!
//! The background is solid, so that a plot is legible on a dark page, too.

mod draw;
mod ruler;

/// One line of a plot.
#[derive(Clone, Debug)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The style; a name has the same style in all plots.
    pub style: Style,
    /// In ascending x.
    pub points: Vec<Mark>,
}

/// Lines can be told apart with and without colour: by their markers and dashes.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// The colour in the syntax of SVG.
    pub colour: &'static str,
    /// The shape of the points.
    pub marker: Marker,
    /// For variants of the solid line of the same colour.
    pub dashed: bool,
    /// Drawn thicker.
    pub bold: bool,
}

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A disc.
    Circle,
    /// Edges level.
    Square,
    /// A square on its corner.
    Diamond,
    /// Its tip up.
    Triangle,
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
    /// Drawn with an empty marker, for a figure that needs an explanation; a note must give it.
    pub hollow: bool,
}

/// How values map to an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Logarithmic; values must be positive.
    Log,
    /// [`Scale::Log`] where the values span a decade or more, else linear from zero.
    Fitting,
    /// Equal room for every x value: for a few values, zero among them.
    Steps,
}

/// An axis with its unit.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The label, with the unit.
    pub label: String,
    /// How values map to it.
    pub scale: Scale,
}

/// A plot to be rendered.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The line on top.
    pub title: String,
    /// Smaller lines below it; long ones are broken.
    pub notes: Vec<String>,
    /// The smallest line, at the very bottom.
    pub footer: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// In the legend's order. The first is drawn last, on top of the others.
    pub series: Vec<Series>,
}
