//! An axis with a fixed range: maps values to pixels, and chooses the values with labels.

use super::Scale;

/// The kind of scale that [`Scale`] was resolved to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Linear,
    Log,
    Steps,
}

pub(super) struct Ruler {
    kind: Kind,
    low: f64,
    high: f64,
    /// The distance between labels of a linear axis.
    step: f64,
    /// The values that occur, in order.
    values: Vec<f64>,
    from: f64,
    to: f64,
}

impl Ruler {
    /// `from` is the pixel of the low end.
    pub(super) fn new(scale: Scale, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Ruler {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        let (least, most) = (values.first().copied().unwrap_or(1.0), values.last().copied().unwrap_or(1.0));
        let kind = match scale {
            Scale::Log => Kind::Log,
            Scale::Steps => Kind::Steps,
            Scale::Fitting if least > 0.0 && most / least >= 10.0 => Kind::Log,
            Scale::Fitting => Kind::Linear,
        };
        let step = nice_step(most);
        let (low, high) = match kind {
            Kind::Linear => (0.0, (most * 1.02 / step).ceil() * step),
            // A little room below and above, so that no marker lies on the frame.
            Kind::Log => (least.max(1e-9) / 1.25, most.max(1e-9) * 1.25),
            Kind::Steps => (-0.5, values.len() as f64 - 0.5),
        };
        Ruler { kind, low, high, step, values, from, to }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        let share = match self.kind {
            Kind::Linear => (value - self.low) / (self.high - self.low),
            Kind::Log => (value.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            Kind::Steps => {
                let place = self.values.iter().position(|known| *known >= value).unwrap_or(0) as f64;
                (place - self.low) / (self.high - self.low)
            }
        };
        self.from + share * (self.to - self.from)
    }

    /// Returns round values along the whole axis.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.kind {
            Kind::Linear => {
                let count = (self.high / self.step).round() as u32;
                (0..=count).map(|part| self.step * f64::from(part)).collect()
            }
            Kind::Steps => self.values.clone(),
            Kind::Log => {
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

    /// Returns the measured values if they are few enough to be told apart, else round ones.
    pub(super) fn measured(&self) -> Vec<f64> {
        const FEW: usize = 10;
        if self.values.len() <= FEW { self.values.clone() } else { self.ticks() }
    }
}

/// Returns 1, 2, 2.5 or 5 times a power of ten, so that four to six steps reach the value.
fn nice_step(most: f64) -> f64 {
    let rough = most.max(1e-9) / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0].into_iter().find(|step| step * power >= rough);
    step.unwrap_or(10.0) * power
}

/// Formats a value for a label.
pub(super) fn number(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        value if value >= 1e3 => format!("{}k", trimmed(value / 1e3)),
        value => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = if value < 0.1 { format!("{value:.4}") } else { format!("{value:.2}") };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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
        assert_eq!(ruler.measured(), [1.0, 1_000.0, 100_000.0]);
    }

    #[test]
    fn an_axis_is_logarithmic_only_where_values_span_a_decade() {
        let kind = |most: f64| Ruler::new(Scale::Fitting, [100.0, most].into_iter(), 0.0, 100.0).kind;
        assert_eq!([999.0, 1_000.0].map(kind), [Kind::Linear, Kind::Log]);
    }

    #[test]
    fn the_top_of_a_linear_axis_lies_above_every_value_and_has_a_label() {
        for value in [0.3, 1.0, 7.7, 42.0, 610.0, 260_000.0] {
            let ruler = Ruler::new(Scale::Fitting, std::iter::once(value), 0.0, 100.0);
            let ticks = ruler.ticks();
            assert!(ruler.high > value && (4..=7).contains(&ticks.len()), "{value}: {ticks:?}");
            assert!((ruler.at(*ticks.last().unwrap()) - 100.0).abs() < 1e-6, "{value}: {ticks:?}");
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, 0.02, 0.5, 20.0, 1_500.0, 2e6].map(number),
            ["0", "0.02", "0.5", "20", "1.5k", "2M"]
        );
    }
}
