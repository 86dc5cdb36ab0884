//! Makes each event of the service a note of the simulation, so that a failed seed prints it.

use std::fmt::{Debug, Write};

use paceline::sim::note;
use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;

/// Until the guard is dropped, on this thread.
pub(crate) fn of_events() -> DefaultGuard {
    tracing::subscriber::set_default(registry().with(Notes))
}

struct Notes;

impl<S: Subscriber> Layer<S> for Notes {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        // Those that an operator sees, and not those of axum, hyper and reqwest.
        let metadata = event.metadata();
        if *metadata.level() <= Level::INFO && metadata.target().starts_with("orders") {
            let mut line = Line::default();
            event.record(&mut line);
            note(format_args!("{}{}", line.message, line.fields));
        }
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
