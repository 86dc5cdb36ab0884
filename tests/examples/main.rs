//! The examples `echo` and `roles` as processes, through clients that are not ours. (`redis` has tests of its own.)
//!
//! | file | what it shows |
//! |---|---|
//! | `process` | how an example is started, listened to and ended |
//! | `echo` | every byte comes back, to whoever; thousands of connections, as far as the system allows; a clean end |
//! | `roles` | frames as text, a picture, and the view in a terminal of Python's |
#![cfg(all(unix, not(miri)))]
#![allow(unreachable_pub)]

mod echo;
mod process;
mod roles;
