//! The program `trace`.
//!
//! Owns nothing but the way from a command line to an exit code.

use std::process::ExitCode;

use clap::Parser as _;
use traceability::cli::{Cli, run};

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            anstream::eprintln!("trace: {error:#}");
            ExitCode::from(2)
        }
    }
}
