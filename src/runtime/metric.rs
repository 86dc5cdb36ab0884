//! [`Metric`]: one number of [`Metrics`](super::Metrics), with what a system that collects metrics has to
//! know of it.

/// One number of [`Metrics`](super::Metrics): see [`Metrics::each`](super::Metrics::each).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// The name of the field of [`Metrics`](super::Metrics), in snake case and without a prefix. Prometheus
    /// and OpenTelemetry accept it after `paceline_` or `paceline.`.
    pub name: &'static str,
    /// What is counted, as a sentence.
    pub help: &'static str,
    /// The unit in UCUM, as OpenTelemetry wants it: `s`, or what is counted in braces, as in `{task}`.
    pub unit: &'static str,
    /// Whether the number only rises.
    pub kind: MetricKind,
    /// The number. A duration is in seconds. Counts of up to 2 to the power of 53 are exact.
    pub value: f64,
}

/// How a [`Metric`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricKind {
    /// The number counts from the start of the runtime, and only rises.
    Counter,
    /// The number is that of now, and rises and falls.
    Gauge,
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use std::collections::HashSet;
    use std::time::Duration;

    use super::super::Metrics;
    use super::*;

    /// Metrics in which no two numbers are the same.
    fn distinct() -> Metrics {
        let mut next = 0;
        let mut number = || {
            next += 1;
            next
        };
        let mut size = || number() as usize;
        let sizes = [(); 8].map(|()| size());
        Metrics {
            polls_direct: number(),
            polls_surplus: number(),
            polls_stolen: number(),
            promotions_free: number(),
            promotions_paid: number(),
            followers_woken: number(),
            events: number(),
            events_stolen: number(),
            waits: number(),
            empty_waits: number(),
            sleeps: number(),
            leader_interrupts: number(),
            spin_time: Duration::from_millis(1500),
            deputy_rescues: number(),
            replacements: number(),
            stalls: number(),
            stalls_blocked: number(),
            stalls_computing: number(),
            starved: number(),
            tasks_panicked: number(),
            sources: sizes[0],
            timers: sizes[1],
            tasks: Some(sizes[2]),
            workers: sizes[3],
            blocking_threads: sizes[4],
            blocking_idle: sizes[5],
            blocking_queued: sizes[6],
            blocking_jobs: number(),
            blocking_lost: sizes[7],
        }
    }

    fn all(metrics: &Metrics) -> Vec<Metric> {
        let mut all = Vec::new();
        metrics.each(|metric| all.push(metric));
        all
    }

    /// The derived `Debug` lists the fields, with their numbers.
    #[test]
    fn each_field_comes_once_with_its_own_number() {
        let metrics = distinct();
        let fields = format!("{metrics:?}").replace("Some(", "").replace(')', "");
        let fields = fields.trim_start_matches("Metrics { ").trim_end_matches(" }").split(", ");
        let fields: HashSet<String> = fields.map(|field| field.replace("1.5s", "1.5")).collect();
        let visited = all(&metrics);
        let lines: HashSet<String> =
            visited.iter().map(|metric| format!("{}: {}", metric.name, metric.value)).collect();
        assert_eq!(lines, fields);
        assert_eq!(visited.len(), fields.len(), "each once");
        let values: HashSet<u64> = visited.iter().map(|metric| metric.value.to_bits()).collect();
        assert_eq!(
            values.len(),
            visited.len(),
            "two numbers are the same: the test would not tell them apart"
        );
    }

    #[test]
    fn each_is_a_line() {
        let text = distinct().to_string();
        assert_eq!(text.lines().count(), all(&distinct()).len());
        let line = "\nspin_time               1.5  Time that threads stayed awake without work.\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn the_default_has_the_same_names_and_zeros() {
        let (zeros, others) = (all(&Metrics::default()), all(&distinct()));
        assert!(zeros.iter().zip(&others).all(|(zero, other)| zero.name == other.name && zero.value == 0.0));
        assert_eq!(zeros.len(), others.len());
    }

    /// The names of an instrument, of a metric and of a unit, as both systems have them; `promtool check
    /// metrics` looks for some more, in the test of `examples/metrics`.
    #[test]
    fn prometheus_and_opentelemetry_accept_the_names_and_the_units() {
        for metric in all(&distinct()) {
            let Metric { name, help, unit, .. } = metric;
            // A letter, then letters, digits and `_`; OpenTelemetry allows 255 characters.
            assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_') && name.len() < 63, "{name}");
            assert!(!name.contains("__") && !name.ends_with('_'), "{name}");
            // The exporters add these.
            for suffix in ["_total", "_count", "_sum", "_bucket", "_seconds", "_info", "_created"] {
                assert!(!name.ends_with(suffix), "{name}");
            }
            // OpenTelemetry: at most 63 ASCII characters, and an annotation has no braces inside.
            let annotation = unit.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
            let is_noun = |noun: &str| !noun.is_empty() && noun.chars().all(|c| c.is_ascii_lowercase());
            assert!(unit == "s" || annotation.is_some_and(is_noun), "{name}: {unit}");
            assert!(help.ends_with('.') && !help.contains(['\n', '\\', '"']), "{name}: {help}");
        }
    }
}
