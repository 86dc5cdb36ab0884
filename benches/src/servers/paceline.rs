//! paceline in its variants: the default, the paper's eager promotion, no spin, the portable backend.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use ::paceline::{Async, Promotion, Runtime};

use super::smol::converse;
use super::{Sharing, accept_failed, listen};

#[derive(Clone, Copy)]
pub(super) enum Variant {
    Adaptive,
    Eager,
    NoSpin,
    Portable,
}

pub(super) fn serve(port: u16, threads: usize, variant: Variant) -> io::Result<()> {
    let builder = Runtime::builder().threads(threads);
    let builder = match variant {
        Variant::Adaptive => builder,
        Variant::Eager => builder.promotion(Promotion::Eager),
        Variant::NoSpin => builder.spin(Duration::ZERO),
        Variant::Portable => builder.portable(true),
    };
    let runtime = Arc::new(builder.build()?);
    let listener = listen(port, Sharing::Alone)?;
    let accepting = runtime.spawn(accept(listener, runtime.clone()));
    runtime.block_on(accepting)
}

/// The listener becomes a source inside the task, so that it belongs to this runtime's reactor.
async fn accept(listener: TcpListener, runtime: Arc<Runtime>) -> io::Result<()> {
    let listener = Async::new(listener)?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => runtime.spawn(converse(stream)).detach(),
            Err(error) => accept_failed(&error),
        }
    }
}
