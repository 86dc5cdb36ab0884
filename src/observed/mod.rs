//! Observed futures: what subscribers of `tracing` and dumps of tasks learn of a future while it is polled,
//! woken and dropped.
//!
//! | part | what it is |
//! |---|---|
//! | [`SpawnMeta`] | how a future is spawned: the line, the kind, a name |
//! | [`Watched`] | a future that is perhaps observed; without both features, the future itself |
//! | [`Observation`] | the data beside an observed future, and beside a closure that blocks |
//! | `shim` | the waker that an observed future gets in the place of its own |
//! | `span` | the span and the waker events of `tracing` |
//! | `facts` | what a dump says of a task |
//!
//! A future is observed if a subscriber wants its span, or if waits are recorded (`set_waits`), when it is
//! spawned. All others cost one test for each poll. The executor does not know which futures are observed: an
//! observed one is wrapped, and only the wrapped future sees the wrapped waker. The runtime compares wakers
//! by the addresses that they point to, and uses [`unwrapped`] for that.
//!
//! A subscriber is user code, and so is called like a waker: while neither a lock nor leadership is held
//! (LF3). What a subscriber does in such a call is not reported to it: so a subscriber that spawns a task for
//! each span, or wakes one for each event, comes to an end.

#[cfg(any(feature = "tracing", feature = "trace"))]
#[cfg_attr(feature = "trace", path = "facts_on.rs")]
#[cfg_attr(not(feature = "trace"), path = "facts_off.rs")]
mod facts;
mod kind;
#[cfg_attr(any(feature = "tracing", feature = "trace"), path = "meta_on.rs")]
#[cfg_attr(not(any(feature = "tracing", feature = "trace")), path = "meta_off.rs")]
mod meta;
#[cfg_attr(any(feature = "tracing", feature = "trace"), path = "observation_on.rs")]
#[cfg_attr(not(any(feature = "tracing", feature = "trace")), path = "observation_off.rs")]
mod observation;
#[cfg(any(feature = "tracing", feature = "trace"))]
mod shim;
#[cfg(any(feature = "tracing", feature = "trace"))]
#[cfg_attr(feature = "tracing", path = "span_on.rs")]
#[cfg_attr(not(feature = "tracing"), path = "span_off.rs")]
mod span;

pub use kind::TaskKind;
pub use meta::SpawnMeta;
pub use observation::{Observation, Watched};

#[cfg(feature = "trace")]
pub(crate) use facts::{TaskFacts, all_facts, set_waits};
pub(crate) use observation::{is_wrapped, unwrapped};
