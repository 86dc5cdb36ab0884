//! [`Story`]: a page about a run that has failed, made from its journal.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write;
use std::iter;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::journal::{Incident, Journal, JournalEntry, Losses, PacketEntry, PacketKind};
use super::net::{Fate, HostId, Kernel};
use super::network::TEST;
use super::simulation::Simulated;

/// Upper bound of the lines about what has happened: with the others, a page has 60.
const SHOWN: usize = 42;
/// Upper bound of the faults that a page lists.
const SHOWN_FAULTS: usize = 10;
/// Upper bound of the pairs of nodes whose lost packets a page lists.
const SHOWN_PAIRS: usize = 4;
/// Upper bound of the characters of a line.
const WIDTH: usize = 200;

/// When and where a run has failed, and what happened before.
#[derive(Clone, Debug)]
pub(super) struct Story {
    pub(super) at: Duration,
    pub(super) node: String,
    /// Lines, each of which ends with a newline.
    pub(super) page: String,
}

impl Simulated {
    /// Tells what has happened before the failure with this message.
    pub(super) fn story(&self, message: &str) -> Story {
        let at = self.elapsed();
        let state = self.state();
        let journal = &state.journal;
        self.network.with_kernel(|kernel| {
            let teller =
                Teller { kernel, width: kernel.names().iter().map(|name| name.len()).max().unwrap_or(0) };
            let mut page = String::new();
            teller.tell_faults(&mut page, journal);
            let told = told(&journal.entries, |task| match state.tasks.line(task) {
                Some(line) => format!("the task spawned at {line} panics"),
                None => "the test panics".into(),
            });
            teller.tell_rest(&mut page, told, &numbered(message));
            let failing = journal.panicked.filter(|(_, when)| *when == at);
            Story { at, node: failing.map_or(TEST, |(host, _)| kernel.name(host)).to_owned(), page }
        })
    }
}

struct Teller<'a> {
    kernel: &'a Kernel,
    /// The length of the longest name of a node.
    width: usize,
}

impl Teller<'_> {
    fn tell_faults(&self, page: &mut String, Journal { faults, all_faults, losses, .. }: &Journal) {
        // A node has several addresses.
        let mut by_name = BTreeMap::<_, Losses>::new();
        for ((from, to), lost) in losses {
            let names = (name_of(self.kernel, *from), name_of(self.kernel, *to));
            by_name.entry(names).or_default().add_all(lost);
        }
        let pairs = by_name.len();
        if faults.is_empty() && pairs == 0 {
            return;
        }
        *page += "Faults so far, with the virtual time in seconds:\n";
        if let Some(earlier @ 1..) = all_faults.checked_sub(SHOWN_FAULTS as u64) {
            let _ = writeln!(page, "  ({earlier} earlier ones)");
        }
        for JournalEntry { at, host, what } in faults.range(faults.len().saturating_sub(SHOWN_FAULTS)..) {
            if let Incident::Fault(text) = what {
                self.line(page, *at, *host, text, 0);
            }
        }
        by_name.iter().take(SHOWN_PAIRS).for_each(|(names, lost)| tell_losses(page, names, lost));
        if let Some(more @ 1..) = pairs.checked_sub(SHOWN_PAIRS) {
            let _ = writeln!(page, "  (packets between {more} more pairs of nodes were lost)");
        }
    }

    /// Tells what nodes noted and sent. A line begins with the number of things that are left out before it.
    fn tell_rest(&self, page: &mut String, told: Vec<Told>, subjects: &[(&str, &str)]) {
        let weights: Vec<Weight> = told.iter().map(|told| told.weight(subjects)).collect();
        let chosen = choose(&weights, SHOWN.saturating_sub(page.lines().count()));
        if !chosen.is_empty() {
            *page += "What the nodes noted and sent (+12: so many things before are left out):\n";
        }
        let mut next = 0;
        for (at, told) in told.into_iter().enumerate().filter(|(at, _)| chosen.contains(at)) {
            let skipped = at - next;
            next = at + 1;
            let mark = if told.is_fault { "*** " } else { "" };
            let what = format!("{mark}{}", told.what.text(self.kernel));
            self.line(page, told.at, told.host, &what, skipped);
        }
    }

    /// Adds a line to a page.
    fn line(&self, page: &mut String, at: Duration, host: HostId, what: &str, skipped: usize) {
        let what = what.replace('\n', "\\n");
        let (at, node, width) = (at.as_secs_f64(), self.kernel.name(host), self.width);
        let begin = if skipped > 0 { format!("+{skipped}") } else { String::new() };
        let line = format!("{begin:>5}{at:>12.6}  {node:<width$}  {what}");
        *page += &cut(&line);
        *page += "\n";
    }
}

