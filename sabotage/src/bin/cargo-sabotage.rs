//! The binary `cargo-sabotage`: the same program, found by cargo as `cargo sabotage`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sabotage::cli::main()
}
