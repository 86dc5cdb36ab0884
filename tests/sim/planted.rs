//! What is printed of a seed that fails, by planted bugs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use paceline::net::{TcpListener, TcpStream};
use paceline::prelude::*;
use paceline::sim::{self, Sim};
use paceline::{Timer, spawn};

use super::in_another_process;

type Disk = Arc<Mutex<BTreeMap<u8, u8>>>;

/// Acknowledges each order before it is stored.
async fn shop(disk: Disk) {
    let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
    while let Ok((mut stream, _)) = listener.accept().await {
        let disk = disk.clone();
        spawn(async move {
            let mut order = [0; 2];
            while stream.read_exact(&mut order).await.is_ok() {
                sim::note(format_args!("acknowledges order {}", order[0]));
                if stream.write_all(&[1]).await.is_err() {
                    return;
                }
                Timer::after(Duration::from_millis(10)).await;
                sim::note(format_args!("stores order {}", order[0]));
                disk.lock().unwrap().insert(order[0], order[1]);
            }
        })
        .detach();
    }
}

/// Sends twenty orders, each until it is acknowledged.
async fn client() -> Vec<u8> {
    let mut acknowledged = Vec::new();
    let mut order = 0;
    while order < 20 {
        let Ok(mut stream) = TcpStream::connect("shop:80").await else {
            Timer::after(Duration::from_millis(100)).await;
            continue;
        };
        while order < 20 {
            let send = async {
                stream.write_all(&[order, 1]).await?;
                stream.read_exact(&mut [0]).await
            };
            if !matches!(paceline::timeout(Duration::from_secs(1), send).await, Ok(Ok(_))) {
                break;
            }
            acknowledged.push(order);
            order += 1;
            Timer::after(Duration::from_millis(100)).await;
        }
    }
    acknowledged
}

#[paceline::sim(seeds = 500)]
#[ignore = "a planted bug, run by a test below in another process"]
fn acknowledges_early(sim: &mut Sim) {
    let disk = Disk::default();
    let of_shop = disk.clone();
    sim.node("shop", move || shop(of_shop.clone()));
    let network = sim.network();
    network.set_loss(0.02);
    let mut rng = sim.rng();
    for _ in 0..4 {
        let at = Duration::from_millis(rng.below(2000));
        let network = network.clone();
        sim.at(at, move || network.crash("shop"));
        let network = sim.network();
        sim.at(at + Duration::from_millis(100), move || network.restart("shop"));
    }
    let orders = sim.client("client", client());
    let acknowledged = sim.block_on(orders);
    sim.run_for(Duration::from_secs(1));
    let stored = disk.lock().unwrap();
    for order in acknowledged {
        assert!(stored.contains_key(&order), "order {order} was acknowledged, and is not stored");
    }
}

/// Two tasks that read a number, wait, and write it.
#[paceline::sim(seeds = 500)]
#[ignore = "a planted bug, run by a test below in another process"]
fn loses_an_update(sim: &mut Sim) {
    let stock = Arc::new(Mutex::new(10));
    let served = stock.clone();
    sim.node("shop", move || {
        let stock = served.clone();
        async move {
            let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
            while let Ok((mut stream, _)) = listener.accept().await {
                let stock = stock.clone();
                spawn(async move {
                    let mut order = [0];
                    while stream.read_exact(&mut order).await.is_ok() {
                        let left = *stock.lock().unwrap();
                        sim::note(format_args!("order {} finds {left} left", order[0]));
                        Timer::after(Duration::from_millis(1)).await;
                        *stock.lock().unwrap() = left - 1;
                        sim::note(format_args!("order {} leaves {}", order[0], left - 1));
                        stream.write_all(&[1]).await.unwrap();
                    }
                })
                .detach();
            }
        }
    });
    sim.network().set_latency(Duration::from_millis(1)..=Duration::from_millis(30));
    let clients: Vec<_> = (0..3)
        .map(|n: u8| {
            sim.client(&format!("client{n}"), async move {
                let mut stream = TcpStream::connect("shop:80").await.unwrap();
                for order in 0..2 {
                    stream.write_all(&[2 * n + order]).await.unwrap();
                    stream.read_exact(&mut [0]).await.unwrap();
                }
            })
        })
        .collect();
    sim.block_on(async move {
        for client in clients {
            client.await;
        }
    });
    let left = *stock.lock().unwrap();
    assert_eq!(left, 4, "six orders of ten");
}

