//! `async_executor`: each item with its full signature. The compiler makes the checks.

use async_executor::{Executor, FallibleTask, LocalExecutor, StaticExecutor, StaticLocalExecutor, Task};
use static_assertions::{assert_impl_all, assert_not_impl_any, assert_type_eq_all};
use std::fmt::Debug;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::rc::Rc;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type LocalBoxed<T> = Pin<Box<dyn Future<Output = T>>>;

// The types are the same, wherever a program gets them from.
assert_type_eq_all!(Task<u8>, async_task::Task<u8>);
assert_type_eq_all!(Task<u8>, async_task::Task<u8, ()>);
assert_type_eq_all!(FallibleTask<u8>, async_task::FallibleTask<u8>);

assert_impl_all!(Executor<'static>: Send, Sync, UnwindSafe, RefUnwindSafe, Debug, Default);
assert_impl_all!(LocalExecutor<'static>: UnwindSafe, RefUnwindSafe, Debug, Default);
assert_not_impl_any!(LocalExecutor<'static>: Send, Sync);
assert_impl_all!(StaticExecutor: Send, Sync, UnwindSafe, RefUnwindSafe, Debug);
assert_impl_all!(StaticLocalExecutor: Send, UnwindSafe, RefUnwindSafe, Debug);
assert_not_impl_any!(StaticLocalExecutor: Sync);

static EXECUTOR: Executor<'static> = Executor::new();
static STATIC: StaticExecutor = StaticExecutor::new();

thread_local! {
    static LOCAL: LocalExecutor<'static> = const { LocalExecutor::new() };
    static STATIC_LOCAL: StaticLocalExecutor = const { StaticLocalExecutor::new() };
}

fn is_future<T>(_: &impl Future<Output = T>) {}
fn is_send_and_sync<T: Send + Sync>(_: &T) {}

#[test]
fn executor() {
    let _: fn() -> Executor<'static> = Executor::new;
    let _: fn(&Executor<'static>) -> bool = Executor::is_empty;
    let _: fn(&Executor<'static>, Boxed<u8>) -> Task<u8> = Executor::spawn;
    let _: fn(&Executor<'static>, Vec<Boxed<u8>>, &mut Vec<Task<u8>>) = Executor::spawn_many;
    let _: fn(&Executor<'static>) -> bool = Executor::try_tick;
    let _: fn(Executor<'static>) -> &'static StaticExecutor = Executor::leak;
    is_future::<()>(&EXECUTOR.tick());
    is_future::<u8>(&EXECUTOR.run(async { 1 }));
    is_send_and_sync(&EXECUTOR.tick());
    is_send_and_sync(&EXECUTOR.run(async { 1 }));
}

#[test]
fn local_executor() {
    let _: fn() -> LocalExecutor<'static> = LocalExecutor::new;
    let _: fn(&LocalExecutor<'static>) -> bool = LocalExecutor::is_empty;
    let _: fn(&LocalExecutor<'static>, LocalBoxed<Rc<u8>>) -> Task<Rc<u8>> = LocalExecutor::spawn;
    let _: fn(&LocalExecutor<'static>, Vec<LocalBoxed<u8>>, &mut Vec<Task<u8>>) = LocalExecutor::spawn_many;
    let _: fn(&LocalExecutor<'static>) -> bool = LocalExecutor::try_tick;
    let _: fn(LocalExecutor<'static>) -> &'static StaticLocalExecutor = LocalExecutor::leak;
    LOCAL.with(|local| {
        is_future::<()>(&local.tick());
        is_future::<Rc<u8>>(&local.run(async { Rc::new(1) }));
    });
}

#[test]
fn static_executors() {
    let _: fn() -> StaticExecutor = StaticExecutor::new;
    let _: fn(&'static StaticExecutor, Boxed<u8>) -> Task<u8> = StaticExecutor::spawn;
    let _: unsafe fn(&'static StaticExecutor, Boxed<u8>) -> Task<u8> = StaticExecutor::spawn_scoped;
    let _: fn(&StaticExecutor) -> bool = StaticExecutor::try_tick;
    is_future::<()>(&STATIC.tick());
    is_future::<u8>(&STATIC.run(async { 1 }));
    is_send_and_sync(&STATIC.tick());
    is_send_and_sync(&STATIC.run(async { 1 }));

    let _: fn() -> StaticLocalExecutor = StaticLocalExecutor::new;
    let _: fn(&'static StaticLocalExecutor, LocalBoxed<Rc<u8>>) -> Task<Rc<u8>> = StaticLocalExecutor::spawn;
    let _: unsafe fn(&'static StaticLocalExecutor, LocalBoxed<u8>) -> Task<u8> =
        StaticLocalExecutor::spawn_scoped;
    let _: fn(&StaticLocalExecutor) -> bool = StaticLocalExecutor::try_tick;
    STATIC_LOCAL.with(|local| {
        is_future::<()>(&local.tick());
        is_future::<Rc<u8>>(&local.run(async { Rc::new(1) }));
    });
}

/// Tasks may borrow data that outlives the executor.
#[test]
fn borrowing() {
    let number = 5;
    let executor = Executor::new();
    let task: Task<&i32> = executor.spawn(async { &number });
    let local = LocalExecutor::new();
    let there: Task<&i32> = local.spawn(async { &number });
    assert_eq!(futures_lite::future::block_on(executor.run(task)), &5);
    assert_eq!(futures_lite::future::block_on(local.run(there)), &5);
}
