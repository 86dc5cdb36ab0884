//! A client that tries again: of the customers, and of the shop at the warehouse.

use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::sleep;
use tracing::warn;

/// How long an answer may take.
const ANSWER: Duration = Duration::from_millis(500);
/// The first and the longest pause between attempts.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(1)];

pub type Error = reqwest::Error;

#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    attempts: u32,
}

impl Client {
    /// For the server at this URL. Sends a request at most so many times.
    pub fn new(base: &str, attempts: u32) -> Self {
        let http = reqwest::Client::builder().timeout(ANSWER).dns_resolver(Names).build();
        Self { http: http.expect("nothing is set that can fail"), base: base.to_owned(), attempts }
    }

    /// Sends `body`. Returns the status, also if that is a refusal.
    pub async fn post(&self, path: &str, body: &impl Serialize) -> Result<StatusCode, Error> {
        let url = format!("{}{path}", self.base);
        self.ask(|| self.http.post(&url).json(body)).await.map(|answer| answer.status())
    }

    /// Returns what is at `path`; `None` if there is nothing.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Error> {
        let url = format!("{}{path}", self.base);
        let answer = self.ask(|| self.http.get(&url)).await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        answer.error_for_status()?.json().await.map(Some)
    }

    /// Sends a request until it is answered. An error of the server is no answer.
    async fn ask(&self, request: impl Fn() -> reqwest::RequestBuilder) -> Result<Response, Error> {
        let [mut pause, longest] = PAUSES;
        for attempt in 1.. {
            let answer = request().send().await.and_then(|answer| match answer.status().is_server_error() {
                true => answer.error_for_status(),
                false => Ok(answer),
            });
            match answer {
                Err(error) if attempt < self.attempts => {
                    warn!(attempt, error = reason(&error), "tries again");
                    sleep(pause).await;
                    pause = longest.min(2 * pause);
                }
                _ => return answer,
            }
        }
        unreachable!("the last attempt returns")
    }
}

/// Returns the innermost cause, which says most.
pub fn reason(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), reason)
}

/// Looks names up by tokio.
struct Names;

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(Box::new(found.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}
