//! [`Record`]: what the nodes did, and whether Raft allows it.

use std::collections::BTreeMap;
use std::sync::Mutex;

use openraft::{Entry, EntryPayload};
use paceline::sim;

use crate::{Types, WriteRequest};

/// The deeds of all nodes together, in all of their lives.
#[derive(Debug, Default)]
pub struct Record(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    /// The leader of each term.
    leaders: BTreeMap<u64, u64>,
    /// The entry that was applied first at each index: its term, and a text of the rest.
    applied: BTreeMap<u64, (u64, String)>,
    /// The writes that were acknowledged, with the index that the client was told.
    acknowledged: BTreeMap<WriteRequest, u64>,
    violations: Vec<String>,
}

impl Record {
    /// Notes that a node leads in a term.
    pub fn leads(&self, node: u64, term: u64) {
        let mut noted = self.0.lock().unwrap();
        let leader = *noted.leaders.entry(term).or_insert(node);
        if leader != node {
            noted.violations.push(format!("n{leader} and n{node} both lead in term {term}"));
        }
    }

    /// Notes that a node applies an entry.
    pub fn applies(&self, node: u64, entry: &Entry<Types>) {
        let text = match &entry.payload {
            EntryPayload::Blank => "a blank entry".to_owned(),
            EntryPayload::Normal(write) => write.to_string(),
            EntryPayload::Membership(members) => format!("{members}"),
        };
        let (index, term) = (entry.log_id.index, entry.log_id.leader_id.term);
        sim::note(format_args!("n{node} applies {text} at {index}"));
        let mut noted = self.0.lock().unwrap();
        let this = (term, text);
        let first = noted.applied.entry(index).or_insert_with(|| this.clone()).clone();
        if first != this {
            noted.violations.push(format!(
                "at index {index}, n{node} applies {} of term {}, after {} of term {} was applied there",
                this.1, this.0, first.1, first.0
            ));
        }
    }

    /// Notes that a client was told that its write is at this index.
    pub fn acknowledges(&self, write: WriteRequest, index: u64) {
        sim::note(format_args!("{write} is acknowledged at {index}"));
        let mut noted = self.0.lock().unwrap();
        noted.acknowledged.insert(write, index);
        let applied = noted.applied.get(&index).map(|(_, text)| text.clone());
        if applied.as_ref() != Some(&write.to_string()) {
            let text = format!("{write} is acknowledged at {index}, where {applied:?} was applied");
            noted.violations.push(text);
        }
    }

    /// Notes anything else that should not happen.
    pub fn fails(&self, text: String) {
        sim::note(&text);
        self.0.lock().unwrap().violations.push(text);
    }

    /// Checks the content of a node when all is done: all writes that were applied are there, at their
    /// indices, and with them those that were acknowledged.
    pub fn compare(&self, node: u64, writes: &BTreeMap<u64, WriteRequest>) {
        let mut noted = self.0.lock().unwrap();
        let differs = noted.applied.iter().find_map(|(index, (_, text))| {
            let there = writes.get(index).map(WriteRequest::to_string);
            let is_write = text.starts_with("write ") || there.is_some();
            (is_write && there.as_ref() != Some(text)).then(|| (*index, text.clone(), there))
        });
        if let Some((index, text, there)) = differs {
            let text = format!("n{node} has {there:?} at index {index}, where {text} was applied");
            noted.violations.push(text);
        }
        let lost = noted.acknowledged.iter().find(|(write, index)| writes.get(index) != Some(*write));
        if let Some((write, index)) = lost {
            let there = writes.get(index);
            let text = format!("{write} was acknowledged at index {index}, and n{node} has {there:?} there");
            noted.violations.push(text);
        }
    }

    /// Panics if something was noted that Raft does not allow.
    pub fn check(&self) {
        let noted = self.0.lock().unwrap();
        assert!(noted.violations.is_empty(), "{}", noted.violations[0]);
    }

    /// Returns how many writes were acknowledged.
    pub fn acknowledged(&self) -> usize {
        self.0.lock().unwrap().acknowledged.len()
    }

    /// Returns how many terms had a leader.
    pub fn terms(&self) -> usize {
        self.0.lock().unwrap().leaders.len()
    }
}
