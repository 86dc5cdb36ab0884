//! The worker in the background: gathers orders, and ships several at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::select;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{debug, error};

use crate::Order;

/// How long an order waits for others.
pub const PERIOD: Duration = Duration::from_millis(100);
/// Orders in a parcel.
pub const MOST: usize = 8;
/// Parcels on their way at once.
const PARCELS: usize = 2;

/// Hands the orders to `ship`, until there is no sender any more and the last one is shipped.
pub async fn run<S, F>(mut orders: mpsc::Receiver<Order>, ship: S)
where
    S: Fn(Vec<Order>) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let room = Arc::new(Semaphore::new(PARCELS));
    let mut parcels = JoinSet::new();
    let mut waiting = Vec::new();
    loop {
        let is_over = select! {
            order = orders.recv() => {
                let is_over = order.is_none();
                waiting.extend(order);
                if !is_over && waiting.len() < MOST { continue }
                is_over
            }
            _ = ticks.tick() => false,
            Some(parcel) = parcels.join_next() => {
                if let Err(error) = parcel { error!(%error, "a parcel is lost") }
                continue
            }
        };
        if !waiting.is_empty() {
            let parcel = std::mem::take(&mut waiting);
            let (shipping, room) = (ship(parcel.clone()), room.clone());
            parcels.spawn(async move {
                let _place = room.acquire_owned().await;
                let slip = spawn_blocking(move || slip(&parcel)).await;
                debug!(slip = slip.unwrap_or_default(), "a parcel is packed");
                shipping.await;
            });
        }
        if is_over {
            break;
        }
    }
    parcels.join_all().await;
}

/// Makes the packing slip, which takes the printer a while.
fn slip(parcel: &[Order]) -> String {
    let lines: Vec<_> = parcel.iter().map(|order| format!("{} {}", order.quantity, order.item)).collect();
    lines.join(", ")
}
