//! `#[paceline::test]` in its usual forms, and the parts of a function that it keeps; and how programs with
//! `#[paceline::main]` end. The docs of the attributes test other uses of `#[paceline::main]`, and wrong
//! uses.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use paceline::{Handle, Timer, spawn, unblock};

#[paceline::test]
async fn its_body_is_in_a_runtime_of_its_own() {
    let (here, there) = (Handle::current().metrics(), spawn(async { Handle::current().metrics() }).await);
    assert_eq!((here.workers, there.workers), (1, 1));
    let outside = std::thread::spawn(|| paceline::metrics().workers).join().unwrap();
    assert_eq!(outside, 0, "the default instance has nothing to do with it");
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

    /// The attribute keeps documentation, lints and visibility.
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
    // The function can be called like any other.
    inner::leaves_a_task();
    let was_dropped = (0..5000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        IS_DROPPED.load(SeqCst)
    });
    assert!(was_dropped, "its tasks are cancelled");
}

/// The crate under another name.
mod web {
    pub(super) mod runtime {
        pub(in super::super) use paceline::*;
    }
}

#[web::runtime::test(crate = crate::web::runtime, threads = 2)]
async fn the_crate_may_have_another_name() {
    assert_eq!(spawn(async { 1 }).await, 1);
}

#[paceline::test(current_thread)]
async fn it_may_have_no_workers() {
    let here = thread::current().id();
    assert_eq!(spawn(async { thread::current().id() }).await, here);
    assert_eq!(Handle::current().metrics().workers, 0);
}

#[paceline::test(threads = 2, current_thread = false)]
async fn an_option_that_is_off_is_as_if_it_were_not_there() {
    assert_eq!(Handle::current().metrics().workers, 2);
}

/// Each form of a test that would take an hour if the clock ran.
#[cfg(feature = "test-clock")]
mod paused {
    use paceline::clock;

    use super::*;

    async fn an_hour_is_over_at_once() {
        const HOUR: Duration = Duration::from_secs(3600);
        let start = clock::now();
        let half = spawn(async { Timer::after(HOUR / 2).await });
        Timer::after(HOUR).await;
        assert_eq!(clock::now() - start, HOUR);
        assert_eq!(half.await - start, HOUR / 2);
        assert_eq!(Handle::current().metrics().workers, 0);
    }

    #[paceline::test(start_paused)]
    async fn its_clock_may_stand() {
        an_hour_is_over_at_once().await;
    }

    #[paceline::test(start_paused = true)]
    async fn as_in_tokio() {
        an_hour_is_over_at_once().await;
    }

    #[paceline::test(current_thread, start_paused)]
    async fn beside_current_thread() {
        an_hour_is_over_at_once().await;
    }

    #[paceline::test(current_thread, start_paused = false)]
    async fn its_clock_may_be_stopped_later() {
        let start = clock::now();
        while clock::now() == start {}
        clock::pause();
        an_hour_is_over_at_once().await;
    }
}

/// Programs that a signal ends: each is a process of its own, which exits with 0 and has printed the report.
#[cfg(unix)]
mod stops_on_ctrl_c {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};

    use paceline::{block_on, signal};
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    type Program = fn() -> io::Result<()>;

    /// The body of each program: it has a task that ends when the drain has begun.
    async fn serve() -> io::Result<()> {
        let interrupt = signal::ctrl_c();
        let (stop, stopped) = async_channel::bounded::<()>(1);
        spawn(async move {
            let _ = stopped.recv().await;
        })
        .detach();
        println!("ready");
        interrupt.await?;
        let mut drain = Box::pin(Handle::current().drain(Duration::from_secs(60)));
        assert!(futures::poll!(&mut drain).is_pending());
        drop(stop);
        let report = drain.await;
        println!("{} finished, {} cancelled", report.finished, report.cancelled);
        Ok(())
    }

    #[paceline::main]
    async fn with_the_attribute() -> io::Result<()> {
        serve().await
    }

    #[paceline::main(threads = 2)]
    async fn with_threads() -> io::Result<()> {
        serve().await
    }

    #[paceline::main(current_thread)]
    async fn on_the_current_thread() -> io::Result<()> {
        serve().await
    }

    fn by_hand() -> io::Result<()> {
        block_on(serve())
    }

    #[test]
    fn each_program_ends_well() {
        const TEST: &str = "stops_on_ctrl_c::each_program_ends_well";
        const PROGRAMS: [(&str, Program); 4] = [
            ("with_the_attribute", with_the_attribute),
            ("with_threads", with_threads),
            ("on_the_current_thread", on_the_current_thread),
            ("by_hand", by_hand),
        ];
        if let Ok(name) = std::env::var("PACELINE_TEST_PROGRAM") {
            let (_, program) = PROGRAMS.iter().find(|program| program.0 == name).unwrap();
            std::process::exit(i32::from(program().is_err()));
        }
        for (name, _) in PROGRAMS {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", TEST, "--nocapture", "--test-threads=1"])
                .env("PACELINE_TEST_PROGRAM", name)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap());
            let mut line = String::new();
            // The test harness has begun the line.
            while !line.trim().ends_with("ready") {
                line.clear();
                assert!(lines.read_line(&mut line).unwrap() > 0, "{name} ended early");
            }
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            let mut rest = String::new();
            lines.read_to_string(&mut rest).unwrap();
            assert_eq!(
                (child.wait().unwrap().code(), rest.trim()),
                (Some(0), "1 finished, 0 cancelled"),
                "{name}"
            );
        }
    }
}
