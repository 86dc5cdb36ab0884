//! `orders ADDRESS FOLDER WAREHOUSE` serves a shop at that address until Ctrl-C, with its journal in the
//! folder. Without the last argument, the URL of a warehouse, one is at a free port of 127.0.0.1.

use std::env;
use std::error::Error;

use orders::warehouse::{self, Shelves};
use orders::{Config, Plant, serve};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().init();
    let mut args = env::args().skip(1);
    let listener = TcpListener::bind(args.next().as_deref().unwrap_or("127.0.0.1:3000")).await?;
    let folder = args.next().unwrap_or_else(|| ".".to_owned()).into();
    let warehouse = match args.next() {
        Some(url) => url,
        None => {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let url = format!("http://{}", listener.local_addr()?);
            tokio::spawn(async { axum::serve(listener, warehouse::routes(Shelves::default())).await });
            url
        }
    };
    println!("a shop at http://{}, until Ctrl-C", listener.local_addr()?);
    let stock = vec![("tea".to_owned(), 1000), ("rice".to_owned(), 1000)];
    let stop = async { tokio::signal::ctrl_c().await.expect("signals can be caught") };
    serve(listener, Config { folder, stock, warehouse, plant: Plant::None }, stop).await?;
    Ok(())
}
