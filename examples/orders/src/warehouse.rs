//! The warehouse: takes parcels, and knows which orders were in them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use tracing::info;

use crate::Order;

/// The orders that have arrived.
#[derive(Clone, Default)]
pub struct Shelves(Arc<Mutex<BTreeMap<u64, Order>>>);

impl Shelves {
    /// Returns whether the order has arrived.
    pub fn has(&self, id: u64) -> bool {
        self.0.lock().unwrap().contains_key(&id)
    }
}

/// Returns what the warehouse serves: `POST /parcels`, and `GET /orders/{id}`.
pub fn routes(shelves: Shelves) -> Router {
    Router::new().route("/parcels", post(take)).route("/orders/{id}", get(order)).with_state(shelves)
}

async fn take(State(shelves): State<Shelves>, Json(parcel): Json<Vec<Order>>) -> StatusCode {
    info!(orders = ?parcel.iter().map(|order| order.id).collect::<Vec<_>>(), "a parcel arrives");
    // A parcel that is sent again has orders that are here.
    shelves.0.lock().unwrap().extend(parcel.into_iter().map(|order| (order.id, order)));
    StatusCode::OK
}

async fn order(State(shelves): State<Shelves>, Path(id): Path<u64>) -> Result<Json<Order>, StatusCode> {
    shelves.0.lock().unwrap().get(&id).cloned().map(Json).ok_or(StatusCode::NOT_FOUND)
}
