//! Drains together with other features: jobs and closures that block, streams, strands, handles; and from
//! threads of each role.

use std::future::Future;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use futures_lite::{AsyncReadExt, future};
use paceline::blocking::{Job, JobError};
use paceline::{DrainReport, Handle, Runtime, Strand, Timer, Unblock, block_on, spawn, unblock};

use crate::drain::{Count, HOUR, SHORT, counts, waits};
use crate::given_time::RecvSoon;
use crate::setups::{Latch, OpenOnDrop, Socket, eventually, for_each_builder, for_each_setup, sockets};

/// Begins a drain.
fn begins(runtime: &Runtime, timeout: Duration) -> impl Future<Output = DrainReport> + Send + use<> {
    let mut drain = Box::pin(runtime.drain(timeout));
    assert!(future::block_on(future::poll_once(&mut drain)).is_none());
    drain
}

/// Calls a function inside of the runtime.
fn within<R>(runtime: &Runtime, call: impl FnOnce() -> R) -> R {
    runtime.block_on(async { call() })
}

/// Fails if running and waiting jobs are not waited for.
#[test]
fn jobs_that_run_and_wait_come_to_their_end() {
    for_each_builder(|setup| {
        let runtime = setup.builder().blocking_threads(1).build().unwrap();
        let (latch, count, begun) = (Latch::new(), Count::default(), Latch::new());
        let free = OpenOnDrop(latch.clone());
        let (first, has_begun) = (count.one(), begun.clone());
        within(&runtime, || {
            Job::new(move || {
                let _first = first;
                has_begun.open();
                latch.wait();
            })
            .submit()
            .detach();
            for number in 0..6 {
                let one = count.one();
                if number % 2 == 0 {
                    unblock(move || drop(one)).detach();
                } else {
                    Job::new(move || drop(one)).submit().detach();
                }
            }
        });
        begun.wait();
        let drain = begins(&runtime, HOUR);
        // The rest of a task may still run there.
        assert_eq!(count.get(), 0);
        let opener = thread::spawn(move || {
            thread::sleep(SHORT);
            drop(free);
        });
        let report = future::block_on(drain);
        opener.join().unwrap();
        assert_eq!(count.get(), 7, "{report}");
        assert!(report.is_clean(), "{report}");
    });
}

/// A running task goes on with a closure, and another one.
#[test]
fn tasks_that_are_left_may_have_closures_run() {
    for_each_setup(|runtime| {
        let (go, may_go) = async_channel::bounded::<()>(1);
        let task = runtime.spawn(async move {
            let _ = may_go.recv().await;
            let number = unblock(|| 6).await;
            let last = Job::new(move || number * 7).submit().await.unwrap();
            unblock(|| thread::sleep(SHORT)).detach();
            last
        });
        let drain = begins(runtime, HOUR);
        go.close();
        let report = future::block_on(drain);
        assert!(report.is_clean() && report.finished == 1, "{report}");
        assert_eq!(future::block_on(task), 42);
        eventually("the last one has run", || runtime.metrics().blocking_jobs == 3);
    });
}

/// A running job is told by its token. The job is awake, so that it needs no time but a core to return.
#[test]
fn a_job_that_returns_at_the_deadline_is_not_lost() {
    for_each_setup(|runtime| {
        let (begun, polite) = (Latch::new(), Count::default());
        let (has_begun, one) = (begun.clone(), polite.one());
        let job = within(runtime, || {
            Job::with_token(move |token| {
                let _one = one;
                has_begun.open();
                while !token.is_cancelled() {
                    thread::yield_now();
                }
            })
            .submit()
        });
        begun.wait();
        let report = future::block_on(runtime.drain(SHORT));
        assert_eq!((report.jobs_cancelled, report.jobs_lost.len(), polite.get()), (0, 0, 1), "{report}");
        assert_eq!(future::block_on(job), Ok(()), "it has returned");
    });
}

