//! The numbers of the fields that the writer uses, by Perfetto's name of the message.

// `Trace`.
pub(crate) const PACKET: u64 = 1;

// `TracePacket`.
pub(crate) const CLOCK_SNAPSHOT: u64 = 6;
pub(crate) const TIMESTAMP: u64 = 8;
pub(crate) const SEQUENCE: u64 = 10;
pub(crate) const TRACK_EVENT: u64 = 11;
pub(crate) const INTERNED_DATA: u64 = 12;
pub(crate) const SEQUENCE_FLAGS: u64 = 13;
pub(crate) const PREVIOUS_PACKET_DROPPED: u64 = 42;
pub(crate) const TRACK_DESCRIPTOR: u64 = 60;

// `ClockSnapshot`, and its `Clock`.
pub(crate) const CLOCKS: u64 = 1;
pub(crate) const CLOCK_ID: u64 = 1;
pub(crate) const CLOCK_TIME: u64 = 2;

// `TrackDescriptor`, and its `ProcessDescriptor`, `ThreadDescriptor` and `CounterDescriptor`.
pub(crate) const DESCRIPTOR_UUID: u64 = 1;
pub(crate) const DESCRIPTOR_NAME: u64 = 2;
pub(crate) const DESCRIPTOR_PROCESS: u64 = 3;
pub(crate) const DESCRIPTOR_THREAD: u64 = 4;
pub(crate) const DESCRIPTOR_PARENT: u64 = 5;
pub(crate) const DESCRIPTOR_COUNTER: u64 = 8;
pub(crate) const DESCRIPTOR_CHILD_ORDERING: u64 = 11;
pub(crate) const DESCRIPTOR_RANK: u64 = 12;
pub(crate) const PROCESS_PID: u64 = 1;
pub(crate) const PROCESS_NAME: u64 = 6;
pub(crate) const THREAD_PID: u64 = 1;
pub(crate) const THREAD_TID: u64 = 2;
pub(crate) const THREAD_NAME: u64 = 5;
pub(crate) const COUNTER_UNIT: u64 = 3;

// `TrackEvent`, and its `DebugAnnotation`.
pub(crate) const ANNOTATION: u64 = 4;
pub(crate) const EVENT_TYPE: u64 = 9;
pub(crate) const NAME_NUMBER: u64 = 10;
pub(crate) const EVENT_NAME: u64 = 23;
pub(crate) const TRACK_UUID: u64 = 11;
pub(crate) const COUNTER_VALUE: u64 = 30;
pub(crate) const FLOWS: u64 = 47;
pub(crate) const TERMINATING_FLOWS: u64 = 48;
pub(crate) const ANNOTATION_UINT: u64 = 3;
pub(crate) const ANNOTATION_TEXT: u64 = 6;
pub(crate) const ANNOTATION_NAME: u64 = 10;

// `InternedData`, and its `EventName`.
pub(crate) const EVENT_NAMES: u64 = 2;
pub(crate) const INTERNED_NUMBER: u64 = 1;
pub(crate) const INTERNED_NAME: u64 = 2;
