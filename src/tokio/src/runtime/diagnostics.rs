//! paceline's reports about a program that was moved onto it refer to the program's own runtime, and name
//! lines of the program.

use std::future::{Future, pending};
use std::io::{BufRead, BufReader, Read, Write};
use std::panic::Location;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::{Builder, LocalRuntime, Runtime};
use crate::task::{self, JoinHandle, JoinSet, LocalSet};

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap()
}

fn both() -> [Runtime; 2] {
    [runtime(), Builder::new_current_thread().enable_all().build().unwrap()]
}

/// Returns whether this process is the child that [`start`] made for the test `name`. The child does not
/// outlive a parent that fails.
fn is_child(name: &str) -> bool {
    let is_child = std::env::var("PACELINE_TEST_CHILD").is_ok_and(|child| child == name);
    if is_child {
        std::thread::spawn(|| {
            std::thread::sleep(Duration::from_secs(20));
            std::process::exit(1);
        });
    }
    is_child
}

/// Runs the test `name` again, in a process of its own. Returns the process, and the lines that paceline
/// prints there.
fn start(name: &str) -> (Child, impl Iterator<Item = String>) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name, "--nocapture"]).env("PACELINE_TEST_CHILD", name);
    child.env("PACELINE_REPORT", "start,stalls").env("RUST_BACKTRACE", "0");
    child.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    (child, said.filter(|line| line.starts_with("paceline: ")))
}

fn place(line: u32) -> String {
    format!("src/runtime/diagnostics.rs:{line}:")
}

#[test]
fn metrics_and_tasks_are_those_of_the_program() {
    let runtime = runtime();
    let workers = || paceline::metrics().workers;
    assert_eq!(runtime.block_on(async { workers() }), 3);
    assert_eq!(runtime.block_on(async { crate::spawn(async move { workers() }).await.unwrap() }), 3);
    assert_eq!(runtime.block_on(runtime.spawn_blocking(workers)).unwrap(), 3);
    let line = line!() + 1;
    let leaks: Vec<_> = (0..5).map(|_| runtime.spawn(pending::<()>())).collect();
    let is_listed = |handle: &paceline::Handle| {
        let tasks = handle.tasks();
        tasks.groups.iter().any(|group| (group.number, group.spawned_at.line()) == (5, line))
    };
    runtime.block_on(async {
        while !is_listed(&paceline::Handle::current()) {
            crate::task::yield_now().await;
        }
    });
    // A thread outside of any runtime finds it.
    assert_eq!(paceline::Handle::all().iter().filter(|handle| is_listed(handle)).count(), 1);
    drop(leaks);
}

/// Each way to spawn is on a line of its own, without lines between them.
#[test]
fn each_way_to_spawn_names_the_line_of_the_program() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let (_end, ended) = mpsc::channel::<()>();
    let mut set = JoinSet::new();
    let large = large(pending::<()>());
    let first = line!() + 1;
    drop(runtime.spawn(pending::<()>()));
    drop(runtime.handle().spawn(pending::<()>()));
    drop(task::spawn(pending::<()>()));
    drop(task::spawn(large));
    set.spawn(pending::<()>());
    set.spawn_on(pending::<()>(), runtime.handle());
    set.extend([pending::<()>()]);
    let _other: JoinSet<()> = FromIterator::from_iter([pending::<()>()]);
    let spawned = first..line!();
    let closes = task::spawn_blocking(move || _ = ended.recv());
    let handle = runtime.block_on(async { paceline::Handle::current() });
    let lines = || {
        let mut lines: Vec<_> = handle.tasks().groups.iter().map(|group| group.spawned_at.line()).collect();
        lines.sort_unstable();
        lines
    };
    runtime.block_on(async {
        while handle.tasks().groups.iter().map(|group| group.number).sum::<usize>() < spawned.len() {
            task::yield_now().await;
        }
    });
    assert_eq!(lines(), spawned.clone().collect::<Vec<_>>());
    let tasks = handle.tasks();
    assert!(tasks.groups.iter().all(|group| group.spawned_at.file().ends_with("src/runtime/diagnostics.rs")));
    assert!(tasks.closures.iter().any(|group| group.name.contains(&place(spawned.end + 1))), "{tasks}");
    drop(closes);
}

/// A join handle is ready only after the panic was counted.
#[test]
fn panics_of_tasks_are_counted_before_they_are_joined() {
    async fn join_panicked(task: JoinHandle<()>) {
        assert!(task.await.unwrap_err().is_panic());
    }
    for runtime in both() {
        let panics = || paceline::metrics().tasks_panicked;
        runtime.block_on(async {
            assert_eq!(panics(), 0);
            join_panicked(task::spawn(async { panic!("on purpose") })).await;
            assert_eq!(panics(), 1);
            let set = LocalSet::new();
            set.run_until(join_panicked(set.spawn_local(async { panic!("on purpose") }))).await;
            assert_eq!(panics(), 2);
            join_panicked(task::spawn_blocking(|| panic!("on purpose"))).await;
            task::spawn(async {}).await.unwrap();
            let aborted = task::spawn(pending::<()>());
            aborted.abort();
            assert!(aborted.await.unwrap_err().is_cancelled());
            assert_eq!(panics(), 2);
        });
    }
}

