//! The trace of a simulation: it has the virtual time.

use std::fs;
use std::time::Duration;

use futures_lite::future;
use paceline::sim::Sim;
use paceline::trace::{Action, FlightRecorder, TraceEvent};
use paceline::{Handle, Runtime, Timer, spawn};

use super::in_another_process;

const HOUR: Duration = Duration::from_secs(3600);

/// Two tasks that sleep for an hour, and one that they wake.
fn program(sim: &mut Sim) {
    sim.block_on(async {
        let (tell, told) = async_channel::bounded(2);
        for _ in 0..2 {
            let tell = tell.clone();
            spawn(async move {
                Timer::after(HOUR).await;
                tell.send(()).await.unwrap();
            })
            .detach();
        }
        told.recv().await.unwrap();
        told.recv().await.unwrap();
    });
}

/// Runs the program. Returns its hash, and its events if it is recorded.
fn run(seed: u64, is_recorded: bool) -> (u64, Vec<TraceEvent>) {
    let mut sim = Sim::new(seed);
    let recorder =
        is_recorded.then(|| FlightRecorder::new().min_age(Duration::MAX).start_on(&Handle::current()));
    program(&mut sim);
    let events = recorder.map(|recorder| {
        let trace = recorder.snapshot();
        assert_eq!(trace.threads.len(), 1);
        trace.threads[0].events.clone()
    });
    (sim.report().hash, events.unwrap_or_default())
}

/// Fails if a note has the time of the system, or if the order of notes at one virtual time is lost.
#[test]
fn notes_have_the_virtual_time_and_their_order() {
    let (_, events) = run(7, true);
    assert!(events.windows(2).all(|two| two[0].at < two[1].at), "{events:?}");
    let polls = events.iter().filter(|event| matches!(event.action, Action::PollBegins { .. }));
    let (early, late): (Vec<_>, Vec<_>) = polls.map(|event| event.at).partition(|at| *at < HOUR);
    let a_moment = Duration::from_micros(1);
    // The driver, and both tasks until they sleep; later these tasks again, and the driver once or twice.
    assert!(early.len() == 3 && early.iter().all(|at| *at < a_moment), "{early:?}");
    assert!((3..=4).contains(&late.len()) && late.iter().all(|at| *at < HOUR + a_moment), "{late:?}");
}

/// Fails if a recorder changes what a simulation does, or if a trace depends on more than the seed.
#[test]
fn a_recorder_changes_nothing_and_a_seed_gives_the_same_trace() {
    for seed in 0..20 {
        let (hash, events) = run(seed, true);
        assert_eq!(run(seed, false).0, hash);
        let times = |events: &[TraceEvent]| events.iter().map(|event| event.at).collect::<Vec<_>>();
        assert_eq!(times(&run(seed, true).1), times(&events));
    }
}

/// Fails if a recorder of another runtime takes the time of the simulation in which it is started.
#[test]
fn a_runtime_that_is_not_simulated_has_the_time_of_the_system() {
    const SLEEP: Duration = Duration::from_millis(5);
    let _sim = Sim::new(7);
    let runtime = Runtime::builder().threads(1).build().unwrap();
    let recorder = FlightRecorder::new().start(&runtime);
    future::block_on(runtime.spawn(async { std::thread::sleep(SLEEP) }));
    let trace = recorder.snapshot();
    let last = trace.threads.iter().flat_map(|thread| &thread.events).map(|event| event.at).max();
    assert!(last >= Some(SLEEP), "{last:?}");
}

#[paceline::sim(seeds = 10)]
#[ignore = "run by the test below, in another process"]
fn fails_with_a_seed_above_two(sim: &mut Sim) {
    program(sim);
    assert!(sim.seed() < 3, "by intent");
}

/// Fails if the trace of the seed that fails is not written.
#[test]
fn the_variable_names_the_file_for_the_trace_of_the_seed_that_fails() {
    let test = "trace::fails_with_a_seed_above_two";
    let folder = std::env::temp_dir().join(format!("paceline-sim-trace-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("sim.pftrace");
    let output = in_another_process(test, &[("PACELINE_TRACE", file.to_str().unwrap())]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        text.contains("fails with seed 3, 3600.000000 s after its start, on the node test: by intent"),
        "{text}"
    );
    let trace = fs::read(&file).unwrap();
    // The spawn line of a task.
    assert!(trace.windows(12).any(|part| part == b"sim/trace.rs"), "{} bytes", trace.len());

    let nowhere = folder.join("no/such/folder");
    let output = in_another_process(test, &[("PACELINE_TRACE", nowhere.to_str().unwrap())]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("the trace of the simulation cannot be written to"), "{text}");
    fs::remove_dir_all(&folder).unwrap();
}
