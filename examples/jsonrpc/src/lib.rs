//! JSON-RPC 2.0: one [`Dispatcher`], served over several transports at once, and clients for each.
//!
//! | file | the question |
//! |---|---|
//! | `message.rs`, `error.rs` | What is a request, and what does the specification say to what is none? |
//! | `dispatcher.rs`, `pattern.rs`, `call.rs` | Which handler has a method, and what does it get? |
//! | `blocking.rs` | How is a caller answered in time whose handler blocks for ever? |
//! | `session.rs` | Who reads and writes a connection on which either side may call, and how does it end? |
//! | `peer.rs`, `client.rs` | How is the other side called, and told? |
//! | `limits.rs`, `room.rs` | What is the most that a connection may cost? |
//! | `server.rs` | How are connections accepted, limited, and told to stop? |
//! | `transport/` | What does each transport add? |
//! | `service.rs` | What does it look like to whoever writes methods? |
//!
//! A handler sees none of the transports.

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
