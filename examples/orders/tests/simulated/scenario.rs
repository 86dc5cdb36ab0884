//! Three nodes: a shop, its warehouse, and two customers. A partition, and a crash of the shop or the
//! warehouse, come while the customers order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use orders::client::Client;
use orders::warehouse::{self, Shelves};
use orders::{Config, Order, Plant, serve};
use paceline::sim::{Rng, Sim};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::notes;

const ITEMS: [&str; 2] = ["tea", "rice"];
const STOCK: u32 = 1000;
/// Of each of the two customers.
const ORDERS: u64 = 6;

/// Runs the three nodes, and checks what the shop has promised.
pub(crate) fn run(sim: &mut Sim, plant: Plant) {
    let _notes = notes::of_events();
    let shelves = Shelves::default();
    nodes(sim, &shelves, plant);
    faults(sim);
    let rngs = [sim.rng(), sim.rng()];
    let customers = sim.client("customers", async move {
        // More attempts than the faults last.
        let shop = Client::new("http://shop", 100);
        let promises = Promises { shop, acknowledged: Arc::default() };
        let mut customers = JoinSet::new();
        for (first, rng) in [100, 200].into_iter().zip(rngs) {
            customers.spawn(customer(promises.clone(), first, rng));
        }
        customers.join_all().await;
        promises.check_all(&shelves).await;
    });
    sim.block_on(timeout(Duration::from_secs(300), customers)).expect("the customers come to an end");
}

fn nodes(sim: &mut Sim, shelves: &Shelves, plant: Plant) {
    sim.node("shop", move || {
        let config = Config {
            folder: "/".into(),
            stock: ITEMS.map(|item| (item.to_owned(), STOCK)).into(),
            warehouse: "http://warehouse".to_owned(),
            plant,
        };
        async {
            let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
            serve(listener, config, std::future::pending()).await.unwrap();
        }
    });
    // What is on its shelves survives a crash.
    let shelves = shelves.clone();
    sim.node("warehouse", move || {
        let routes = warehouse::routes(shelves.clone());
        async {
            let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
            axum::serve(listener, routes).await.unwrap();
        }
    });
}

/// Of 200 packets one is lost. One partition takes 2 s. Each of the servers crashes once, and starts again.
fn faults(sim: &mut Sim) {
    let mut rng = sim.rng();
    let mut within = move |least, most| Duration::from_millis(least + rng.below(most - least));
    let network = sim.network();
    network.set_loss(0.005);
    network.set_latency(Duration::from_millis(1)..=Duration::from_millis(3));

    let begin = within(0, 2000);
    let customers_side = within(0, 2) < Duration::from_millis(1);
    let other = if customers_side { "customers" } else { "warehouse" };
    let cuts = network.clone();
    sim.at(begin, move || cuts.partition("shop", other));
    let repairs = network.clone();
    sim.at(begin + Duration::from_secs(2), move || repairs.repair("shop", other));

    for node in ["shop", "warehouse"] {
        let (begin, length) = (within(100, 2100), within(200, 1000));
        let crashes = network.clone();
        sim.at(begin, move || crashes.crash(node));
        let restarts = network.clone();
        sim.at(begin + length, move || restarts.restart(node));
    }
}

/// Orders now and then, and looks whether the shop still knows.
async fn customer(promises: Promises, first: u64, mut rng: Rng) {
    for id in first..first + ORDERS {
        sleep(Duration::from_millis(rng.below(400))).await;
        let item = ITEMS[rng.below(2) as usize];
        let order = Order { id, item: item.to_owned(), quantity: 1 + rng.below(3) as u32 };
        let status = promises.shop.post("/orders", &order).await.expect("the shop is away for seconds only");
        assert!(status.is_success(), "order {id} is refused: {status}");
        promises.acknowledged.lock().unwrap().push(order);
        promises.check_orders().await;
        promises.check_stock(item).await;
    }
}

/// What the shop has acknowledged is stored, is taken from the stock once, and arrives at the warehouse.
#[derive(Clone)]
struct Promises {
    shop: Client,
    acknowledged: Arc<Mutex<Vec<Order>>>,
}

impl Promises {
    async fn check_orders(&self) {
        let acknowledged = self.all();
        let stored: Vec<Order> = self.shop.get("/orders").await.unwrap().expect("there is a list");
        for order in acknowledged {
            assert!(stored.contains(&order), "order {} was acknowledged, and is not in the shop", order.id);
        }
    }

    /// Returns how many are left, and how many were sold before the question. Orders in progress may have
    /// been taken from the stock already.
    async fn check_stock(&self, item: &str) -> (u32, u32) {
        let sold = self.all().iter().filter(|order| order.item == item).map(|order| order.quantity).sum();
        let left: u32 = self.shop.get(&format!("/stock/{item}")).await.unwrap().expect("it is known");
        assert!(left + sold <= STOCK, "{left} {item} are left of {STOCK}, and {sold} were sold");
        (left, sold)
    }

    /// When no order is in progress.
    async fn check_all(&self, shelves: &Shelves) {
        self.check_orders().await;
        for item in ITEMS {
            let (left, sold) = self.check_stock(item).await;
            assert!(left + sold == STOCK, "{left} {item} are left of {STOCK}, and only {sold} were sold");
        }
        let all = self.all();
        let missing = || all.iter().find(|order| !shelves.has(order.id));
        // Longer than all retries.
        for _ in 0..30 {
            if missing().is_some() {
                sleep(Duration::from_secs(1)).await;
            }
        }
        if let Some(Order { id, .. }) = missing() {
            panic!("order {id} was acknowledged, and is not at the warehouse after 30 s");
        }
    }

    fn all(&self) -> Vec<Order> {
        self.acknowledged.lock().unwrap().clone()
    }
}
