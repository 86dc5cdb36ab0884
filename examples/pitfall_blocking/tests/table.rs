//! The program's table, of short rounds.

use std::process::Command;

/// Returns the figures of a row: in order, requests and p99 alone; requests, p50, p99 and the maximum beside
/// blocking clients.
fn row(said: &str, name: &str) -> Vec<f64> {
    let row = said.lines().find(|line| line.split_whitespace().next() == Some(name)).expect(said);
    let figures: Vec<_> = row.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(figures.len(), 6, "{row}");
    figures
}

/// All three serve; beside four handlers that block two threads, only one continues undisturbed. (With the
/// others, 16 clients wait for one or more pauses of 20 ms, again and again.) Its rate is hundreds of times
/// higher. The test requires a factor of ten, in one of three tables, because other programs may use the
/// machine for a whole round.
#[test]
fn only_one_goes_on_beside_handlers_that_block() {
    let mut said = String::new();
    let goes_on = || {
        let output =
            Command::new(env!("CARGO_BIN_EXE_example-pitfall-blocking")).arg("0.7").output().unwrap();
        let table = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{table}{}", String::from_utf8_lossy(&output.stderr));
        assert!(table.contains("The price: paceline added "), "{table}");
        let [tokio, smol, paceline] = ["tokio", "smol", "paceline"].map(|name| row(&table, name));
        for figures in [&tokio, &smol, &paceline] {
            assert!(figures.iter().all(|figure| *figure >= 0.0) && figures[0] > 0.0, "{table}");
        }
        said += &table;
        [tokio, smol].iter().all(|other| paceline[2] > 10.0 * other[2])
    };
    assert!(std::iter::repeat_with(goes_on).take(3).any(|goes_on| goes_on), "{said}");
}

#[test]
#[cfg(unix)]
fn it_explains_itself_and_what_it_cannot_use_it_refuses() {
    let program = env!("CARGO_BIN_EXE_example-pitfall-blocking");
    example_testing::explains_itself(program, &[&["long"], &["-1"], &["inf"], &["1", "2"]]);
}
