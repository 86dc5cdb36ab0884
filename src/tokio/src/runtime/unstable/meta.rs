//! [`TaskMeta`] and [`TaskHooks`].

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::quiet::quietly;
use crate::task::Id;

/// A task, as its hooks see it.
#[allow(missing_debug_implementations, reason = "as in the real tokio")]
pub struct TaskMeta<'a> {
    pub(super) id: Id,
    pub(super) spawned_at: &'static Location<'static>,
    #[cfg_attr(
        not(feature = "schedule-latency"),
        allow(dead_code, reason = "its reader is behind the feature")
    )]
    pub(super) latency: Option<Duration>,
    pub(super) borrows: PhantomData<&'a ()>,
}

impl TaskMeta<'_> {
    pub fn id(&self) -> Id {
        self.id
    }

    pub fn spawned_at(&self) -> &'static Location<'static> {
        self.spawned_at
    }

    /// Returns how long the task had waited before this poll. Hooks for other moments get `None`.
    #[cfg(feature = "schedule-latency")]
    pub fn schedule_latency(&self) -> Option<Duration> {
        self.latency
    }
}

pub(super) type TaskHook = Arc<dyn Fn(&TaskMeta<'_>) + Send + Sync>;

/// The hooks for the tasks of a runtime.
#[derive(Clone, Default)]
pub(crate) struct TaskHooks {
    pub(super) on_spawn: Option<TaskHook>,
    pub(super) before_poll: Option<TaskHook>,
    pub(super) after_poll: Option<TaskHook>,
    pub(super) on_terminate: Option<TaskHook>,
}

impl TaskHooks {
    pub(super) fn is_empty(&self) -> bool {
        let Self { on_spawn, before_poll, after_poll, on_terminate } = self;
        [on_spawn, before_poll, after_poll, on_terminate].iter().all(|hook| hook.is_none())
    }
}

/// Calls a hook. A panic in it is caught: it is not the task's.
pub(super) fn call(hook: Option<&TaskHook>, meta: &TaskMeta<'_>) {
    if let Some(hook) = hook {
        quietly(|| hook(meta));
    }
}

impl fmt::Debug for TaskHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHooks")
            .field("on_spawn", &self.on_spawn.is_some())
            .field("before_poll", &self.before_poll.is_some())
            .field("after_poll", &self.after_poll.is_some())
            .field("on_terminate", &self.on_terminate.is_some())
            .finish()
    }
}
