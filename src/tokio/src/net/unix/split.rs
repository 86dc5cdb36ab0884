//! The halves of a Unix stream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{fmt, io};

use super::SocketAddr;
use super::stream::UnixStream;
use crate::net::halves::halves;

halves!(UnixStream, SocketAddr);
