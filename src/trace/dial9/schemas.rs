//! The events of a file, and their fields. dial9 knows them by their names.

use super::encoder::{BOOL, MAP, NAME, OPTIONAL, Schema, TEXT, U8, U32, VARINT};

/// The kinds of events. The number of each is that of its schema.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventKind {
    Metadata,
    ClockSync,
    PollStart,
    PollEnd,
    Park,
    Unpark,
    TaskSpawn,
    TaskTerminate,
    Wake,
    RuntimeMetrics,
    // dial9 does not know these.
    Role,
    Promote,
    Stall,
}

/// The entry of the metadata with the workers of the runtime. It ends with the name of the runtime.
pub(super) const RUNTIME_WORKERS: &str = "runtime.main";

/// Returns the schemas in the order of [`EventKind`]; without `extras`, only those of dial9's own events.
pub(super) fn all(extras: bool) -> impl Iterator<Item = &'static Schema> {
    OWN_EVENTS.iter().chain(EXTRAS.iter().filter(move |_| extras))
}

const fn known(name: &'static str, fields: &'static [(&'static str, u8)]) -> Schema {
    Schema { name, fields, annotations: &[] }
}

static OWN_EVENTS: [Schema; 10] = [
    known("SegmentMetadataEvent", &[("entries", MAP)]),
    known("ClockSyncEvent", &[("realtime_ns", VARINT)]),
    known(
        "PollStartEvent",
        &[
            ("worker_id", VARINT),
            ("local_queue", U8),
            ("task_id", VARINT),
            ("spawn_loc", NAME),
            ("scheduling_delay_ns", VARINT | OPTIONAL),
        ],
    ),
    known("PollEndEvent", &[("worker_id", VARINT)]),
    known(
        "WorkerParkEvent",
        &[("worker_id", VARINT), ("local_queue", U8), ("cpu_time_ns", VARINT), ("tid", VARINT)],
    ),
    known(
        "WorkerUnparkEvent",
        &[
            ("worker_id", VARINT),
            ("local_queue", U8),
            ("cpu_time_ns", VARINT),
            ("sched_wait_ns", VARINT | OPTIONAL),
            ("tid", VARINT),
        ],
    ),
    known(
        "TaskSpawnEvent",
        &[("task_id", VARINT), ("spawn_loc", NAME), ("instrumented", BOOL), ("worker_id", VARINT | OPTIONAL)],
    ),
    known("TaskTerminateEvent", &[("task_id", VARINT)]),
    known("WakeEventEvent", &[("waker_task_id", VARINT), ("woken_task_id", VARINT), ("target_worker", U8)]),
    // Without the number of tasks: those that were spawned before the trace begins are not known.
    known("RuntimeMetricsEvent", &[("runtime_name", TEXT), ("global_queue_depth", U32)]),
];

/// The key by which dial9 recognizes the fields of a span. The time of the event is the end of the span.
const ROLE: &str = "dial9.role";
/// The key by which dial9 groups spans.
const TYPE: &str = "dial9.span.type";

static EXTRAS: [Schema; 3] = [
    Schema {
        name: "RoleEvent",
        fields: &[("start", VARINT), ("role", NAME), ("worker_id", VARINT), ("tid", VARINT)],
        annotations: &[
            (0, ROLE, "span.start"),
            (0, TYPE, "role"),
            (1, ROLE, "span.name"),
            (2, ROLE, "tokio.worker_id"),
            (3, ROLE, "thread_id"),
        ],
    },
    Schema {
        name: "PromoteEvent",
        fields: &[
            ("start", VARINT),
            ("reason", NAME),
            ("worker_id", VARINT | OPTIONAL),
            ("tid", VARINT),
            ("promoted_by_tid", VARINT),
        ],
        annotations: &[
            (0, ROLE, "span.start"),
            (0, TYPE, "promotion"),
            (2, ROLE, "tokio.worker_id"),
            (3, ROLE, "thread_id"),
        ],
    },
    Schema {
        name: "StallEvent",
        fields: &[
            ("start", VARINT),
            ("kind", NAME),
            ("worker_id", VARINT | OPTIONAL),
            ("tid", VARINT),
            ("spawned_at", NAME),
            ("system_call", TEXT),
        ],
        annotations: &[
            (0, ROLE, "span.start"),
            (0, TYPE, "stall"),
            (1, ROLE, "span.name"),
            (2, ROLE, "tokio.worker_id"),
            (3, ROLE, "thread_id"),
        ],
    },
];
