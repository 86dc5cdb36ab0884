//! A shop that takes orders over HTTP, keeps them in a journal, and hands them to a warehouse.
//!
//! | request | answer |
//! |---|---|
//! | `POST /orders` with an [`Order`] | 201; 200 if placed before; 404; 409 if too few are left |
//! | `GET /orders`, `GET /orders/{id}` | all orders; the order, or 404 |
//! | `GET /stock/{item}` | how many are left, or 404 |
//!
//! Nothing here knows of paceline: all names are tokio's.

pub mod client;
pub mod shipping;
pub mod store;
pub mod warehouse;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::{error, info, warn};

use client::{Client, reason};
use store::{Placed, Store};

/// Attempts to reach the warehouse before an order is left for the next start.
const ATTEMPTS: u32 = 20;
/// How long the last shipments have when the shop stops.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Chosen by the customer. An order that is sent again has the same number, and counts once.
    pub id: u64,
    pub item: String,
    pub quantity: u32,
}

/// A bug that a test plants, to see that a simulation finds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plant {
    #[default]
    None,
    /// Two orders may both see the stock before either has changed it.
    LostUpdate,
    /// A shipment that fails is not sent again.
    NoRetry,
    /// An order is acknowledged before it is in the journal.
    EarlyAck,
}

pub struct Config {
    /// The folder of the journal, which must be there.
    pub folder: PathBuf,
    /// What there is of each item before the first order.
    pub stock: Vec<(String, u32)>,
    /// The URL of the warehouse.
    pub warehouse: String,
    pub plant: Plant,
}

#[derive(Clone)]
struct Shop {
    store: Arc<Store>,
    stored: mpsc::Sender<Order>,
}

/// Serves until `stop` is ready. Then answers the requests that have begun, and ships what is stored.
pub async fn serve(
    listener: TcpListener,
    config: Config,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let store = Arc::new(Store::open(&config).await?);
    let (stored, to_ship) = mpsc::channel(64);
    let attempts = if config.plant == Plant::NoRetry { 1 } else { ATTEMPTS };
    let warehouse = Client::new(&config.warehouse, attempts);
    let books = store.clone();
    let worker =
        tokio::spawn(shipping::run(to_ship, move |parcel| ship(parcel, warehouse.clone(), books.clone())));
    // What an earlier run stored, and did not ship.
    for order in store.unshipped() {
        info!(order = order.id, "found unshipped");
        let _ = stored.send(order).await;
    }

    let routes = Router::new()
        .route("/orders", get(orders).post(place))
        .route("/orders/{id}", get(order))
        .route("/stock/{item}", get(left))
        .with_state(Shop { store, stored });
    info!("the shop is open");
    axum::serve(listener, routes).with_graceful_shutdown(stop).await?;
    // With the routes the last sender is gone, so the worker ends.
    if timeout(GRACE, worker).await.is_err() {
        warn!("the warehouse is too slow; the next start ships the rest");
    }
    Ok(())
}

/// Sends orders to the warehouse, and notes in the journal that they have arrived.
async fn ship(parcel: Vec<Order>, warehouse: Client, store: Arc<Store>) {
    let ids: Vec<_> = parcel.iter().map(|order| order.id).collect();
    match warehouse.post("/parcels", &parcel).await {
        Ok(_) => match store.shipped(&ids).await {
            Ok(()) => info!(orders = ?ids, "shipped"),
            Err(error) => error!(orders = ?ids, %error, "not noted as shipped"),
        },
        Err(error) => error!(orders = ?ids, error = reason(&error), "not shipped"),
    }
}

async fn place(State(shop): State<Shop>, Json(order): Json<Order>) -> Result<StatusCode, StatusCode> {
    info!(order = order.id, item = order.item, quantity = order.quantity, "accepted");
    // In a task of its own: axum drops a handler whose client has gone, and an order that is half stored must
    // not be dropped.
    let storing = tokio::spawn(async move { shop.place(order).await });
    storing.await.unwrap_or(Err(StatusCode::INTERNAL_SERVER_ERROR))
}

impl Shop {
    async fn place(self, order: Order) -> Result<StatusCode, StatusCode> {
        match self.store.place(order.clone()).await {
            Ok(Placed::Now { left }) => {
                info!(order = order.id, item = order.item, left, "acknowledged");
                let _ = self.stored.send(order).await;
                Ok(StatusCode::CREATED)
            }
            Ok(Placed::Before) => {
                info!(order = order.id, "acknowledged again");
                Ok(StatusCode::OK)
            }
            Ok(Placed::TooFewLeft) => Err(StatusCode::CONFLICT),
            Ok(Placed::UnknownItem) => Err(StatusCode::NOT_FOUND),
            Err(error) => {
                error!(order = order.id, %error, "not stored");
                Err(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }
}

async fn orders(State(shop): State<Shop>) -> Json<Vec<Order>> {
    Json(shop.store.orders())
}

async fn order(State(shop): State<Shop>, Path(id): Path<u64>) -> Result<Json<Order>, StatusCode> {
    shop.store.order(id).map(Json).ok_or(StatusCode::NOT_FOUND)
}

async fn left(State(shop): State<Shop>, Path(item): Path<String>) -> Result<Json<u32>, StatusCode> {
    shop.store.left(&item).map(Json).ok_or(StatusCode::NOT_FOUND)
}
