//! The module without the feature `net`: only the trait, as in tokio.

mod addr;

pub use addr::ToSocketAddrs;
