//! The panic message of `block_on` when its code awaits a task that was cancelled.

use std::any::Any;

/// The panic message of a [`Task`](super::Task) that is awaited after it was cancelled, or polled again
/// after it was done. `async-task` owns that type and panics with a plain string, so this crate can
/// recognize the panic only by its text.
const AWAITED_IN_VAIN: &str = "Task polled after completion";

/// Returns the message of a panic; `None` if its payload is no text.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> Option<&str> {
    panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}

/// Returns a better message for a panic that comes from awaiting a task that was cancelled, or from polling
/// a task again after it was done. Returns `None` for any other panic.
pub(crate) fn explain(panic: &(dyn Any + Send)) -> Option<String> {
    panic_text(panic).filter(|text| *text == AWAITED_IN_VAIN).map(|_| {
        "a task was awaited that is no more: the runtime on which it was spawned was shut down, or the executor on \
         which it was spawned was dropped (or the task was polled after it was done). `Task::fallible` gives `None` \
         instead"
            .into()
    })
}
