//! `roles`: the output without a terminal, the picture, and the view in a terminal.

use std::{env, fs, process};

use crate::process::{other, path, start};
use crate::programs::refuses;

/// Returns the rows of a frame, by its title.
fn frame<'a>(said: &'a str, title: &str) -> Vec<&'a str> {
    said.lines()
        .skip_while(|line| *line != format!("--- {title}"))
        .skip(1)
        .take_while(|line| !line.starts_with("---"))
        .collect()
}

fn count(rows: &[&str], words: &str) -> usize {
    rows.iter().filter(|row| row.trim_start().starts_with(words)).count()
}

/// Each frame is a snapshot: on a busy machine an awake thread may have any role, but a thread that blocks
/// has that role.
#[test]
fn without_a_terminal_it_prints_three_frames_and_ends() {
    let said = start("roles", ":", &[]).end();
    let (calm, one, all) =
        (frame(&said, "calm"), frame(&said, "one handler blocks"), frame(&said, "all workers are blocked"));
    // At least, because the deputy may have taken other threads for blocked ones for a moment.
    assert!(count(&one, "blocks for ") >= 1 && count(&all, "blocks for ") >= 3, "{said}");
    assert!([&calm, &one, &all].iter().all(|rows| count(rows, "leads") <= 1), "{said}");
    assert!(count(&calm, "rider-") >= 3, "{said}");
    // Replacement threads are listed.
    assert!(
        count(&all, "rider-") > 3
            && all.iter().any(|row| row.contains(" (added)") || row.contains(" (reserve)")),
        "{said}"
    );
    assert!(all.iter().any(|row| row.ends_with("B")), "{said}");
}

#[test]
fn a_picture_is_drawn() {
    let file = env::temp_dir().join(format!("paceline-roles-{}.svg", process::id()));
    let said = start("roles", ":", &["--svg", file.to_str().unwrap()]).end();
    let svg = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert!(said.contains(&*file.to_string_lossy()), "{said}");
    for words in
        ["rider-1</text>", "rider-3</text>", "rider-4 (", "three do, for 200 ms</text>", "#e03131", "</svg>"]
    {
        assert!(svg.contains(words), "{words} is missing");
    }
    let parse = "import sys, xml.dom.minidom; print(len(xml.dom.minidom.parse(sys.stdin).getElementsByTagName('path')))";
    if let Some(python) = other("python3", &["-c", parse], svg.as_bytes()) {
        let paths = String::from_utf8_lossy(&python.stdout).trim().parse::<usize>().unwrap_or(0);
        assert!(paths >= 8, "{paths} paths; {}", String::from_utf8_lossy(&python.stderr));
    }
}

/// Opens a terminal, presses keys, and checks that the terminal's settings are restored.
const TERMINAL: &str = r#"
import fcntl, os, select, signal, subprocess, sys, termios, time
def run(end):
    fd, theirs = os.openpty()
    before, said, start = termios.tcgetattr(theirs), b"", time.time()
    # Its own terminal, so that Ctrl-C is its own, too.
    child = subprocess.Popen(sys.argv[1:2], stdin=theirs, stdout=theirs, start_new_session=True,
                             preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    def until(words):
        nonlocal said
        while words not in said:
            assert time.time() - start < 60, (words, said[-3000:])
            if select.select([fd], [], [], 1)[0]:
                said += os.read(fd, 65536)
        said = said[said.index(words):]
    until(b"follows")
    assert termios.tcgetattr(theirs)[3] & (termios.ICANON | termios.ECHO) == 0
    os.write(fd, b"xb")
    until(b"blocks for ")
    os.write(fd, b"bbb")
    until(b"rider-4 (")
    end(child.pid, fd)
    # It gives the screen back, and the keys.
    until(b"\x1b[?1049l")
    status, after = child.wait(60), termios.tcgetattr(theirs)
    assert status == 0, status
    assert after == before, (before, after)
    os.close(fd)
    os.close(theirs)
run(lambda pid, fd: os.write(fd, b"q"))
run(lambda pid, fd: os.write(fd, b"\x03"))
run(lambda pid, fd: os.kill(pid, signal.SIGTERM))
print("all is well")
"#;

#[test]
fn in_a_terminal_it_shows_what_a_key_does_and_gives_the_terminal_back() {
    let Some(python) = other("python3", &["-c", TERMINAL, path("roles").to_str().unwrap()], b"") else {
        return;
    };
    let said = String::from_utf8_lossy(&python.stdout).into_owned();
    assert_eq!(said.trim(), "all is well", "{}", String::from_utf8_lossy(&python.stderr));
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let roles = path("roles");
    let said = refuses(roles.to_str().expect("text"), &["--svg", "/nowhere/roles.svg"], 1);
    assert!(said.contains("/nowhere/roles.svg"), "{said}");
}
