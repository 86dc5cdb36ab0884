//! sqlx: its tokio flavour, over sqlite.

use std::time::Duration;

use paceline::{block_on, spawn};
use sqlx::sqlite::SqlitePoolOptions;

use crate::Outcome;

const TASKS: i64 = 20;

pub(crate) fn run() -> Outcome {
    block_on(async {
        // Each connection to a database in memory has its own database, so there may be only one.
        let options = SqlitePoolOptions::new().max_connections(1).acquire_timeout(Duration::from_secs(30));
        let pool = options.connect("sqlite::memory:").await?;
        sqlx::query("CREATE TABLE guests (number INTEGER, name TEXT)").execute(&pool).await?;

        // The tasks take turns at the connection, which the pool passes on.
        let inserts = |number| {
            let pool = pool.clone();
            spawn(async move {
                let insert = sqlx::query("INSERT INTO guests VALUES (?, ?)").bind(number);
                insert.bind(format!("guest {number}")).execute(&pool).await
            })
        };
        for task in (0..TASKS).map(inserts).collect::<Vec<_>>() {
            assert_eq!(task.await?.rows_affected(), 1);
        }

        let mut changes = pool.begin().await?;
        sqlx::query("DELETE FROM guests").execute(&mut *changes).await?;
        changes.rollback().await?;

        let all = sqlx::query_as("SELECT count(*), sum(number), max(name) FROM guests");
        let all: (i64, i64, String) = all.fetch_one(&pool).await?;
        assert_eq!(all, (TASKS, TASKS * (TASKS - 1) / 2, "guest 9".to_owned()));
        pool.close().await;
        Ok(())
    })
}
