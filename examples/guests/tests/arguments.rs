//! The help and the errors of the program.
#![cfg(unix)]

#[test]
fn it_explains_itself_and_what_it_cannot_use_it_refuses() {
    example_testing::explains_itself(env!("CARGO_BIN_EXE_example-guests"), &[]);
}
