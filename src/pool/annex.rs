//! [`Annex`]: what a layer above keeps with a pool, which need not know what that is: the threads that block.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use super::{Pool, instance, stay};

/// One value of a type that the layer above knows, made on first use.
#[derive(Debug, Default)]
pub(super) struct Annex(OnceLock<Arc<dyn Any + Send + Sync>>);

impl Annex {
    /// `make` takes no step of a model.
    fn get_or_make<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        known(self.0.get_or_init(|| Arc::new(make())))
    }
}

fn known<T: Any + Send + Sync>(value: &Arc<dyn Any + Send + Sync>) -> Arc<T> {
    value.clone().downcast().expect("one type is kept here")
}

impl Pool {
    /// The default instance's is there without it, too.
    fn annex_place(&self) -> &Annex {
        if self.is_default.is_set() { instance::annex_of_the_process() } else { &self.annex }
    }

    /// What is kept with this pool, made now if there is nothing yet.
    pub(crate) fn annex<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.annex_place().get_or_make(make)
    }

    /// The same, if it was made.
    pub(crate) fn annex_if_any<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.annex_place().0.get().map(known)
    }
}

/// What is kept with the pool whose thread this is, else with the default instance. `make` gets the pool, if it is not that one.
pub(crate) fn current_annex<T: Any + Send + Sync>(make: impl FnOnce(Option<&Arc<Pool>>) -> T) -> Arc<T> {
    let pool = stay::with_current_pool(Arc::clone);
    match &pool {
        Some(pool) if !pool.is_default.is_set() => pool.annex.get_or_make(|| make(Some(pool))),
        _ => default_annex(|| make(None)),
    }
}

/// What is kept with the default instance, which this does not make.
pub(crate) fn default_annex<T: Any + Send + Sync>(make: impl FnOnce() -> T) -> Arc<T> {
    instance::annex_of_the_process().get_or_make(make)
}
