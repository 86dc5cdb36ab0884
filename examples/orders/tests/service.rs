//! The service on real sockets and files, and its worker under a paused clock: on tokio and on paceline.

use std::env;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use orders::client::Client;
use orders::warehouse::{self, Shelves};
use orders::{Config, Order, Plant, serve, shipping};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

fn order(id: u64, item: &str, quantity: u32) -> Order {
    Order { id, item: item.to_owned(), quantity }
}

/// A shop with ten pieces of tea, and its warehouse.
struct Shop {
    folder: PathBuf,
    shelves: Shelves,
    customer: Client,
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Shop {
    async fn open(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("orders-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let shelves = Shelves::default();
        let warehouse = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = Config {
            folder: folder.clone(),
            stock: vec![("tea".to_owned(), 10)],
            warehouse: format!("http://{}", warehouse.local_addr().unwrap()),
            plant: Plant::None,
        };
        let routes = warehouse::routes(shelves.clone());
        tokio::spawn(async { axum::serve(warehouse, routes).await });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let customer = Client::new(&format!("http://{}", listener.local_addr().unwrap()), 3);
        let (stop, stopped) = oneshot::channel();
        let stopped = async { drop(stopped.await) };
        let served = tokio::spawn(async { serve(listener, config, stopped).await.unwrap() });
        Self { folder, shelves, customer, stop, served }
    }

    async fn close(self) -> (PathBuf, Shelves) {
        self.stop.send(()).unwrap();
        // The shop waits for the connections of its clients.
        drop(self.customer);
        timeout(Duration::from_secs(20), self.served).await.expect("the shop stops").unwrap();
        (self.folder, self.shelves)
    }
}

#[tokio::test]
async fn an_order_counts_once() {
    let shop = Shop::open("once").await;
    let place = async |order: Order| shop.customer.post("/orders", &order).await.unwrap();
    assert_eq!(place(order(1, "tea", 3)).await, StatusCode::CREATED);
    assert_eq!(place(order(1, "tea", 3)).await, StatusCode::OK);
    assert_eq!(place(order(2, "tea", 8)).await, StatusCode::CONFLICT);
    assert_eq!(place(order(3, "gold", 1)).await, StatusCode::NOT_FOUND);
    assert_eq!(shop.customer.get("/stock/tea").await.unwrap(), Some(7));
    assert_eq!(shop.customer.get("/orders/1").await.unwrap(), Some(order(1, "tea", 3)));
    assert_eq!(shop.customer.get::<Order>("/orders/2").await.unwrap(), None);
    let (folder, _) = shop.close().await;
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_stored_is_shipped_before_the_end_and_there_after_it() {
    let shop = Shop::open("stop").await;
    for id in 0..5 {
        assert_eq!(shop.customer.post("/orders", &order(id, "tea", 1)).await.unwrap(), StatusCode::CREATED);
    }
    let (_, shelves) = shop.close().await;
    assert!((0..5).all(|id| shelves.has(id)));

    let again = Shop::open("stop").await;
    assert_eq!(again.customer.get("/stock/tea").await.unwrap(), Some(5));
    let (folder, shelves) = again.close().await;
    assert!(!shelves.has(0), "it is in the journal that the orders are shipped");
    std::fs::remove_dir_all(folder).unwrap();
}

/// An order comes each 35 ms, and a parcel is 250 ms on its way.
#[tokio::test(start_paused = true)]
async fn orders_are_shipped_in_parcels() {
    let (sender, orders) = mpsc::channel(64);
    let begin = Instant::now();
    let shipped = Arc::new(Mutex::new(Vec::new()));
    let parcels = shipped.clone();
    let worker = tokio::spawn(shipping::run(orders, move |parcel| {
        let parcels = parcels.clone();
        async move {
            sleep(Duration::from_millis(250)).await;
            parcels.lock().unwrap().push((begin.elapsed().as_millis(), parcel.len()));
        }
    }));
    for id in 0..12 {
        sleep(Duration::from_millis(35)).await;
        sender.send(order(id, "tea", 1)).await.unwrap();
    }
    drop(sender);
    worker.await.unwrap();
    // Two at once, and the others wait for room.
    assert_eq!(*shipped.lock().unwrap(), [(350, 2), (450, 3), (600, 3), (700, 3), (850, 1)]);
}