/// A running job that does not return is lost; a waiting job never begins.
#[test]
fn jobs_at_the_deadline() {
    for_each_builder(|setup| {
        let runtime = setup.builder().blocking_threads(2).build().unwrap();
        let (latch, begun, count) = (Latch::new(), Arc::new(AtomicUsize::new(0)), Count::default());
        let free = OpenOnDrop(latch.clone());
        let ran = Arc::new(AtomicUsize::new(0));
        let line = within(&runtime, || {
            let (has_begun, wait) = (begun.clone(), latch.clone());
            let upload = move || {
                has_begun.fetch_add(1, SeqCst);
                wait.wait();
            };
            Job::new(upload).name("upload").submit().detach();
            let (has_begun, wait) = (begun.clone(), latch.clone());
            let waits = move || {
                has_begun.fetch_add(1, SeqCst);
                wait.wait();
            };
            let line = line!() + 1;
            unblock(waits).detach();
            line
        });
        eventually("they run", || begun.load(SeqCst) == 2);
        let handles: Vec<_> = within(&runtime, || {
            (0..4)
                .map(|_| {
                    let (one, ran) = (count.one(), ran.clone());
                    Job::new(move || {
                        let _one = one;
                        ran.fetch_add(1, SeqCst);
                    })
                    .submit()
                })
                .collect()
        });
        let report = future::block_on(runtime.drain(SHORT));
        assert_eq!(counts(&report), (0, 0, 0), "{report}");
        assert_eq!((report.jobs_cancelled, count.get(), ran.load(SeqCst)), (4, 4, 0), "{report}");
        let mut lost = report.jobs_lost.clone();
        lost.sort();
        assert!(
            lost.len() == 2 && lost[1] == "upload" && lost[0].contains(&format!("drain_with.rs:{line}:")),
            "{report}"
        );
        assert!(report.to_string().contains(", 4 jobs never began, and 2 jobs are lost: "), "{report}");
        assert!(!report.is_clean());
        for handle in handles {
            assert!(matches!(future::block_on(handle), Err(JobError::Cancelled { .. })));
        }
        drop(free);
        eventually("the threads end", || runtime.metrics().blocking_threads == 0);
        // New jobs are refused.
        let late = within(&runtime, || Job::new(|| ()).submit());
        assert!(matches!(future::block_on(late), Err(JobError::Cancelled { .. })));
    });
}

/// A drain does not wait for a job past its deadline, but reports it.
#[test]
fn a_job_that_is_lost_already() {
    for_each_setup(|runtime| {
        let latch = Latch::new();
        let free = OpenOnDrop(latch.clone());
        let begun = Latch::new();
        // A job that gets no core in time never begins.
        while !begun.is_open() {
            let (latch, begun) = (latch.clone(), begun.clone());
            let slow = move || {
                begun.open();
                latch.wait();
            };
            let job = within(runtime, || Job::new(slow).name("slow").timeout(SHORT).submit());
            assert!(matches!(future::block_on(job), Err(JobError::TimedOut { .. })));
        }
        let report = future::block_on(runtime.drain(HOUR));
        assert_eq!(report.jobs_lost, ["slow"]);
        drop(free);
    });
}

/// A closure never begins, and its destructor blocks: those behind it wait.
#[test]
fn a_closure_that_blocks_when_it_is_dropped() {
    for_each_builder(|setup| {
        let runtime = setup.builder().blocking_threads(1).build().unwrap();
        let (latch, count, begun) = (Latch::new(), Count::default(), Latch::new());
        let free = OpenOnDrop(latch.clone());
        struct Blocks(Latch);
        impl Drop for Blocks {
            fn drop(&mut self) {
                self.0.wait();
            }
        }
        let (wait, blocks, has_begun) = (latch.clone(), Blocks(latch), begun.clone());
        within(&runtime, || {
            Job::new(move || {
                has_begun.open();
                wait.wait();
            })
            .name("first")
            .submit()
            .detach();
            unblock(move || drop(blocks)).detach();
            for _ in 0..3 {
                let one = count.one();
                unblock(move || drop(one)).detach();
            }
        });
        begun.wait();
        let report = future::block_on(runtime.drain(SHORT));
        assert_eq!((report.jobs_cancelled, report.jobs_lost.len(), count.get()), (4, 1, 0), "{report}");
        assert_eq!((report.stuck.len(), report.stuck[0].spawned_at), (1, None), "{report}");
        drop(free);
        eventually("those behind it are dropped", || count.get() == 3);
    });
}

