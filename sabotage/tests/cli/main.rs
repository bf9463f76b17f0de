//! The tool as a user runs it: on repositories that each test makes, by the binary that was built.
//!
//! Reading order: `fixture` (repositories), then one file for each part of the contract.

mod arms;
mod beside;
mod broken;
mod cache;
mod caught;
mod drafts;
mod ends;
mod files;
mod fixture;
mod gates;
mod killed;
mod prove;
mod retell;
mod rust;
mod schemas;
mod traps;
mod valid;
mod warm;
mod words;
