//! The stock and the orders, in memory, and the journal on the disk from which a restart makes them again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, MutexGuard};

use serde::{Deserialize, Serialize};
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Mutex;
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
    books: std::sync::Mutex<Books>,
    /// One order at a time, from the look at the stock to its change.
    turn: Mutex<()>,
    journal: Arc<Journal>,
    plant: Plant,
}

impl Store {
    /// Reads the journal, or begins one.
    pub async fn open(config: &Config) -> io::Result<Self> {
        let (journal, entries) = Journal::open(&config.folder).await?;
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
        let books = std::sync::Mutex::new(books);
        Ok(Self { books, turn: Mutex::new(()), journal: Arc::new(journal), plant: config.plant })
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
        self.journal.write(&Entry::Placed(order.clone())).await?;
        let (journal, id) = (self.journal.clone(), order.id);
        let sync = async move { journal.sync().await.inspect(|()| info!(order = id, "stored")) };
        match self.plant {
            Plant::EarlyAck => drop(tokio::spawn(sync)),
            _ => sync.await?,
        }
        let mut books = self.books();
        books.left.insert(order.item.clone(), left);
        books.orders.insert(order.id, order);
        Ok(Placed::Now { left })
    }

    /// Notes that the warehouse has these orders.
    pub async fn shipped(&self, ids: &[u64]) -> io::Result<()> {
        self.journal.write(&Entry::Shipped(ids.to_vec())).await?;
        self.journal.sync().await?;
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
struct Journal(Mutex<Option<File>>);

impl Journal {
    async fn open(folder: &Path) -> io::Result<(Self, Vec<Entry>)> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(folder.join("journal")).await?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).await?;
        // What was not synced before a crash may be torn, and is lost: nothing after it was synced, either.
        let (mut entries, mut whole) = (Vec::new(), 0);
        for line in text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")) {
            let Ok(entry) = serde_json::from_slice(line) else { break };
            entries.push(entry);
            whole += line.len();
        }
        file.set_len(whole as u64).await?;
        file.sync_all().await?;
        // The name of a new file is in its folder.
        File::open(folder).await?.sync_all().await?;
        Ok((Self(Mutex::new(Some(file))), entries))
    }

    /// Writes the entry, which a crash may still lose.
    async fn write(&self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let mut journal = self.0.lock().await;
        let mut file = journal.take().ok_or_else(broken)?;
        file.write_all(&line).await?;
        file.flush().await?;
        *journal = Some(file);
        Ok(())
    }

    /// Returns when all that was written is on the disk.
    async fn sync(&self) -> io::Result<()> {
        let mut journal = self.0.lock().await;
        let file = journal.take().ok_or_else(broken)?;
        file.sync_data().await?;
        *journal = Some(file);
        Ok(())
    }
}

fn broken() -> io::Error {
    io::Error::other("the journal is broken since an earlier error")
}
