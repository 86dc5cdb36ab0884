//! Builds in which nothing is observed: see `meta_on.rs`, which has the same names.

use std::marker::PhantomData;
use std::panic::Location;

use super::kind::TaskKind;

/// How a future is spawned.
#[derive(Clone, Copy, Debug)]
pub struct SpawnMeta<'a> {
    pub(crate) spawned_at: &'static Location<'static>,
    borrows: PhantomData<&'a str>,
}

impl<'a> SpawnMeta<'a> {
    /// Describes a future of this kind, spawned there.
    #[inline]
    pub fn new(_: TaskKind, spawned_at: &'static Location<'static>) -> Self {
        Self { spawned_at, borrows: PhantomData }
    }

    /// Describes a future that is not to be observed.
    #[inline]
    pub fn unobserved(spawned_at: &'static Location<'static>) -> Self {
        Self { spawned_at, borrows: PhantomData }
    }

    /// Gives the task a name.
    #[inline]
    pub fn named(self, _: Option<&'a str>) -> Self {
        self
    }

    /// Gives the task the number by which its own code knows it.
    #[inline]
    pub fn with_id(self, _: u64) -> Self {
        self
    }

    /// Says how large the future or the closure is, for one that is wrapped or referred to.
    #[inline]
    pub fn of_inner_size(self, _: usize) -> Self {
        self
    }

    /// Says how large the future was before it was boxed.
    #[inline]
    pub fn of_size(self, _: usize) -> Self {
        self
    }
}
