//! The names, units and numbers that the two programs print; Prometheus' own tool checks the page.
#![cfg(unix)]

use std::io::{Read, Write};
use std::process::Stdio;

use example_testing::{PATIENCE, Server, command, ends, explains_itself, output, skip};

const PROMETHEUS: &str = env!("CARGO_BIN_EXE_metrics-prometheus");
const OPENTELEMETRY: &str = env!("CARGO_BIN_EXE_metrics-opentelemetry");

/// Returns what a program prints without arguments.
fn printed(program: &str) -> String {
    let (code, page, errors) = ends(program, &[]);
    assert_eq!((code, &*errors), (Some(0), ""));
    page
}

#[test]
fn they_explain_themselves_and_what_they_cannot_use_they_refuse() {
    [PROMETHEUS, OPENTELEMETRY].iter().for_each(|program| explains_itself(program, &[]));
}

/// Checks that a page has each metric, under names and with types that Prometheus wants.
fn check(page: &str) {
    let number = |name: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().expect("a number")
    };
    let mut names = 0;
    paceline::Metrics::default().each(|metric| {
        let mut name = format!("paceline_{}", metric.name);
        let mut kind = "gauge";
        if metric.unit == "s" {
            name += "_seconds";
        } else if metric.kind == paceline::MetricKind::Counter {
            (name, kind) = (name + "_total", "counter");
        }
        assert!(page.contains(&format!("# TYPE {name} {kind}\n")), "{name} in {page}");
        assert!(page.contains(&format!("# HELP {name} {}\n", metric.help)), "{name} in {page}");
        assert!(number(&name) >= 0.0);
        names += 1;
    });
    assert_eq!(page.lines().filter(|line| line.starts_with("# TYPE ")).count(), names);
    let polls = ["direct", "surplus", "stolen"].map(|kind| number(&format!("paceline_polls_{kind}_total")));
    assert!(polls.iter().sum::<f64>() >= 100.0, "{page}");
    assert!(number("paceline_workers") >= 1.0, "{page}");
}

#[test]
fn the_page_for_prometheus_has_each_metric() {
    check(&printed(PROMETHEUS));
}

#[test]
fn the_page_is_served() {
    let server = Server::start(PROMETHEUS, &["127.0.0.1:0"]);
    let answers = [(); 2].map(|()| {
        let mut client = server.connect();
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("it answers");
        answer
    });
    for answer in &answers {
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        check(answer.split_once("\r\n\r\n").expect("a head").1);
    }
    assert_ne!(answers[0], answers[1], "the second page has the numbers of the first");
}

#[test]
fn prometheus_own_tool_accepts_the_page() {
    let mut tool = command("promtool");
    tool.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut tool) = tool.spawn() else {
        return skip("promtool is not to be had (Debian has it in its package prometheus)");
    };
    let page = printed(PROMETHEUS);
    tool.stdin.take().expect("it is piped").write_all(page.as_bytes()).expect("it reads");
    let output = output(tool, PATIENCE);
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && said == ["", ""], "{said:?}: {page}");
}

#[test]
fn opentelemetry_has_each_metric() {
    let page = printed(OPENTELEMETRY);
    let mut names = 0;
    paceline::Metrics::default().each(|metric| {
        // The exporter prints name, description, unit and type of an instrument on lines of their own.
        let (name, unit) = (format!("paceline.{}", metric.name), metric.unit);
        let about = page
            .split("Metric #")
            .find(|about| about.lines().any(|line| line.ends_with(&format!(": {name}"))));
        let about = about.unwrap_or_else(|| panic!("no {name} in {page}"));
        assert!(about.contains(&format!(": {unit}\n")) && about.contains(metric.help), "{about}");
        let kind = if metric.kind == paceline::MetricKind::Counter { "Sum" } else { "Gauge" };
        assert!(about.contains(kind), "{about}");
        names += 1;
    });
    assert_eq!(page.matches("Metric #").count(), names, "{page}");
}
