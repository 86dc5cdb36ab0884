//! Tests of the kernel, by what they look at.

mod datagrams;
mod differential;
mod errors;
mod faults;
mod local;
mod names;
mod random;
mod speed;
mod streams;
mod support;