/// Needs one task to be polled before two others that are ready for longer.
#[paceline::sim(seeds = 500)]
#[ignore = "a planted bug, run by a test below in another process"]
fn needs_an_order(sim: &mut Sim) {
    let order = Arc::new(Mutex::new(Vec::new()));
    for name in ["first", "second", "third"] {
        let order = order.clone();
        sim.spawn(async move { order.lock().unwrap().push(name) }).detach();
    }
    sim.run_for(Duration::from_secs(1));
    (0..20).for_each(|_| sim.spawn(async {}).detach());
    sim.run_for(Duration::from_secs(1));
    assert_ne!(order.lock().unwrap()[0], "third");
}

/// Fails because an earlier seed has left a static changed.
#[paceline::sim(seeds = 500)]
#[ignore = "a planted bug, run by a test below in another process"]
fn remembers_an_earlier_seed(sim: &mut Sim) {
    static IS_FULL: AtomicBool = AtomicBool::new(false);
    assert!(!IS_FULL.swap(sim.seed() == 6, Relaxed) || sim.seed() < 7);
}

/// Runs a planted bug, which has to fail. Returns what it prints, from the line with the seed on, and the
/// seed.
fn explained(test: &str, variables: &[(&str, &str)]) -> (String, String) {
    let output = in_another_process(&format!("planted::{test}"), variables);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{text}");
    let (before, after) = text.split_once(&format!("sim::planted::{test} fails with seed ")).expect(&text);
    let seed = after.split_once(',').expect(&text).0.to_owned();
    assert!(!before.contains("Faults so far"), "the page is printed twice: {text}");
    let lines = after.lines().take_while(|line| !line.contains("://ui.perfetto.dev")).count() + 1;
    assert!(lines <= 60, "{lines} lines: {text}");
    (after.to_owned(), seed)
}

/// Fails if a page does not show the crash between the acknowledgement and the store, or shows faults that do
/// not matter.
#[test]
fn a_page_shows_the_faults_that_matter_and_what_was_around_them() {
    let (text, seed) = explained("acknowledges_early", &[]);
    let order = text.split_once(" on the node test: order ").expect(&text).1.split(' ').next().unwrap();
    assert!(text.contains("This run has 1 of the seed's "), "{text}");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let crashes: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].ends_with("crashes")).collect();
    // In the list of faults, and among what happened.
    let [_, crash] = crashes[..] else { panic!("{crashes:?} {text}") };
    let acknowledged = format!("notes: acknowledges order {order}");
    let stored = format!("notes: stores order {order}");
    assert!(lines[crash - 6..crash].iter().any(|line| line.ends_with(&acknowledged)), "{text}");
    assert!(!text.contains(&stored), "{text}");

    // The trace has the notes, the faults and the packets.
    let trace =
        text.split_once("The trace of that run is in ").expect(&text).1.split_once(", for").unwrap().0;
    let trace = std::fs::read(trace).unwrap();
    for wanted in
        ["acknowledges order 0", "crashes", "shop:80: 2 bytes (lost)", "shop:80: 2 bytes (arrives)", "shop"]
    {
        assert!(trace.windows(wanted.len()).any(|part| part == wanted.as_bytes()), "{wanted}");
    }

    // The plan that is named makes the same run.
    let plan = text.split_once("PACELINE_PLAN=").expect(&text).1.split_once(" before it").expect(&text).0;
    let (again, _) = explained("acknowledges_early", &[("PACELINE_SEED", &seed), ("PACELINE_PLAN", plan)]);
    let page =
        |text: &str| text.split_once("Faults so far").unwrap().1.split_once("To run").unwrap().0.to_owned();
    assert_eq!(page(&again), page(&text));
    assert!(again.contains("This run has all faults of the plan"), "{again}");
}