#[test]
fn a_line_is_printed_for_each_spawn_line_whose_tasks_panic() {
    const NAME: &str = "runtime::diagnostics::a_line_is_printed_for_each_spawn_line_whose_tasks_panic";
    let first = line!() + 5;
    if is_child(NAME) {
        let (runtime, set) = (runtime(), LocalSet::new());
        for _ in 0..3 {
            let tasks = [
                runtime.spawn(async { panic!("on purpose") }),
                set.spawn_local(async { panic!("on purpose") }),
            ];
            for task in tasks {
                assert!(set.block_on(&runtime, task).unwrap_err().is_panic());
            }
        }
        return;
    }
    let (mut child, said) = start(NAME);
    // On a busy machine there may be a line about a stall.
    let said: Vec<_> = said.filter(|text| text.contains(" panicked")).collect();
    assert!(child.wait().unwrap().success(), "{said:#?}");
    let of = |line| format!("paceline: the task spawned at {}", place(line));
    let printed = |line| said.iter().filter(|text| text.contains(&place(line))).count();
    assert_eq!((said.len(), printed(first), printed(first + 1)), (2, 1, 1), "{} {said:#?}", of(first));
}

/// Returns the call site of the `block_on` that polls this on its thread, as paceline knows it.
fn called_at() -> &'static Location<'static> {
    let threads = paceline::Handle::current().threads();
    let here = threads.iter().find(|thread| thread.id == std::thread::current().id()).expect("it is listed");
    assert!(here.in_block_on, "{here}");
    here.spawned_at.expect("it is known")
}

/// Each `block_on` is on a line of its own, without lines between them.
#[test]
fn each_way_to_block_on_names_the_line_of_the_program() {
    let [threads, current] = both();
    let (set, local) = (LocalSet::new(), LocalRuntime::new().unwrap());
    let large = large(async { called_at() });
    let first = line!() + 2;
    let places = [
        threads.block_on(async { called_at() }),
        current.block_on(async { called_at() }),
        threads.handle().block_on(async { called_at() }),
        current.handle().block_on(async { called_at() }),
        set.block_on(&threads, async { called_at() }),
        set.block_on(&current, async { called_at() }),
        local.block_on(async { called_at() }),
        threads.block_on(large),
    ];
    for (place, line) in places.into_iter().zip(first..) {
        assert_eq!((place.file(), place.line()), (file!(), line));
    }
}

/// A future that is boxed, because it is large.
async fn large<T>(future: impl Future<Output = T>) -> T {
    let room = std::hint::black_box([0_u8; 20_000]);
    let output = future.await;
    assert_eq!(room[1], 0);
    output
}

/// Reads one byte, which the parent writes after it has read the stall's line.
fn block() {
    assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 1);
}

#[crate::main(crate = "crate")]
async fn main() {
    block();
}

/// The line of that body: the attribute makes a call of it.
const MAIN: u32 = line!() - 4;

/// Each `block_on` is on a line of its own, without lines between them.
#[test]
fn stalls_name_the_line_of_the_program() {
    const NAME: &str = "runtime::diagnostics::stalls_name_the_line_of_the_program";
    let first = line!() + 9;
    if is_child(NAME) {
        let (threads, ended) = (runtime(), runtime());
        let ended = ended.handle().clone();
        // After the shutdown, a future has a reactor only after its first wait.
        let waits = async {
            paceline::Timer::after(Duration::from_millis(1)).await;
            block();
        };
        threads.block_on(async { block() });
        ended.block_on(waits);
        threads.block_on(threads.spawn(async { block() })).unwrap();
        main();
        return;
    }
    let (mut child, mut said) = start(NAME);
    let mut goes_on = child.stdin.take().unwrap();
    let start = said.next().expect("the first runtime starts");
    assert!(start.contains(" runs in the place of tokio, with 3 workers; features: "), "{start}");
    let (future, task) = ("the future of the block_on at", "the task spawned at");
    for (what, line) in [(future, first), (future, first + 1), (task, first + 2), (future, MAIN)] {
        let text = said.find(|text| text.contains(" has blocked ")).expect("it is reported");
        // All workers have the same name.
        assert!(what == future || text.contains(" has blocked tokio-rt-worker ("), "{text}");
        assert!(text.contains(what) && text.contains(&place(line)), "not {what} {}: {text}", place(line));
        goes_on.write_all(&[0]).unwrap();
    }
    drop(said);
    assert!(child.wait().unwrap().success());
}
