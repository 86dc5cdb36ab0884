//! `#[paceline::test]`, used as it would be, and what it leaves as it is. `#[paceline::main]` is in its docs, which are run.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use paceline::{Handle, Timer, spawn, unblock};

#[paceline::test]
async fn its_body_is_in_a_runtime_of_its_own() {
    let (here, there) = (Handle::current().metrics(), spawn(async { Handle::current().metrics() }).await);
    assert_eq!((here.workers, there.workers), (1, 1));
    assert_eq!(paceline::metrics().workers, 0, "the default instance has nothing to do with it");
}

#[paceline::test(threads = 1 + 2)]
async fn it_has_as_many_workers_as_it_says() {
    spawn(async {}).await;
    assert_eq!(Handle::current().metrics().workers, 3);
}

#[paceline::test]
async fn its_body_may_fail_by_an_error() -> io::Result<()> {
    let text = unblock(|| "12".to_owned()).await;
    let number: u8 = text.parse().map_err(io::Error::other)?;
    assert_eq!(number, 12);
    Ok(())
}

#[paceline::test]
#[should_panic(expected = "by intent")]
async fn its_panic_is_the_test_s() {
    spawn(async { panic!("by intent") }).await
}

static IS_DROPPED: AtomicBool = AtomicBool::new(false);

mod inner {
    use super::*;

    /// What is in front of `async` stays: documentation, lints, who may see it.
    #[paceline::test()]
    #[allow(clippy::unused_unit)]
    pub(super) async fn leaves_a_task() -> () {
        struct Mark;
        impl Drop for Mark {
            fn drop(&mut self) {
                IS_DROPPED.store(true, SeqCst);
            }
        }
        let mark = Mark;
        spawn(async move {
            let _mark = mark;
            Timer::never().await;
        })
        .detach();
    }
}

#[test]
fn its_tasks_end_with_it() {
    // It is a function as any other.
    inner::leaves_a_task();
    let was_dropped = (0..5000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        IS_DROPPED.load(SeqCst)
    });
    assert!(was_dropped, "its tasks are cancelled");
}

/// Under another name.
mod web {
    pub(super) mod runtime {
        pub(in super::super) use paceline::*;
    }
}

#[web::runtime::test(crate = crate::web::runtime, threads = 2)]
async fn the_crate_may_have_another_name() {
    assert_eq!(spawn(async { 1 }).await, 1);
}
