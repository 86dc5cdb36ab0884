//! The view in a terminal: a row for each thread, with its roles in the last seconds; and the keys.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Duration;

use paceline::{Role, ThreadKind};

use crate::record::{Lane, Record};
use crate::ride::{Ride, WORKERS};

/// The time that one character of a row represents.
const SLOT: Duration = Duration::from_millis(40);
/// Where a row begins.
const NAME: usize = 17;

/// A letter, and the number of a terminal colour.
const LOOKS: [(Role, char, u8); 7] = [
    (Role::Leads, 'L', 42),
    (Role::Follows, '.', 100),
    (Role::Processes, 'p', 44),
    (Role::Blocks, 'B', 41),
    (Role::Computes, 'C', 45),
    (Role::Starves, 'w', 43),
    (Role::Outside, 'o', 40),
];

fn cell(role: Option<Role>, in_colour: bool) -> String {
    let Some((_, letter, colour)) = LOOKS.iter().find(|(known, ..)| Some(*known) == role) else {
        return " ".into();
    };
    if in_colour { format!("\x1b[{colour};97m{letter}\x1b[0m") } else { letter.to_string() }
}

/// Returns the whole view.
pub fn frame(ride: &Ride, record: &Record, width: usize, in_colour: bool) -> String {
    // On a busy machine the last look may be some time ago: nothing is known of the time since then.
    let (mut text, now) = (String::new(), record.looked().unwrap_or_default());
    let metrics = ride.runtime.metrics();
    let slots = width.saturating_sub(NAME + 1).min(100);
    for lane in &record.lanes {
        let added = if lane.kind == ThreadKind::Worker { String::new() } else { format!(" ({})", lane.kind) };
        let mut row = format!("{:NAME$}", format!("{}{added}", lane.name));
        // Only completed slots, so that a letter does not change while it moves to the left.
        let last = now.as_millis() / SLOT.as_millis();
        for slot in (last + 1).saturating_sub(slots as u128)..=last {
            let end = SLOT * u32::try_from(slot).unwrap_or(u32::MAX);
            row += &cell(loudest(lane, end), in_colour);
        }
        _ = writeln!(text, "{row}");
        _ = writeln!(text, "{:NAME$}{}", "", latest(lane, now));
    }
    let legend = LOOKS.map(|(role, ..)| format!("{} {role}", cell(Some(role), in_colour)));
    _ = writeln!(text, "\n{}", legend.join("  "));
    _ = writeln!(
        text,
        "a letter is {SLOT:?}; {} workers of {WORKERS}, {} added so far; deputy: {} rescues; {} events",
        metrics.workers, metrics.replacements, metrics.deputy_rescues, metrics.events
    );
    text
}

/// A slot covers many moments: a problem in any of them wins, then work, then the last role.
fn loudest(lane: &Lane, end: Duration) -> Option<Role> {
    let begin = end.saturating_sub(SLOT);
    let within =
        lane.spans.iter().rev().skip_while(|span| span.from >= end).take_while(|span| span.to > begin);
    let rank = |role: &Role| match role {
        Role::Blocks | Role::Computes => 3,
        Role::Starves | Role::Outside => 2,
        _ => 1,
    };
    let lasts = |span: &&crate::record::Span| span.to.min(end).saturating_sub(span.from.max(begin));
    within.max_by_key(|span| (rank(&span.role), lasts(span))).map(|span| span.role)
}

/// Returns the current state, in words.
fn latest(lane: &Lane, now: Duration) -> String {
    if lane.end().is_none_or(|end| end + SLOT < now) {
        return "is gone".into();
    }
    let mut words = lane.last.role.to_string();
    if let Some(lasts) = lane.last.in_poll_for {
        _ = write!(words, " for {} ms", lasts.as_millis());
    }
    if let Some(at) = lane.last.spawned_at {
        _ = write!(words, ", in the task spawned at {at}");
    }
    words
}

/// Shows the view until `q`.
#[cfg(unix)]
pub fn live(ride: &Ride) -> io::Result<()> {
    use crate::ride::{BLOCK, COMPUTE};
    use crate::{LOOK, watch};

    /// How long a handler blocks, or computes, at a key.
    const LONG: Duration = Duration::from_secs(2);

    let terminal = keys::Terminal::take()?;
    let keys = keys::listen(ride);
    let mut record = Record::new();
    loop {
        watch(ride, &mut record, Duration::from_millis(80), LOOK);
        record.forget(Duration::from_secs(5));
        for key in keys.try_iter() {
            match key {
                b'b' => ride.ask(BLOCK, LONG),
                b'c' => ride.ask(COMPUTE, LONG),
                b'q' => return Ok(()),
                _ => {}
            }
        }
        // Each line is cleared after its end, and the screen below the last one, so that nothing flickers.
        let title = "paceline, live.   b: a handler blocks for two seconds   c: computes   q: the end\n\n";
        let text =
            format!("{title}{}", frame(ride, &record, terminal.width(), true)).replace('\n', "\x1b[K\r\n");
        let mut out = io::stdout().lock();
        write!(out, "\x1b[H{text}\x1b[J")?;
        out.flush()?;
    }
}

#[cfg(not(unix))]
pub fn live(ride: &Ride) -> io::Result<()> {
    crate::frames(ride)
}

#[cfg(unix)]
#[path = "keys.rs"]
mod keys;
