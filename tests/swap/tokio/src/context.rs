//! Which runtime and which task this is.
