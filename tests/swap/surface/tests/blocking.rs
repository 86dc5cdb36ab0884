//! `blocking`: each item with its full signature. The compiler makes the checks.

use std::fs::{File, ReadDir};
use std::future::Future;
use std::io::{Cursor, Stdin, Stdout};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::process::{ChildStdin, ChildStdout};

use blocking::{Task, Unblock, set_max_blocking_threads, unblock};
use futures_lite::{AsyncRead, AsyncSeek, AsyncWrite, Stream};
use static_assertions::{assert_impl_all, assert_not_impl_any, assert_type_eq_all};

type Boxed<T> = Box<dyn FnOnce() -> T + Send>;

// The types are the same, wherever a program gets them from.
assert_type_eq_all!(Task<u8>, async_task::Task<u8>);

assert_impl_all!(Unblock<File>: AsyncRead, AsyncWrite, AsyncSeek, Send, Sync, Unpin, std::fmt::Debug);
assert_impl_all!(Unblock<Stdin>: AsyncRead);
assert_impl_all!(Unblock<Stdout>: AsyncWrite);
assert_impl_all!(Unblock<ChildStdin>: AsyncWrite);
assert_impl_all!(Unblock<ChildStdout>: AsyncRead);
assert_impl_all!(Unblock<ReadDir>: Stream);
assert_impl_all!(Unblock<Cursor<Vec<u8>>>: AsyncRead, AsyncWrite, AsyncSeek, Unpin);
assert_not_impl_any!(Unblock<Stdin>: AsyncWrite, AsyncSeek, Stream);
assert_not_impl_any!(Unblock<ReadDir>: AsyncRead);

fn is_future<T>(_: &(impl Future<Output = T> + Send)) {}
fn has_items<T>(_: &impl Stream<Item = T>) {}

#[test]
fn functions() {
    let _: fn(Boxed<u8>) -> Task<u8> = unblock;
    let _: fn(NonZeroUsize) = set_max_blocking_threads;
    assert_eq!(futures_lite::future::block_on(unblock(|| 6 * 7)), 42);
}

#[test]
fn unblock_of_anything() {
    // Without a bound: a type that is not `Send` can be wrapped.
    let _: fn(*const u8) -> Unblock<*const u8> = Unblock::new;
    let _: fn(usize, File) -> Unblock<File> = Unblock::with_capacity;
    let mut numbers = Unblock::new(vec![1u8].into_iter());
    has_items::<u8>(&numbers);
    futures_lite::future::block_on(async {
        let inside = numbers.get_mut();
        is_future::<&mut std::vec::IntoIter<u8>>(&inside);
        assert_eq!(inside.await.len(), 1);
        let with: Pin<Box<dyn Future<Output = Option<u8>> + Send>> = Box::pin(numbers.with_mut(Iterator::next));
        assert_eq!(with.await, Some(1));
        let inside = numbers.into_inner();
        is_future::<std::vec::IntoIter<u8>>(&inside);
        assert_eq!(inside.await.len(), 0);
    });
}
