//! [`act`]: does what was decided.

use std::sync::Arc;

use super::decide::{Actions, Step};
use super::observe::{Id, Observer, Scene};
use super::relief;
use super::report::report;
use crate::flight;
use crate::pool::{Finding, Pool};

/// Carries out the result of one look: keeps findings, marks slow tasks, reports stalls, ends the rounds of
/// tasks, takes the steps, tells leadership whether polls are long, and releases replacements.
pub(super) fn act(pool: &Arc<Pool>, scene: &Scene, observer: &mut Observer, actions: &Actions) {
    for (place, doing) in scene.members.iter().filter_map(|place| Some((place, place.doing?))) {
        if let Some(spot) = place.spot {
            place.station.keep_finding(Finding { spot, since: place.since, doing });
        }
    }
    for &(id, caught) in &actions.marks {
        if let Some((runner, stage)) = &scene.members[id].runner {
            runner.poll.catch(*stage, caught);
        }
    }
    for place in actions.stalls.iter().map(|id| &scene.members[*id]) {
        if let (Some(record), Some(culprit), Some(doing)) =
            (observer.records.get_mut(&place.key), place.culprit, place.doing)
        {
            let syscall = || place.station.state.syscall();
            let due = record.reports.due(&pool.deputy.stalls, doing, &record.witness, syscall);
            let Some(due) = due else { continue };
            if !report(pool, place, culprit, &due) {
                continue;
            }
            record.reports.note_made(&due);
            if let Some(spawned_at) = culprit.place {
                flight::stalls(place.station.seat.number, spawned_at, || due.kind.code(), due.lasted);
            }
        }
    }
    for place in scene.members.iter().filter(|place| !place.station.is_quiet()) {
        place.runner.iter().for_each(|(runner, _)| runner.orders.end_round());
    }
    actions.perform(|step| take(step, pool, scene));
    if let Some(are_long) = actions.has_long_polls {
        pool.leadership.set_long_polls(are_long);
    }
    for id in &actions.released {
        scene.members[*id].station.release();
    }
}

/// Takes one step. Returns false if the step failed, so that the next alternative is tried.
fn take(step: &Step, pool: &Arc<Pool>, scene: &Scene) -> bool {
    let runner_of = |id: &Id| scene.members[*id].runner.as_ref().map(|(runner, _)| runner);
    match step {
        Step::DismissReliefs => pool.relieve_reliefs(),
        Step::Rescue => {
            pool.deputy.rescues.add_shared(1);
            // A leader that sleeps looks at the shares before it sleeps again.
            pool.reactor.interrupt();
            return pool.leadership.rescue();
        }
        Step::AddTaker => return add_worker(pool, false),
        Step::AddStandby => return add_worker(pool, true),
        Step::WakeStandby(id) => runner_of(id).into_iter().for_each(|runner| runner.wake_standby()),
        Step::EndStandby(id) => runner_of(id).into_iter().for_each(|runner| runner.end_standby()),
        Step::AddRelief => return relief::start(pool),
        Step::HandOver(id) => {
            let (state, stuck) = &scene.queues[*id];
            stuck.iter().for_each(|runner| state.hand_over(runner));
        }
        Step::WakeRunner(id) => scene.queues[*id].0.notify_or_start_errand(),
    }
    true
}

/// Starts a worker, or one that is a standby. Returns false if the pool has no workers, if there may be no
/// more, or if the system has no thread.
pub(super) fn add_worker(pool: &Arc<Pool>, stands_by: bool) -> bool {
    pool.workforce().is_some_and(|crew| crew.add_thread(pool, stands_by))
}
