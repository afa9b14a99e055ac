//! Makes the generated files.
fn main() {}
