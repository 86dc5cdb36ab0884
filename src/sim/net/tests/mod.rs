//! Tests of the kernel, by what they look at.

mod datagrams;
mod differential;
mod errors;
mod faults;
mod local;
mod names;
mod random;
mod speed;
mod streams;
mod support;

use super::Kernel;

#[test]
fn a_kernel_can_move_to_another_thread() {
    fn assert_send<T: Send>() {}
    assert_send::<Kernel>();
}