/// Fails if choices of the order that do not matter are left, or if the one that does is not told of.
#[test]
fn a_page_shows_the_choices_of_a_task_that_matter() {
    let (text, _) = explained("needs_an_order", &[]);
    assert!(
        text.starts_with(|first: char| first.is_ascii_digit()) && text.contains(" At 1 of its polls ("),
        "{text}"
    );
    let choice = "spawned at tests/sim/planted.rs:";
    assert_eq!(text.matches(" is polled before task 1, ").count(), 1, "{text}");
    assert!(
        text.contains(&format!("task 3, {choice}")) && text.contains(" which was ready before"),
        "{text}"
    );
}

#[test]
fn a_page_without_faults_shows_what_happened_last() {
    let (text, _) = explained("loses_an_update", &[]);
    assert!(text.contains("This seed has no faults.") && !text.contains("Faults so far"), "{text}");
    assert_eq!(text.matches("notes: order ").count(), 12, "{text}");
    assert!(text.contains("  left: ") && text.contains("six orders of ten"), "{text}");
}

#[test]
fn a_failure_that_an_earlier_seed_has_caused_is_named_so() {
    let (text, seed) = explained("remembers_an_earlier_seed", &[("PACELINE_JOBS", "1")]);
    assert!(seed == "7" && text.contains("Run again in another process, the seed passes."), "{text}");
}

#[test]
fn a_file_that_is_no_plan_is_an_error() {
    let output = in_another_process("planted::needs_an_order", &[("PACELINE_PLAN", "Cargo.toml")]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("which is no plan that a failure has left: \"[workspace]\""), "{text}");
}

/// Has more faults than a page lists, and many losses.
#[test]
#[ignore = "run by a test below in another process"]
fn has_much_to_tell() {
    let mut sim = Sim::new(7);
    let names: Vec<String> = (0..8).map(|n| format!("n{n}")).collect();
    names.iter().for_each(|name| sim.node(name, || async {}));
    let network = sim.network();
    for round in 0..1500 {
        let (a, b) = (&names[round % 8], &names[(round + 1) % 8]);
        network.partition(a, b);
        network.repair(a, b);
        sim::note(format_args!("round {round} of 13"));
        sim.run_for(Duration::from_millis(1));
    }
    network.set_loss(1.0);
    for name in names {
        sim.spawn(async move { TcpStream::connect((&*name, 80)).await.is_ok() }).detach();
    }
    sim.run_for(Duration::from_secs(20));
    sim::note("x".repeat(60_000));
    panic!("at round 1499, {}", "x".repeat(60_000));
}

/// Fails if a page grows with what there is to tell, or if it has the first faults in place of the last ones.
#[test]
fn a_page_has_sixty_lines_at_most_and_the_last_faults() {
    let output = in_another_process("planted::has_much_to_tell", &[]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let page = text.split_once("a panic ends the simulation with seed 7\n").expect(&text).1;
    let lines: Vec<&str> = page.lines().take_while(|line| line.starts_with([' ', '+', 'F', 'W'])).collect();
    assert!((30..=43).contains(&lines.len()), "{}: {page}", lines.len());
    assert!(lines.iter().all(|line| line.chars().count() <= 203), "{page}");
    assert!(page.contains("  (2990 earlier ones)\n") && page.contains("1.499000  n3"), "{page}");
    assert!(page.contains("notes: round 1499 of 13"), "{page}");
}

/// Fails if a plan is lost because the trace cannot be written.
#[test]
fn a_plan_is_left_where_no_trace_can_be() {
    let nowhere = ("PACELINE_TRACE", "/no/such/folder/file");
    let (text, seed) = explained("needs_an_order", &[nowhere]);
    assert!(text.contains("the trace of the simulation cannot be written to"), "{text}");
    let plan = text.split_once("PACELINE_PLAN=").expect(&text).1.split_once(" before it").expect(&text).0;
    let (again, _) = explained("needs_an_order", &[("PACELINE_SEED", &seed), ("PACELINE_PLAN", plan)]);
    assert!(again.contains(" is polled before task 1, "), "{again}");
}
