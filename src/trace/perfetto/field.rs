//! The numbers of the fields that the writer uses, by Perfetto's name of the message.

// `Trace`.
pub(super) const PACKET: u64 = 1;

// `TracePacket`.
pub(super) const CLOCK_SNAPSHOT: u64 = 6;
pub(super) const TIMESTAMP: u64 = 8;
pub(super) const SEQUENCE: u64 = 10;
pub(super) const TRACK_EVENT: u64 = 11;
pub(super) const INTERNED_DATA: u64 = 12;
pub(super) const SEQUENCE_FLAGS: u64 = 13;
pub(super) const PREVIOUS_PACKET_DROPPED: u64 = 42;
pub(super) const TRACK_DESCRIPTOR: u64 = 60;

// `ClockSnapshot`, and its `Clock`.
pub(super) const CLOCKS: u64 = 1;
pub(super) const CLOCK_ID: u64 = 1;
pub(super) const CLOCK_TIME: u64 = 2;

// `TrackDescriptor`, and its `ProcessDescriptor`, `ThreadDescriptor` and `CounterDescriptor`.
pub(super) const DESCRIPTOR_UUID: u64 = 1;
pub(super) const DESCRIPTOR_NAME: u64 = 2;
pub(super) const DESCRIPTOR_PROCESS: u64 = 3;
pub(super) const DESCRIPTOR_THREAD: u64 = 4;
pub(super) const DESCRIPTOR_PARENT: u64 = 5;
pub(super) const DESCRIPTOR_COUNTER: u64 = 8;
pub(super) const DESCRIPTOR_CHILD_ORDERING: u64 = 11;
pub(super) const DESCRIPTOR_RANK: u64 = 12;
pub(super) const PROCESS_PID: u64 = 1;
pub(super) const PROCESS_NAME: u64 = 6;
pub(super) const THREAD_PID: u64 = 1;
pub(super) const THREAD_TID: u64 = 2;
pub(super) const THREAD_NAME: u64 = 5;
pub(super) const COUNTER_UNIT: u64 = 3;

// `TrackEvent`, and its `DebugAnnotation`.
pub(super) const ANNOTATION: u64 = 4;
pub(super) const EVENT_TYPE: u64 = 9;
pub(super) const NAME_NUMBER: u64 = 10;
pub(super) const TRACK_UUID: u64 = 11;
pub(super) const COUNTER_VALUE: u64 = 30;
pub(super) const FLOWS: u64 = 47;
pub(super) const TERMINATING_FLOWS: u64 = 48;
pub(super) const ANNOTATION_UINT: u64 = 3;
pub(super) const ANNOTATION_TEXT: u64 = 6;
pub(super) const ANNOTATION_NAME: u64 = 10;

// `InternedData`, and its `EventName`.
pub(super) const EVENT_NAMES: u64 = 2;
pub(super) const INTERNED_NUMBER: u64 = 1;
pub(super) const INTERNED_NAME: u64 = 2;
