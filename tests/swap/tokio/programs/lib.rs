//! Programs written for tokio, without any code for paceline; they are in `tests`.