/// Returns a line, or its beginning with three dots if it is too long.
pub(super) fn cut(line: &str) -> Cow<'_, str> {
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}...", &line[..end]).into(),
        None => line.into(),
    }
}

fn tell_losses(page: &mut String, (from, to): &(String, String), lost: &Losses) {
    let times: Vec<_> = lost.last.iter().map(|at| format!("{:.6}", at.as_secs_f64())).collect();
    let packets = if lost.count == 1 { "packet was" } else { "packets were" };
    let earlier = if lost.count > times.len() as u64 { "..., " } else { "" };
    let times = times.join(", ");
    let _ = writeln!(page, "  {} {packets} lost from {from} to {to}: {earlier}{times}", lost.count);
}

/// What a line tells.
struct Told {
    at: Duration,
    host: HostId,
    is_fault: bool,
    what: What,
}

/// How much something tells of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Fault,
    /// A note about what the message of the failure is about.
    Named,
    Noted,
    Sent,
}

impl Told {
    fn weight(&self, subjects: &[(&str, &str)]) -> Weight {
        match &self.what {
            _ if self.is_fault => Weight::Fault,
            What::Packets { .. } => Weight::Sent,
            What::Text(text) if mentions(text, subjects) => Weight::Named,
            What::Text(_) => Weight::Noted,
        }
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Returns the numbers in a text, each with the word before it: what the message of a failure is about, such
/// as an order 9.
fn numbered(text: &str) -> Vec<(&str, &str)> {
    let is_number = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    let before = iter::once("").chain(words(text));
    before.zip(words(text)).filter(|(before, word)| is_number(word) && !is_number(before)).collect()
}

/// Returns whether a text has one of these numbers, and its word or one that begins with it: "order=9" or
/// "orders=[2, 9]".
fn mentions(text: &str, subjects: &[(&str, &str)]) -> bool {
    let has = |(before, number): &(&str, &str)| {
        words(text).any(|word| word == *number) && words(text).any(|word| word.starts_with(before))
    };
    subjects.iter().any(has)
}

/// Returns which of the things are told, so many at most: those around the last faults, the last notes that
/// the message of the failure points to, then the last ones of the other notes, and then of the rest.
fn choose(weights: &[Weight], most: usize) -> BTreeSet<usize> {
    const FAULTS: usize = 2;
    const BEFORE: usize = 6;
    const AFTER: usize = 3;
    const POINTED_TO: usize = 10;
    let last = |weight| (0..weights.len()).rev().filter(move |at| weights[*at] == weight);
    let around = |at: usize| at.saturating_sub(BEFORE)..(at + AFTER + 1).min(weights.len());
    let first = last(Weight::Fault).take(FAULTS).flat_map(around).chain(last(Weight::Named).take(POINTED_TO));
    let rest = [Weight::Noted, Weight::Named, Weight::Fault, Weight::Sent].into_iter().flat_map(last);
    let mut chosen = BTreeSet::new();
    for at in first.chain(rest) {
        if chosen.len() >= most {
            break;
        }
        chosen.insert(at);
    }
    chosen
}

enum What {
    Text(String),
    /// So many packets in a row of one kind, from one socket to another.
    Packets {
        first: PacketEntry,
        sent: usize,
        held: usize,
        lost: usize,
        bytes: usize,
    },
}

/// Returns what the entries tell, one item for each line. `panics` returns the text about a task that panics.
fn told(entries: &VecDeque<JournalEntry>, panics: impl Fn(u32) -> String) -> Vec<Told> {
    let mut all = Vec::<Told>::new();
    for JournalEntry { at, host, what } in entries {
        let text = match what {
            Incident::Noted(text) => format!("notes: {text}"),
            Incident::File(text) | Incident::Fault(text) | Incident::Chosen(text) => text.clone(),
            Incident::Panicked(task) => panics(*task),
            Incident::Packet(packet) if packet.is_told() => {
                if let Some(Told { what: What::Packets { first, sent, held, lost, bytes }, .. }) =
                    all.last_mut()
                {
                    if (first.from, first.to, first.kind) == (packet.from, packet.to, packet.kind) {
                        match packet.fate {
                            Fate::Held => *held += 1,
                            Fate::Dropped => {
                                *lost += 1;
                                *bytes += if *sent == 0 { packet.bytes } else { 0 };
                            }
                            Fate::Sent | Fate::Delivered => {
                                (*sent, *bytes) = (*sent + 1, *bytes + packet.bytes)
                            }
                        }
                        continue;
                    }
                }
                let [sent, lost] = [Fate::Sent, Fate::Dropped].map(|fate| usize::from(packet.fate == fate));
                let what = What::Packets { first: *packet, sent, held: 0, lost, bytes: packet.bytes };
                all.push(Told { at: *at, host: *host, is_fault: false, what });
                continue;
            }
            _ => continue,
        };
        let is_fault = matches!(what, Incident::Fault(_) | Incident::Chosen(_));
        all.push(Told { at: *at, host: *host, is_fault, what: What::Text(text) });
    }
    all
}

impl What {
    fn text(self, kernel: &Kernel) -> String {
        let (first, sent, held, lost, bytes) = match self {
            What::Text(text) => return text,
            What::Packets { first, sent, held, lost, bytes } => (first, sent, held, lost, bytes),
        };
        // A packet that is lost on arrival was told of when it was sent.
        let mut text = match sent {
            0 => format!("<- {}: ", place_of(kernel, first.from)),
            _ => format!("-> {}: ", place_of(kernel, first.to)),
        };
        text += &packet_text(first.kind, bytes);
        let all = sent.max(lost);
        if all > 1 {
            let _ = write!(text, " in {all} packets");
        }
        if held > 0 {
            text += ", held";
        }
        if lost == all {
            text += ", lost";
        } else if lost > 0 {
            let _ = write!(text, ", {lost} of them lost");
        }
        text
    }
}

/// Returns what a packet does, or several of a kind with so many bytes.
pub(super) fn packet_text(kind: PacketKind, bytes: usize) -> String {
    match kind {
        PacketKind::Connects => "connects".into(),
        PacketKind::Accepts => "accepts".into(),
        PacketKind::Closes => "closes".into(),
        PacketKind::Resets => "resets the connection".into(),
        PacketKind::Acknowledges => "acknowledges".into(),
        PacketKind::Unreachable => "is unreachable".into(),
        PacketKind::Data if bytes == 1 => "1 byte".into(),
        PacketKind::Data => format!("{bytes} bytes"),
        PacketKind::Datagram => format!("datagram of {bytes} bytes"),
    }
}

/// Returns the end of a connection, with the name of its host.
pub(super) fn place_of(kernel: &Kernel, end: SocketAddr) -> String {
    format!("{}:{}", name_of(kernel, end.ip()), end.port())
}

/// Returns the name of the host with that address.
fn name_of(kernel: &Kernel, address: IpAddr) -> String {
    kernel.name_of(address).map_or_else(|| address.to_string(), str::to_owned)
}

#[cfg(all(test, not(any(paceline_loom, paceline_shuttle))))]
mod tests {
    use super::super::net::Settings;
    use super::*;

    /// Returns the lines about packets between two hosts.
    fn told_of(packets: &[(bool, Fate, PacketKind, usize)]) -> Vec<String> {
        let mut kernel = Kernel::new(Settings::default(), || 0);
        let hosts = ["client", "shop"].map(|name| kernel.add_host(name));
        let ends = [(0, 9), (1, 80)].map(|(at, port)| SocketAddr::new(kernel.addresses(hosts[at])[0], port));
        let entry = |(is_answer, fate, kind, bytes): &(bool, Fate, PacketKind, usize)| {
            let [from, to] = if *is_answer { [ends[1], ends[0]] } else { ends };
            let packet = PacketEntry { from, to, fate: *fate, kind: *kind, bytes: *bytes };
            JournalEntry { at: Duration::ZERO, host: hosts[0], what: Incident::Packet(packet) }
        };
        let told = told(&packets.iter().map(entry).collect(), |_| String::new());
        told.into_iter().map(|told| told.what.text(&kernel)).collect()
    }

    #[test]
    fn packets_of_a_kind_in_a_row_are_one_line_and_acknowledgements_none() {
        use Fate::{Delivered, Dropped, Held, Sent};
        use PacketKind::{Accepts, Acknowledges, Connects, Data, Datagram};
        let lines = told_of(&[
            (false, Sent, Connects, 0),
            (true, Sent, Accepts, 0),
            (false, Sent, Acknowledges, 0),
            (false, Sent, Data, 1000),
            (true, Sent, Acknowledges, 0),
            (false, Sent, Data, 234),
            (false, Delivered, Data, 234),
            (true, Sent, Data, 1),
            (true, Dropped, Data, 1),
        ]);
        assert_eq!(
            lines,
            ["-> shop:80: connects", "-> shop:80: 1234 bytes in 2 packets", "-> client:9: 1 byte, lost"]
        );

        let lines = told_of(&[(false, Sent, Data, 5), (false, Held, Data, 5), (true, Dropped, Datagram, 7)]);
        assert_eq!(lines, ["-> shop:80: 5 bytes, held", "<- shop:80: datagram of 7 bytes, lost"]);
        let lines = told_of(&[(false, Sent, Data, 5), (false, Sent, Data, 5), (false, Dropped, Data, 5)]);
        assert_eq!(lines, ["-> shop:80: 10 bytes in 2 packets, 1 of them lost"]);
    }

    #[test]
    fn what_is_told_is_around_the_last_faults_and_what_the_message_points_to_before_other_notes() {
        let told = |all: usize, marked: &[(usize, Weight)]| {
            let mut weights = vec![Weight::Sent; all];
            marked.iter().for_each(|(at, weight)| weights[*at] = *weight);
            choose(&weights, 30).into_iter().collect::<Vec<_>>()
        };
        let faults = [5, 20, 60].map(|at| (at, Weight::Fault));
        assert_eq!(told(0, &[]), []);
        assert_eq!(told(100, &[]), (70..100).collect::<Vec<_>>());
        assert_eq!(told(10, &[(1, Weight::Fault)]), (0..10).collect::<Vec<_>>());
        let around: Vec<_> = (14..24).chain(54..64).collect();
        assert_eq!(told(100, &faults), [&[5], &around[..], &(91..100).collect::<Vec<_>>()].concat());
        let marked = [&faults[..], &[(30, Weight::Named), (31, Weight::Noted)]].concat();
        let last = (93..100).collect::<Vec<_>>();
        assert_eq!(told(100, &marked), [&[5], &around[..10], &[30, 31], &around[10..], &last].concat());
        let notes: Vec<_> = (0..50).map(|at| (at, Weight::Noted)).collect();
        assert_eq!(
            told(100, &[&notes[..], &[(3, Weight::Named)]].concat()),
            [&[3], &(21..50).collect::<Vec<_>>()[..]].concat()
        );
    }

    #[test]
    fn a_note_mentions_a_failure_if_it_has_a_number_of_the_message_and_the_word_before() {
        let subjects = numbered("order 9 is missing in n1, 13 of 14 were sold");
        assert_eq!(subjects, [("order", "9"), ("n1", "13"), ("of", "14")]);
        assert!(mentions("stored orders=[2, 9]", &subjects) && mentions("order=9", &subjects));
        assert!(!mentions("order=19", &subjects) && !mentions("item=9", &subjects));
        assert!(!mentions("left=14", &subjects) && mentions("left 989", &numbered("989 are left")));
    }
}
