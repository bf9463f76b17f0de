//! The front door of the repository: `cargo xtask COMMAND`.
//!
//! Owns the commands and their flags. Refuses to do any work itself: each command is a file.

mod spec;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Builds, tests and checks this repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check the rows under spec/ and write what is generated from them.
    Spec {
        /// Write nothing; fail when a generated file is stale.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    match Cli::parse().command {
        Command::Spec { check } => spec::run(&root, check),
    }
}