/// A drain does not wait for a thread that blocks in the read of a stream.
#[test]
fn a_stream_is_not_waited_for() {
    for_each_setup(|runtime| {
        let (mine, theirs) = sockets();
        struct Slow(Socket, Latch);
        impl Read for Slow {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                self.1.open();
                self.0.read(buffer)
            }
        }
        let reads = Latch::new();
        let mut stream = within(runtime, || Unblock::new(Slow(theirs, reads.clone())));
        let mut buffer = [0; 8];
        let nothing = runtime.block_on(future::poll_once(stream.read(&mut buffer)));
        assert!(nothing.is_none());
        reads.wait();
        let report = future::block_on(runtime.drain(HOUR));
        assert!(report.is_clean(), "{report}");
        drop(mine);
    });
}

/// Operations that wait for their turn, and posted operations, are done when the drain ends.
#[test]
fn operations_of_a_strand_come_to_their_end() {
    for_each_setup(|runtime| {
        const TASKS: usize = 20;
        let strand = Strand::new(Vec::new());
        let (latch, inside) = (Latch::new(), Latch::new());
        let free = OpenOnDrop(latch.clone());
        let (first, is_inside) = (strand.clone(), inside.clone());
        let operation = move |done: &mut Vec<usize>| {
            is_inside.open();
            latch.wait();
            done.push(usize::MAX);
        };
        runtime.spawn(async move { first.with(operation).await }).detach();
        inside.wait();
        let asked = Arc::new(AtomicUsize::new(0));
        for number in 0..TASKS {
            let (strand, asked) = (strand.clone(), asked.clone());
            let operation = async move {
                let mut operation = Box::pin(strand.with(move |done| done.push(number)));
                assert!(future::poll_once(&mut operation).await.is_none());
                asked.fetch_add(1, SeqCst);
                operation.await;
                strand.post(move |done| done.push(number));
            };
            runtime.spawn(operation).detach();
        }
        eventually("they wait", || asked.load(SeqCst) == TASKS);
        let drain = begins(runtime, HOUR);
        drop(free);
        let report = future::block_on(drain);
        assert_eq!(counts(&report), (TASKS + 1, 0, 0), "{report}");
        eventually("what was posted has run", || {
            future::block_on(strand.with(|done| done.len())) == 2 * TASKS + 1
        });
    });
}

/// The operation inside of the strand blocks: its task is named, and waiting operations are cancelled.
#[test]
fn operations_of_a_strand_at_the_deadline() {
    for_each_setup(|runtime| {
        let strand = Strand::new(0);
        let (latch, inside, count) = (Latch::new(), Latch::new(), Count::default());
        let free = OpenOnDrop(latch.clone());
        let (first, is_inside) = (strand.clone(), inside.clone());
        let operation = move |state: &mut i32| {
            is_inside.open();
            latch.wait();
            *state += 1;
        };
        let (task, line) = (runtime.spawn(async move { first.with(operation).await }), line!());
        task.detach();
        inside.wait();
        for _ in 0..5 {
            let (strand, one) = (strand.clone(), count.one());
            runtime
                .spawn(async move {
                    let _one = one;
                    strand.with(|state| *state += 100).await;
                })
                .detach();
        }
        strand.post(|state| *state += 1);
        let report = future::block_on(runtime.drain(SHORT));
        assert_eq!((counts(&report), count.get()), ((0, 5, 1), 5), "{report}");
        assert_eq!(report.stuck[0].spawned_at.map(|at| at.line()), Some(line), "{report}");
        drop(free);
        eventually("what was posted has run", || future::block_on(strand.with(|state| *state)) == 2);
    });
}

