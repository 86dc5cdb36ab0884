//! Strands: operations of all forms from everywhere. None is lost, none runs twice, and no two overlap.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_lite::{FutureExt, future};
use paceline::{Strand, Timer};

use crate::panics::assert_on_purpose;
use crate::scene::{Dice, Guard, Scene, Tally, some_wait};

/// State that only one operation may touch at a time.
struct State {
    /// The last operation of each poster.
    last: Vec<u64>,
    sum: u64,
    inside: Arc<AtomicBool>,
    _guard: Guard,
}

/// Checks that no other operation is inside.
fn alone<R>(inside: &AtomicBool, does: impl FnOnce() -> R) -> R {
    assert!(!inside.swap(true, Relaxed), "two are inside of a strand");
    let output = does();
    inside.store(false, Relaxed);
    output
}

impl State {
    fn operate(&mut self, poster: usize, number: u64) {
        let inside = self.inside.clone();
        alone(&inside, || {
            assert_eq!(self.last[poster] + 1, number, "a poster's operations are out of order");
            self.last[poster] = number;
            self.sum += 1;
        });
    }

    fn add(&mut self) -> u64 {
        let inside = self.inside.clone();
        alone(&inside, || {
            self.sum += 1;
            self.sum
        })
    }
}

/// The sum is that of all additions, after all posters have finished.
pub async fn sums(scene: Scene, mut dice: Dice) {
    let posters = 1 + dice.roll(6) as usize;
    let dropped = Tally::new(1);
    let inside = Arc::new(AtomicBool::new(false));
    let strand = Strand::new(State {
        last: vec![0; posters],
        sum: 0,
        inside: inside.clone(),
        _guard: dropped.guard(0),
    });
    let (tell, told) = mpsc::channel();
    for poster in 0..posters {
        let (strand, inside, tell, mut own) = (strand.clone(), inside.clone(), tell.clone(), dice.fork());
        scene.run_elsewhere(&mut dice, async move {
            let added = post(strand, inside, poster, &mut own).await;
            tell.send(added).unwrap();
        });
    }
    drop(tell);
    let expected: u64 = told.iter().sum();
    let sum = strand.with(|state| state.sum).await;
    assert_eq!(sum, expected, "operations were lost, or came twice");
    drop(strand);
    // The thread inside of the strand holds it for a moment more.
    dropped.wait_until_complete();
}

/// Returns the number of operations.
async fn post(strand: Strand<State>, inside: Arc<AtomicBool>, poster: usize, dice: &mut Dice) -> u64 {
    let (mut number, mut added, mut tasks) = (0, 0, Vec::new());
    for _ in 0..dice.roll(100) {
        match dice.roll(8) {
            0..=2 => {
                number += 1;
                strand.post(move |state| state.operate(poster, number));
            }
            3..=4 => {
                number += 1;
                strand.with(move |state| state.operate(poster, number)).await;
            }
            5 => {
                added += 1;
                strand.with(State::add).await;
            }
            6 => {
                added += 2;
                let (strand2, inside, yields) = (strand.clone(), inside.clone(), dice.coin());
                tasks.push(strand.spawn(async move {
                    alone(&inside, || {});
                    strand2.with(State::add).await;
                    if yields {
                        Timer::after(Duration::from_micros(50)).await;
                    }
                    alone(&inside, || {});
                    strand2.with(State::add).await;
                }));
            }
            _ => some_wait(dice).await,
        }
    }
    for task in tasks {
        task.await;
    }
    number + added
}

/// Operations that panic, are dropped, or block; futures that are cancelled. None of them affects the others.
pub async fn hurt(scene: Scene, mut dice: Dice) {
    let count = 10 + dice.roll(30) as usize;
    let (strand, dropped) = (Strand::new(0_u64), Tally::new(count));
    let mut tasks = Vec::new();
    for number in 0..count {
        let guard = dropped.guard(number);
        match dice.roll(7) {
            0 => {
                let panics = strand.with(move |_| {
                    let _guard = guard;
                    panic!("on purpose")
                });
                let result: Result<(), _> = std::panic::AssertUnwindSafe(panics).catch_unwind().await;
                assert_on_purpose(result);
            }
            1 => strand.post(move |_| {
                let _guard = guard;
                panic!("on purpose")
            }),
            2 => {
                // The operation has run, or never will.
                let with = strand.with(move |_| drop(guard));
                let _ = future::poll_once(std::pin::pin!(with)).await;
            }
            3 => {
                let sleeps = dice.micros(1_000);
                let strand = strand.clone();
                scene.run_elsewhere(&mut dice, async move {
                    strand.post(move |_| {
                        let _guard = guard;
                        thread::sleep(sleeps);
                    });
                });
            }
            4 => {
                let task = strand.spawn(async move {
                    let _guard = guard;
                    Timer::after(Duration::from_secs(3600)).await;
                });
                if dice.coin() {
                    future::yield_now().await;
                }
                task.cancel().await;
            }
            5 => {
                let panics = strand.spawn(async move {
                    let _guard = guard;
                    future::yield_now().await;
                    panic!("on purpose")
                });
                let result: Result<(), _> = std::panic::AssertUnwindSafe(panics).catch_unwind().await;
                assert_on_purpose(result);
            }
            _ => {
                let strand2 = strand.clone();
                tasks.push(strand.spawn(async move {
                    strand2.with(move |_| drop(guard)).await;
                }));
            }
        }
    }
    for task in tasks {
        task.await;
    }
    assert_eq!(strand.with(|sum| *sum).await, 0);
    dropped.wait_until_complete();
}
