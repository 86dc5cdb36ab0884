//! Third-party clients: those that come with redis.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use crate::programs::output;
use crate::served::{LONG, Served, serve};

/// Returns the output of a program, or `None` with a message if it is not installed.
fn run(program: &str, server: &Served, args: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(["-p", &server.port()]).args(args).stdin(Stdio::null());
    let output = match command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn() {
        Ok(child) => output(child, LONG),
        Err(error) => {
            // Written directly, because the test harness captures the output of a test.
            let _ = writeln!(io::stderr(), "SKIPPED: {program} cannot be run ({error}): install redis-tools");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{program} {args:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    Some(said)
}

#[test]
fn redis_cli_gets_what_it_expects() {
    let server = serve(100);
    let rows: &[(&[&str], &str)] = &[
        (&["PING"], "PONG"),
        (&["ECHO", "hello world"], "hello world"),
        (&["SET", "key", "a value\r\nof two lines"], "OK"),
        (&["GET", "key"], "a value\r\nof two lines"),
        (&["SET", "key", "other", "NX"], ""),
        (&["EXISTS", "key", "none", "key"], "2"),
        (&["TTL", "key"], "-1"),
        (&["EXPIRE", "key", "100"], "1"),
        (&["TTL", "key"], "100"),
        (&["SET", "key", "1", "EX", "50"], "OK"),
        (&["INCR", "key"], "2"),
        (&["TTL", "key"], "50"),
        (&["SET", "key", "9223372036854775807"], "OK"),
        (&["TTL", "key"], "-1"),
        (&["INCR", "key"], "ERR increment or decrement would overflow\n"),
        (&["EXPIRE", "key", "-1"], "1"),
        (&["GET", "key"], ""),
        (&["TTL", "key"], "-2"),
        (&["INCR", "new"], "1"),
        (&["DEL", "new", "none"], "1"),
        (&["SET", "key", "x", "EX", "0"], "ERR invalid expire time in 'set' command\n"),
        (&["SET", "key", "x", "PX"], "ERR syntax error\n"),
        (&["SET", "key", "x", "EX", "1", "PX", "1"], "ERR syntax error\n"),
        (&["GET"], "ERR wrong number of arguments for 'get' command\n"),
        (&["PUBLISH", "nowhere", "listens"], "0"),
        (&["CONFIG", "GET", "save"], "save\n"),
        (&["COMMAND", "DOCS"], ""),
        (&["NONSENSE", "a", "b"], "ERR unknown command 'NONSENSE', with args beginning with: 'a' 'b' \n"),
        (&["QUIT"], "OK"),
    ];
    for (args, expected) in rows {
        let Some(said) = run("redis-cli", &server, args) else { return };
        assert_eq!(said.strip_suffix('\n'), Some(*expected), "{args:?}");
    }
}

#[test]
fn redis_benchmark_runs_through() {
    let server = serve(100);
    let tests = "ping_inline,ping_mbulk,set,get,incr";
    for more in [&["-P", "1"][..], &["-P", "16"], &["-P", "16", "-d", "3000"]] {
        let args = [&["-c", "20", "-n", "5000", "-r", "100", "-t", tests, "--csv"], more].concat();
        let Some(said) = run("redis-benchmark", &server, &args) else { return };
        // A title, and a row for each command.
        assert_eq!(
            said.lines().filter(|line| line.starts_with('"')).count(),
            1 + tests.split(',').count(),
            "{said}"
        );
    }
    // The commands were run: the keys exist.
    let mut peer = server.connect();
    assert!(!peer.ask("GET counter:000000000007\r\n").starts_with("$-1"));
    server.is_well();
}