/// A thread that has entered the runtime, during a drain and afterwards.
#[test]
fn while_it_is_entered() {
    for_each_setup(|runtime| {
        let (begun, last) = (Latch::new(), Latch::new());
        let (has_begun, is_last) = (begun.clone(), last.clone());
        let task = runtime.spawn(async move {
            has_begun.open();
            while !is_last.is_open() {
                Timer::after(Duration::from_millis(1)).await;
            }
        });
        begun.wait();
        let handle = runtime.handle();
        let entered = handle.enter();
        let drain = begins(runtime, HOUR);
        assert_eq!(block_on(spawn(async { 1 }).fallible()), None, "it acts on the one that ends");
        // Until the runtime ends, its reactor and its blocking threads exist.
        assert_eq!(block_on(async { unblock(|| 7).await }), 7);
        block_on(Timer::after(Duration::from_millis(1)));
        let again = Handle::current().drain(HOUR);
        last.open();
        let reports = block_on(future::zip(drain, again));
        assert_eq!((counts(&reports.0), reports.0.took), ((1, 0, 0), reports.1.took));
        block_on(task);
        assert_eq!(block_on(spawn(async { 1 }).fallible()), None);
        assert!(matches!(block_on(Job::new(|| ()).submit()), Err(JobError::Cancelled { .. })));
        block_on(Timer::after(Duration::from_millis(1)));
        drop(entered);
    });
}

/// Drains from all roles at once: each but the runtime's own tasks gets the same report, with each task in
/// the right number.
#[test]
fn several_at_once_from_each_role() {
    for_each_setup(|runtime| {
        const ROLES: usize = 8;
        // Two of the roles are tasks, which get none. One more drain has a short deadline, when all others
        // wait.
        const ALL: usize = ROLES - 2 + 1;
        let other = Runtime::builder().threads(1).build().unwrap();
        let (count, asked) = (Count::default(), Arc::new(AtomicUsize::new(0)));
        (0..3).for_each(|_| waits(runtime, &count));
        let (go, may_go) = async_channel::bounded::<()>(1);
        let all_asked = asked.clone();
        let finishes = runtime.spawn(async move {
            while all_asked.load(SeqCst) < ROLES {
                Timer::after(Duration::from_millis(1)).await;
            }
        });
        let ask = |number: u32| {
            let (handle, asked, may_go) = (runtime.handle(), asked.clone(), may_go.clone());
            async move {
                let _ = may_go.recv().await;
                let mut drain = Box::pin(handle.drain(HOUR + SHORT * number));
                assert!(future::poll_once(&mut drain).await.is_none());
                asked.fetch_add(1, SeqCst);
                drain.await
            }
        };
        let (tell, told) = mpsc::channel();
        let tells = |role: &'static str| {
            let tell = tell.clone();
            move |report: DrainReport| tell.send((role, report)).unwrap()
        };
        for number in 0..2 {
            let (drain, tell) = (ask(number), tells("a task"));
            runtime.spawn(async move { tell(drain.await) }).detach();
        }
        let (drain, tell) = (ask(2), tells("a foreign block_on in a task"));
        runtime.spawn(async move { tell(pollster::block_on(drain)) }).detach();
        let (drain, tell) = (ask(3), tells("another runtime's task"));
        other.spawn(async move { tell(drain.await) }).detach();
        let (drain, tell, handle) = (ask(4), tells("a thread that has entered it"), runtime.handle());
        let entered = thread::spawn(move || {
            let _entered = handle.enter();
            tell(block_on(drain));
        });
        let (drain, tell) = (ask(5), tells("a foreign thread"));
        let foreign = thread::spawn(move || tell(futures_executor::block_on(drain)));
        let (tell, handle) = (tells("the drain with a short deadline"), runtime.handle());
        let hurries = thread::spawn(move || {
            future::block_on(finishes);
            tell(future::block_on(handle.drain(Duration::ZERO)));
        });
        let both = future::zip(ask(6), ask(7));
        go.close();
        let mine = runtime.block_on(both);
        tells("block_on")(mine.0);
        tells("block_on")(mine.1);
        let reports: Vec<_> = (0..ALL)
            .map(|number| told.recv_soon().unwrap_or_else(|_| panic!("{number} of {ALL} got it")))
            .collect();
        [entered, foreign, hurries].into_iter().for_each(|thread| thread.join().unwrap());
        let same = &reports[0].1;
        assert_eq!((counts(same), count.get()), ((1, 3 + 2, 1), 3), "{same}");
        for (role, report) in &reports {
            assert_eq!((report.to_string(), report.took), (same.to_string(), same.took), "{role}");
        }
        eventually("the threads end", || runtime.metrics().workers == 0);
    });
}
