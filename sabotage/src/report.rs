//! What a run came to, for people and for programs.
//!
//! Reading order: `terminal`, `json`, `junit`, `markdown`. All are made from the same records, so they agree.

pub mod json;
pub mod junit;
pub mod markdown;
pub mod terminal;
