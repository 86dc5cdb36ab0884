//! The methods of this program.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use example_jsonrpc::{Call, Dispatcher, Error, Limits, Peer};
use paceline::blocking::CancelToken;
use paceline::{Strand, Timer};
use serde_json::Value;
use serde_json::value::RawValue;

/// The deadline of `nap`, and how many may run at once.
const NAP: Duration = Duration::from_millis(50);
const NAPS: usize = 1000;
/// Limits of counters, of topics, and of topics per peer.
const NAMES: usize = 10_000;
const TOPICS: usize = 100;
/// The longest name.
const NAME: usize = 100;
/// How long a called peer may take to answer.
const ASK: Duration = Duration::from_secs(10);

/// The state that all calls share. A strand runs its operations one after the other, so no call waits for a
/// lock.
#[derive(Default)]
struct State {
    counters: HashMap<String, i64>,
    /// The subscribers of each topic, and the topics of each subscriber.
    topics: HashMap<String, HashMap<u64, Peer>>,
    subscribed: HashMap<u64, HashSet<String>>,
}

/// Returns the dispatcher with all methods.
pub(crate) fn dispatcher(limits: Limits) -> Arc<Dispatcher> {
    let state = Strand::new(State::default());
    let dispatcher = Dispatcher::new(limits)
        .task("echo", async |call| echo(call))
        .task("sum", async |call| sum(call))
        .task("sleep", sleep)
        .task("fail", async |_| Err::<(), _>(Error::new(1, "It was to fail").about("and so it did")))
        .task("panic", async |_| -> Result<(), Error> { panic!("it was to panic") })
        .task("ask", ask)
        .task("counter.*.add", on(&state, add))
        .task("counter.*.get", on(&state, get))
        .task("subscribe", on(&state, subscribe))
        .task("unsubscribe", on(&state, unsubscribe))
        .task("publish", on(&state, publish))
        .blocking("nap", NAP, NAPS, nap)
        .blocking("block", ASK, 16, block);
    Arc::new(dispatcher)
}

/// A handler with the state.
fn on<F, R>(
    state: &Strand<State>,
    handler: impl Fn(Strand<State>, Call) -> F + Send + Sync + 'static,
) -> impl Fn(Call) -> F + Send + Sync + 'static
where
    F: Future<Output = Result<R, Error>>,
{
    let state = state.clone();
    move |call| handler(state.clone(), call)
}

/// Returns the parameters.
fn echo(call: Call) -> Result<Option<Box<RawValue>>, Error> {
    Ok(call.into_params())
}

/// `[1, 2, 3]`
fn sum(call: Call) -> Result<i64, Error> {
    let numbers: Vec<i64> = call.params()?;
    let sum = numbers.into_iter().try_fold(0_i64, i64::checked_add);
    sum.ok_or_else(|| Error::invalid_params("the sum is too large"))
}

/// `[milliseconds]`, without a thread.
async fn sleep(call: Call) -> Result<&'static str, Error> {
    let [millis] = call.params()?;
    Timer::after(Duration::from_millis(millis)).await;
    Ok("slept")
}

/// `[milliseconds]`, without checking the deadline, as a library does that makes blocking calls.
fn nap(call: Call, _: CancelToken) -> Result<&'static str, Error> {
    let [millis] = call.params()?;
    thread::sleep(Duration::from_millis(millis).min(Duration::from_secs(60)));
    Ok("napped")
}

/// `[milliseconds]`, checking now and then whether the caller still waits.
fn block(call: Call, token: CancelToken) -> Result<&'static str, Error> {
    let [millis] = call.params()?;
    let until = Instant::now() + Duration::from_millis(millis).min(ASK);
    while Instant::now() < until && !token.is_cancelled() {
        thread::sleep(Duration::from_millis(5).min(until.saturating_duration_since(Instant::now())));
    }
    Ok("blocked")
}

/// `[method, params]`: calls the caller in turn, and returns its answer.
async fn ask(call: Call) -> Result<Value, Error> {
    let (method, params): (String, Value) = call.params()?;
    Ok(call.peer()?.call(&method, &params, ASK).await?)
}

