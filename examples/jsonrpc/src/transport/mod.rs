//! The transports of messages.

#[cfg(feature = "amqp")]
pub(crate) mod amqp;
#[cfg(feature = "amqp")]
mod amqp_broker;
#[cfg(feature = "amqp")]
pub(crate) mod amqp_client;
#[cfg(feature = "amqp")]
mod amqp_runtime;
pub(crate) mod framed;
mod framed_reader;
pub(crate) mod http;
pub(crate) mod http_client;
#[path = "../../../common/patient.rs"]
pub(crate) mod patient;
pub(crate) mod websocket;
mod whole;
