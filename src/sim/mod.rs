//! The simulation. For the time being, it is the network, in unit tests only.

mod net;
