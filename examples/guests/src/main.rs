//! Crates that were written for tokio, in paceline's tasks. Each module uses one crate as its users do, and
//! tests the result:
//!
//! ```sh
//! cargo run -p example-guests
//! cargo test -p example-guests
//! ```
//!
//! With the feature `tokio` of paceline, code that needs tokio's runtime finds one. If a crate takes a stream
//! or an executor from its user, as `redis` and `tonic` do, it gets paceline's, and tokio's threads have no
//! part in it.

#[path = "../../common/cli.rs"]
mod cli;
mod redis;
mod reqwest;
mod sqlx;
mod tonic;
mod tower;

use std::process::ExitCode;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

type Run = fn() -> Outcome;

/// The programs to run, and their names.
const ALL: [(&str, Run); 7] = [
    ("reqwest: a client", reqwest::run),
    ("tonic: a server and a client, as they are", tonic::as_they_are),
    ("tonic: the same on paceline's sockets, in paceline's tasks", tonic::on_our_sockets),
    ("sqlx: sqlite in memory", sqlx::run),
    ("redis: a client, as it is", redis::as_it_is),
    ("redis: the same on paceline's socket", redis::on_our_socket),
    ("tower: layers with timers and tasks of tokio's", tower::run),
];

fn main() -> ExitCode {
    cli::run(include_str!("main.rs"), |args| {
        cli::none(args)?;
        for (name, run) in ALL {
            run()?;
            println!("{name}: works");
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    macro_rules! rows {
        ($($name:ident: $run:expr;)*) => {$(
            #[test]
            fn $name() {
                $run().unwrap();
            }
        )*};
    }

    rows! {
        reqwest: crate::reqwest::run;
        tonic: crate::tonic::as_they_are;
        tonic_on_our_sockets: crate::tonic::on_our_sockets;
        sqlx: crate::sqlx::run;
        redis: crate::redis::as_it_is;
        redis_on_our_socket: crate::redis::on_our_socket;
        tower: crate::tower::run;
    }
}
