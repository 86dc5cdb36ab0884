//! Runtimes beside a simulation, with `sim_libc!`: their threads and clocks are real.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use paceline::sim::Sim;
use tokio::runtime::Builder;
use tokio::time::sleep;

paceline::sim_libc!();

const SHORT: Duration = Duration::from_millis(20);

/// Calls `test` on a thread that is in a simulation, which is older than any machine is up. Hangs if it does
/// not return.
fn within(what: &str, test: impl FnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let mut sim = Sim::new(7);
        sim.run_for(Duration::from_secs(1 << 32));
        let begin = Instant::now();
        test();
        assert_eq!(begin.elapsed(), Duration::ZERO);
        tell.send(())
    });
    assert!(told.recv().is_ok(), "{what} fails");
}

/// Fails if `block_on` or the waits of a shutdown have limits by a clock that stands.
#[test]
fn a_runtime_inside_has_the_clocks_of_the_system() {
    for builder in [Builder::new_current_thread, Builder::new_multi_thread] {
        within("a timer", move || {
            builder().enable_all().build().unwrap().block_on(async {
                let begin = Instant::now();
                sleep(SHORT).await;
                assert!(begin.elapsed() >= SHORT);
            });
        });
        within("a shutdown", move || {
            let runtime = builder().enable_all().build().unwrap();
            let ((begins, begun), handle) = (mpsc::channel(), runtime.handle().clone());
            let blocks = move || {
                begins.send(()).unwrap();
                loop {
                    thread::park();
                }
            };
            // On a thread outside: here the closure would belong to the simulation.
            thread::spawn(move || drop(handle.spawn_blocking(blocks)));
            begun.recv().unwrap();
            runtime.shutdown_timeout(SHORT);
        });
    }
}