async fn add(state: Strand<State>, call: Call) -> Result<i64, Error> {
    let ([amount], name): ([i64; 1], _) = (call.params()?, name(call.captured(0))?);
    let added = state.with(move |state| {
        let is_full = state.counters.len() >= NAMES && !state.counters.contains_key(&name);
        if is_full {
            return Err(Error::new(Error::BUSY, "There are too many counters"));
        }
        let counter = state.counters.entry(name).or_default();
        *counter = counter.checked_add(amount).ok_or_else(|| Error::invalid_params("it is too large"))?;
        Ok(*counter)
    });
    added.await
}

async fn get(state: Strand<State>, call: Call) -> Result<i64, Error> {
    let name = name(call.captured(0))?;
    Ok(state.with(move |state| state.counters.get(&name).copied().unwrap_or(0)).await)
}

/// `[topic]`: events of this topic call the caller's method `event`.
async fn subscribe(state: Strand<State>, call: Call) -> Result<(), Error> {
    let ([topic], peer): ([String; 1], _) = (call.params()?, call.peer()?.clone());
    let (topic, number, last, at_end) = (name(&topic)?, peer.number(), peer.clone(), state.clone());
    if state.with(move |state| state.subscribe(topic, peer)).await? {
        // After the subscription, because the peer may have disconnected by now.
        last.at_end(move || at_end.post(move |state| state.forget(number)));
    }
    Ok(())
}

/// `[topic]`
async fn unsubscribe(state: Strand<State>, call: Call) -> Result<(), Error> {
    let ([topic], number): ([String; 1], _) = (call.params()?, call.peer()?.number());
    state.with(move |state| state.unsubscribe(&topic, number)).await;
    Ok(())
}

/// `[topic, anything]`: returns the number of notified subscribers.
async fn publish(state: Strand<State>, call: Call) -> Result<usize, Error> {
    let (topic, what): (String, Box<RawValue>) = call.params()?;
    let hearers = state.with(move |state| {
        state.topics.get(&topic).map_or(Vec::new(), |hearers| hearers.values().cloned().collect())
    });
    let told = hearers.await.into_iter().filter(|hearer| {
        let is_told = hearer.notify("event", &[&what]).is_ok();
        if !is_told {
            // The subscriber is too slow, or has disconnected.
            hearer.close();
        }
        is_told
    });
    Ok(told.count())
}

impl State {
    /// Returns true if this is the first topic of this peer.
    fn subscribe(&mut self, topic: String, peer: Peer) -> Result<bool, Error> {
        let theirs = self.subscribed.get(&peer.number()).map_or(0, HashSet::len);
        if theirs >= TOPICS || self.topics.len() >= NAMES && !self.topics.contains_key(&topic) {
            return Err(Error::new(Error::BUSY, "There are too many topics"));
        }
        let is_first = !self.subscribed.contains_key(&peer.number());
        self.subscribed.entry(peer.number()).or_default().insert(topic.clone());
        self.topics.entry(topic).or_default().insert(peer.number(), peer);
        Ok(is_first)
    }

    /// A peer stays known until its end, so that its end is handled once.
    fn unsubscribe(&mut self, topic: &str, number: u64) {
        self.subscribed.get_mut(&number).map(|theirs| theirs.remove(topic));
        let Some(hearers) = self.topics.get_mut(topic) else { return };
        hearers.remove(&number);
        if hearers.is_empty() {
            self.topics.remove(topic);
        }
    }

    fn forget(&mut self, number: u64) {
        for topic in self.subscribed.remove(&number).unwrap_or_default() {
            self.unsubscribe(&topic, number);
        }
    }
}

/// Checks a name of letters, digits and dashes.
fn name(text: &str) -> Result<String, Error> {
    let is_well = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if text.is_empty() || text.len() > NAME || !text.bytes().all(is_well) {
        return Err(Error::invalid_params(format_args!(
            "a name has 1 to {NAME} letters, digits, or any of -_."
        )));
    }
    Ok(text.to_owned())
}
