//! [`SpawnMeta`]: how a future is spawned.

use std::panic::Location;

use super::kind::TaskKind;

/// How a future is spawned.
#[derive(Clone, Copy, Debug)]
pub struct SpawnMeta<'a> {
    pub(crate) spawned_at: &'static Location<'static>,
    /// `None` if the future is not to be observed.
    pub(super) kind: Option<TaskKind>,
    pub(super) name: Option<&'a str>,
    /// The number by which the task's own code knows it, if there is such a number.
    pub(super) id: Option<u64>,
    /// The size of the future, if that is not the one that is spawned.
    pub(super) size: Option<usize>,
    /// The size of the future before it was boxed.
    pub(super) original_size: Option<usize>,
}

impl<'a> SpawnMeta<'a> {
    /// Describes a future of this kind, spawned there.
    #[inline]
    pub fn new(kind: TaskKind, spawned_at: &'static Location<'static>) -> Self {
        Self { kind: Some(kind), ..Self::unobserved(spawned_at) }
    }

    /// Describes a future that is not to be observed.
    #[inline]
    pub fn unobserved(spawned_at: &'static Location<'static>) -> Self {
        Self { spawned_at, kind: None, name: None, id: None, size: None, original_size: None }
    }

    /// Says how large the future or the closure is, for one that is wrapped or referred to.
    #[inline]
    pub fn of_inner_size(self, size: usize) -> Self {
        Self { size: Some(size), ..self }
    }

    /// Says how large the future was before it was boxed.
    #[inline]
    pub fn of_size(self, size: usize) -> Self {
        Self { original_size: self.original_size.or(Some(size)), ..self }
    }

    /// Gives the task a name.
    #[inline]
    pub fn named(self, name: Option<&'a str>) -> Self {
        Self { name, ..self }
    }

    /// Gives the task the number by which its own code knows it.
    #[inline]
    pub fn with_id(self, id: u64) -> Self {
        Self { id: Some(id), ..self }
    }
}
