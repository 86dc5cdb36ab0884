//! Programs that know tokio and nothing of paceline; they are in `tests`.
