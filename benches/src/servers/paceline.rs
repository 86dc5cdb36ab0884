//! paceline in its variants: the default, the paper's eager promotion, no spin, the portable backend; and its
//! `Executor` alone.

use std::future::pending;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use ::paceline::{Async, Executor, Promotion, Runtime, Tuning};

use super::smol::converse;
use super::{Sharing, accept_failed, listen};

#[derive(Clone, Copy)]
pub(super) enum Variant {
    Adaptive,
    Eager,
    NoSpin,
    Portable,
    /// With a flight recorder.
    #[cfg(feature = "trace")]
    Recorded,
}

pub(super) fn serve(port: u16, threads: usize, variant: Variant) -> io::Result<()> {
    let builder = Runtime::builder().threads(threads);
    let builder = match variant {
        Variant::Adaptive => builder,
        Variant::Eager => builder.tuning(Tuning::default().promotion(Promotion::Eager)),
        Variant::NoSpin => builder.tuning(Tuning::default().spin(Duration::ZERO)),
        Variant::Portable => builder.tuning(Tuning::default().portable(true)),
        #[cfg(feature = "trace")]
        Variant::Recorded => builder,
    };
    let runtime = Arc::new(builder.build()?);
    #[cfg(feature = "trace")]
    let _recorder = matches!(variant, Variant::Recorded)
        .then(|| ::paceline::trace::FlightRecorder::new().start(&runtime));
    let listener = listen(port, Sharing::Alone)?;
    let spawning = runtime.clone();
    let accepting = runtime.spawn(accept(listener, move |stream| spawning.spawn(converse(stream)).detach()));
    runtime.block_on(accepting)
}

/// An executor as a library uses it: threads of its own run it, over the one reactor of the default instance.
pub(super) fn serve_on_own_threads(port: u16, threads: usize) -> io::Result<()> {
    let executor: &'static Executor<'static> = Box::leak(Box::default());
    let listener = listen(port, Sharing::Alone)?;
    executor.spawn(accept(listener, |stream| executor.spawn(converse(stream)).detach())).detach();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| ::paceline::block_on(executor.run(pending::<()>())));
        }
    });
    Ok(())
}

/// The listener becomes a source inside the task, so that it belongs to the reactor of the runtime that runs
/// the task.
async fn accept(listener: TcpListener, spawn: impl Fn(Async<TcpStream>)) -> io::Result<()> {
    let listener = Async::new(listener)?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => spawn(stream),
            Err(error) => accept_failed(&error),
        }
    }
}
