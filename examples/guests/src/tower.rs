//! tower: a timeout by tokio's timers, and a buffer with a worker that is a tokio task.

use std::time::Duration;

use paceline::{Timer, block_on, spawn};
use tower::timeout::error::Elapsed;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use crate::Outcome;

pub(crate) fn run() -> Outcome {
    block_on(async {
        let sleeps = |millis| async move {
            Timer::after(Duration::from_millis(millis)).await;
            Outcome::Ok(millis)
        };
        let limit = Duration::from_millis(100);
        let service = ServiceBuilder::new().buffer(8).timeout(limit).service(service_fn(sleeps));

        let calls = [0, 60_000].map(|millis| {
            let mut service = service.clone();
            spawn(async move { service.ready().await?.call(millis).await })
        });
        let [quick, slow] = calls;
        assert_eq!(quick.await?, 0);
        assert!(slow.await.expect_err("it takes longer than it may").is::<Elapsed>());
        Ok(())
    })
}
