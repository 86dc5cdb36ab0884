//! The stock and the orders, in memory, and the journal on the disk from which a restart makes them again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};
use tokio::fs::{self, File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tracing::info;

use crate::{Config, Order, Plant};

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// How many of the item are left now.
    Now {
        left: u32,
    },
    Before,
    TooFewLeft,
    UnknownItem,
}

/// A line of the journal.
#[derive(Serialize, Deserialize)]
enum Entry {
    Placed(Order),
    Shipped(Vec<u64>),
}

#[derive(Default)]
struct Books {
    left: HashMap<String, u32>,
    orders: BTreeMap<u64, Order>,
    shipped: HashSet<u64>,
}

pub struct Store {
    books: Mutex<Books>,
    /// One order at a time, from the look at the stock to its change.
    turn: tokio::sync::Mutex<()>,
    journal: Arc<Journal>,
    plant: Plant,
}

impl Store {
    /// Reads the journal, or begins one.
    pub async fn open(config: &Config) -> io::Result<Self> {
        let (journal, entries) = Journal::open(config).await?;
        let mut books = Books { left: config.stock.iter().cloned().collect(), ..Books::default() };
        for entry in entries {
            match entry {
                Entry::Placed(order) => {
                    if let Some(left) = books.left.get_mut(&order.item) {
                        *left = left.saturating_sub(order.quantity);
                    }
                    books.orders.insert(order.id, order);
                }
                Entry::Shipped(ids) => books.shipped.extend(ids),
            }
        }
        info!(orders = books.orders.len(), shipped = books.shipped.len(), "the journal is read");
        let turn = tokio::sync::Mutex::new(());
        Ok(Self { books: Mutex::new(books), turn, journal: Arc::new(journal), plant: config.plant })
    }

    /// Takes the order from the stock, and stores it.
    pub async fn place(&self, order: Order) -> io::Result<Placed> {
        let _turn = match self.plant {
            Plant::LostUpdate => None,
            _ => Some(self.turn.lock().await),
        };
        if self.order(order.id).is_some() {
            return Ok(Placed::Before);
        }
        let Some(left) = self.left(&order.item) else { return Ok(Placed::UnknownItem) };
        let Some(left) = left.checked_sub(order.quantity) else { return Ok(Placed::TooFewLeft) };
        let append = self.journal.clone().append(Entry::Placed(order.clone()));
        match self.plant {
            Plant::EarlyAck => drop(tokio::spawn(append)),
            _ => append.await?,
        }
        let mut books = self.books();
        books.left.insert(order.item.clone(), left);
        books.orders.insert(order.id, order);
        Ok(Placed::Now { left })
    }

    /// Notes that the warehouse has these orders.
    pub async fn shipped(&self, ids: &[u64]) -> io::Result<()> {
        self.journal.clone().append(Entry::Shipped(ids.to_vec())).await?;
        self.books().shipped.extend(ids);
        Ok(())
    }

    pub fn left(&self, item: &str) -> Option<u32> {
        self.books().left.get(item).copied()
    }

    pub fn order(&self, id: u64) -> Option<Order> {
        self.books().orders.get(&id).cloned()
    }

    pub fn orders(&self) -> Vec<Order> {
        self.books().orders.values().cloned().collect()
    }

    pub fn unshipped(&self) -> Vec<Order> {
        let books = self.books();
        books.orders.values().filter(|order| !books.shipped.contains(&order.id)).cloned().collect()
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }
}

/// A file with an [`Entry`] in each line. `None` after an error: what is in the file then is not known.
struct Journal(tokio::sync::Mutex<Option<File>>);

impl Journal {
    async fn open(config: &Config) -> io::Result<(Self, Vec<Entry>)> {
        fs::create_dir_all(&config.folder).await?;
        let path = config.folder.join("journal");
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).await?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).await?;
        // A crash may have left a part of the last line, whose order was not acknowledged.
        let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        file.set_len(whole as u64).await?;
        let entries =
            serde_json::Deserializer::from_slice(&text[..whole]).into_iter().collect::<Result<_, _>>()?;
        Ok((Self(tokio::sync::Mutex::new(Some(file))), entries))
    }

    /// Returns when the entry is on the disk.
    async fn append(self: Arc<Self>, entry: Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        let mut journal = self.0.lock().await;
        let mut file = journal.take().ok_or_else(|| io::Error::other("the journal is broken"))?;
        file.write_all(&line).await?;
        file.sync_data().await?;
        *journal = Some(file);
        if let Entry::Placed(order) = entry {
            info!(order = order.id, "stored");
        }
        Ok(())
    }
}
