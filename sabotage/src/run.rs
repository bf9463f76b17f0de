//! Running commands: in a jail, with a bound, their output in files.
//!
//! Reading order: `process` (the tool's side), `jail` (the side that becomes the command), `make`
//! (a gate's build), `gate` (its commands), `outcome` (what they came to), `build` (cargo's messages).

pub mod build;
pub mod gate;
pub mod interrupt;
pub mod jail;
pub mod make;
pub mod outcome;
pub mod process;
