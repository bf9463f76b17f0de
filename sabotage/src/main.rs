//! The binary `sabotage`. Owns nothing: the library does the work.

use std::process::ExitCode;

fn main() -> ExitCode {
    sabotage::cli::main()
}
