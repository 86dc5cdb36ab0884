//! [`Dispatcher`]: maps methods to handlers, and answers messages.

use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::future::BoxFuture;
use paceline::prelude::*;
use paceline::{spawn, timeout};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::call::Call;
use crate::message::{self, Item, Message, Request};
use crate::pattern::Pattern;
use crate::peer::{Ids, Peer};
use crate::{Error, Limits};

pub(crate) type Outcome = Result<Box<RawValue>, Error>;
pub(crate) type Handler = Box<dyn Fn(Call) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// The methods. All transports share one dispatcher.
#[derive(Default)]
pub struct Dispatcher {
    pub(crate) limits: Limits,
    names: HashMap<String, Handler>,
    /// In the order in which they were added: the first match is used.
    patterns: Vec<(Pattern, Handler)>,
}

/// How to handle a message.
pub(crate) enum Todo {
    Nothing,
    /// Send this reply.
    Reply(String),
    /// The number of calls, and their replies: `None` for notifications.
    Calls(usize, BoxFuture<'static, Option<String>>),
}

impl Dispatcher {
    /// Returns a dispatcher without methods.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Adds a method whose calls are tasks: each is a future that does not block its thread, and has the time
    /// limit [`Limits::task`].
    ///
    /// A name with a `*` is a pattern: `counter.*.add` matches for each counter, and [`Call::captured`] says
    /// which.
    pub fn task<F, R>(self, name: &str, handler: impl Fn(Call) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<R, Error>> + Send + 'static,
        R: Serialize,
    {
        let (limit, most) = (self.limits.task, self.limits.message);
        self.add(name, move |call| {
            let answer = handler(call);
            Box::pin(async move {
                let late =
                    |_| Err(Error::new(Error::LATE, "Too late").about(format_args!("after {limit:?}")));
                timeout(limit, answer).await.unwrap_or_else(late).and_then(|result| text(&result, most))
            })
        })
    }

    pub(crate) fn add(
        mut self,
        name: &str,
        handler: impl Fn(Call) -> BoxFuture<'static, Outcome> + Send + Sync + 'static,
    ) -> Self {
        match Pattern::new(name) {
            Some(pattern) => self.patterns.push((pattern, Box::new(handler))),
            None => _ = self.names.insert(name.to_owned(), Box::new(handler)),
        }
        self
    }

    /// Decides how to handle a [parsed](message::parse) message. A handler may call `peer` in turn.
    pub(crate) fn take(
        self: &Arc<Self>,
        message: Result<Message, Error>,
        ids: &Ids,
        peer: Option<&Peer>,
    ) -> Todo {
        let begin = |item| match item {
            Item::Invalid(reply) => Begun::Reply(reply),
            // No local call waits for this answer, and an answer is not answered: otherwise two sides might
            // answer each other for ever.
            Item::Answer(_) => Begun::Nothing,
            Item::Request(request) => {
                let Some(held) = ids.hold(request.id.as_deref()) else {
                    // With the id, the error would be taken for the answer to the earlier call with the same
                    // id.
                    let twice = Error::invalid_request("the id is that of a call which is not answered yet");
                    return Begun::Reply(message::error(None, &twice));
                };
                let answer = self.clone().answer(request, peer.cloned());
                Begun::Call(Box::pin(async move {
                    let _held = held;
                    answer.await
                }))
            }
        };
        match message {
            Err(error) => Todo::Reply(message::error(None, &error)),
            Ok(Message::One(item)) => match begin(item) {
                Begun::Nothing => Todo::Nothing,
                Begun::Reply(reply) => Todo::Reply(reply),
                Begun::Call(answer) => Todo::Calls(1, answer),
            },
            Ok(Message::Batch(items)) => {
                let begun: Vec<_> = items.into_iter().map(begin).collect();
                Todo::Calls(begun.len(), Box::pin(batch(begun)))
            }
        }
    }

    async fn answer(self: Arc<Self>, request: Request, peer: Option<Peer>) -> Option<String> {
        let Request { id, method, params } = request;
        let outcome = self.call(method, params, peer).await;
        id.map(|id| match outcome {
            Ok(result) => message::result(&id, &result),
            Err(error) => message::error(Some(&id), &error),
        })
    }

    /// Calls a handler. A panic fails this call, and no other.
    pub(crate) async fn call(
        &self,
        method: String,
        params: Option<Box<RawValue>>,
        peer: Option<Peer>,
    ) -> Outcome {
        let handled = async {
            let (handler, captured) = self.find(&method)?;
            handler(Call { method, captured, params, peer }).await
        };
        let outcome = AssertUnwindSafe(handled).catch_unwind().await;
        outcome.unwrap_or_else(|_| Err(Error::internal("the handler has panicked")))
    }

    fn find(&self, method: &str) -> Result<(&Handler, Vec<String>), Error> {
        if let Some(handler) = self.names.get(method) {
            return Ok((handler, Vec::new()));
        }
        self.patterns
            .iter()
            .find_map(|(pattern, handler)| Some((handler, pattern.captures(method)?)))
            .ok_or_else(|| {
                let name: String = method.chars().take(100).collect();
                Error::new(Error::METHOD_NOT_FOUND, "Method not found").about(name)
            })
    }
}

enum Begun {
    Nothing,
    Reply(String),
    Call(BoxFuture<'static, Option<String>>),
}

/// Runs all calls at once, each in a task, and returns their answers as one message.
async fn batch(begun: Vec<Begun>) -> Option<String> {
    enum Answering {
        Done(String),
        Task(paceline::Task<Option<String>>),
    }
    let answering = begun.into_iter().filter_map(|begun| match begun {
        Begun::Nothing => None,
        Begun::Reply(reply) => Some(Answering::Done(reply)),
        Begun::Call(answer) => Some(Answering::Task(spawn(answer))),
    });
    let answering: Vec<_> = answering.collect();
    let mut answers = Vec::new();
    for each in answering {
        answers.extend(match each {
            Answering::Done(reply) => Some(reply),
            Answering::Task(task) => task.await,
        });
    }
    (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
}

/// Serialises a result.
pub(crate) fn text(result: &impl Serialize, most: usize) -> Outcome {
    let text = to_raw_value(result).map_err(Error::internal)?;
    if text.get().len() > most {
        return Err(Error::internal(format_args!("the result is longer than {most} bytes")));
    }
    Ok(text)
}

impl fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher").field("names", &self.names.keys()).finish_non_exhaustive()
    }
}
