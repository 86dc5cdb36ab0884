//! A compile error for a program in which some crates use the real tokio. The types of the two differ, and
//! the real one's sockets need its own runtime. Without this error, the program would fail to compile with a
//! message that does not name the missing line, or panic when it opens a socket.
//!
//! This package never asks the real tokio for `net`, so its sockets exist only if another crate asks.

/// Stands for the type of that name if the real tokio has none.
#[allow(dead_code, reason = "hidden by the real one, if there is one")]
struct TcpListener;

/// Names in a block come before those around it, and names in a glob import may be missing.
const HAS_SOCKETS: bool = {
    #[allow(unused_imports, reason = "without `net` nothing of it is used")]
    use real::net::*;
    size_of::<TcpListener>() > 0
};

const _: () = assert!(
    !HAS_SOCKETS,
    "another crate of this program uses the real tokio. All lines of Cargo.toml that name tokio need the same git and tag, or the same path: \
     `tokio = {{ git = \"..\", tag = \"..\", features = [..] }}` in [dependencies] and its siblings (of each member of a workspace), and \
     `tokio = {{ git = \"..\", tag = \"..\" }}` in [patch.crates-io]. Then run `cargo update tokio`; `cargo tree -i tokio@1.54` \
     lists the crates. The feature `beside-tokio` of this package allows both."
);
