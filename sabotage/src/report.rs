//! What a run came to, for people and for programs.
//!
//! Reading order: `told` (the run as a value), then one file a form. All are made from that value, so they agree.

pub mod elements;
pub mod github;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod merge;
pub mod sarif;
pub mod terminal;
pub mod told;
