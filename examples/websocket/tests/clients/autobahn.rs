//! The fuzzing client of the Autobahn test suite, which runs on Python 2.7 only: 301 conversations in some 20
//! seconds.

use std::fs;
use std::path::Path;

use example_testing::{printed, run, say, skip};

/// Without the cases that the library does not support (12 and 13 are about compression, 11 is WAMP's).
const CASES: &str = r#""cases": ["*"], "exclude-cases": ["11.*", "12.*", "13.*"], "exclude-agent-cases": {}"#;

/// Installs it into `folder`, unless it is there.
fn install(python: &str, folder: &Path) -> bool {
    let done = folder.join("installed");
    if done.exists() {
        return true;
    }
    let target = folder.to_str().expect("a path that is text");
    let args = ["-m", "pip", "install", "--quiet", "--target", target, "autobahntestsuite==25.10.1"];
    run(python, &args).is_some_and(|it| it.status.success()) && fs::write(done, "").is_ok()
}

#[test]
fn autobahn() {
    // Given, on the path, or in pyenv's folder.
    let pyenv = std::env::var("HOME").unwrap_or_default() + "/.pyenv/versions/2.7.18/bin/python2.7";
    let given = std::env::var("PYTHON2").ok();
    let mut candidates = given.as_deref().into_iter().chain(["python2.7", "python2", &pyenv]);
    let Some(python) =
        candidates.find(|python| run(python, &["--version"]).is_some_and(|it| it.status.success()))
    else {
        return skip("there is no Python 2.7 (PYTHON2 may name one)");
    };
    let modules = crate::folder("autobahn");
    if !install(python, &modules) {
        return skip("Python's package autobahntestsuite cannot be installed");
    }

    let server = crate::server();
    let reports = crate::folder("autobahn-reports");
    let spec = crate::folder("autobahn.json");
    let text = format!(
        r#"{{"outdir": {reports:?}, "servers": [{{"agent": "paceline", "url": "ws://{}"}}], {CASES}}}"#,
        server.addr()
    );
    fs::write(&spec, text).expect("the folder is ours");
    let main = format!(
        "import site, sys; site.addsitedir({modules:?}); sys.argv = ['wstest', '-m', 'fuzzingclient', '-s', {spec:?}]; \
         from autobahntestsuite import wstest; wstest.run()"
    );
    printed(&run(python, &["-c", &main]).expect("it was found above"));
    let index = fs::read_to_string(reports.join("index.json")).expect("it has written its report");
    let count = |word: &str| index.matches(&format!(r#""behavior": "{word}""#)).count();
    let words = ["OK", "NON-STRICT", "INFORMATIONAL", "UNIMPLEMENTED", "FAILED"];
    say(&format!("Autobahn: {}", words.map(|word| format!("{word}: {}", count(word))).join(", ")));
    let failed = index.lines().filter(|line| line.contains("FAILED")).count();
    assert!(count("OK") > 200 && failed == 0, "see {}", reports.join("index.html").display());
}
