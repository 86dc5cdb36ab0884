//! JSON-RPC 2.0: one [`Dispatcher`], served over several transports at once, and clients for each.
//!
//! | file | the question |
//! |---|---|
//! | `message.rs`, `error.rs` | What is a request, and how is an invalid one answered? |
//! | `dispatcher.rs`, `pattern.rs`, `call.rs` | Which handler does a method have? What are its arguments? |
//! | `blocking.rs` | How does a caller get an answer in time if the handler blocks for ever? |
//! | `session.rs` | How is a connection on which both sides call read, written and ended? |
//! | `peer.rs`, `client.rs` | How is the other side called and notified? |
//! | `limits.rs`, `room.rs` | What is the most that a connection may cost? |
//! | `server.rs` | How are connections accepted, limited, and told to stop? |
//! | `transport/` | What does each transport add? |
//! | `service.rs` | How are methods written? |
//!
//! Handlers do not depend on the transport.

mod blocking;
mod call;
mod client;
mod dispatcher;
mod error;
mod limits;
mod message;
mod pattern;
mod peer;
mod room;
mod server;
mod session;
mod transport;

pub use call::Call;
pub use client::{CallError, Client};
pub use dispatcher::Dispatcher;
pub use error::Error;
pub use limits::Limits;
pub use peer::Peer;
pub use server::{Listener, Protocol, Server, Stream};
