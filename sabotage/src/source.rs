//! Source text: tokens, named items, and edits at exactly one place.
//!
//! Reading order: `tokens`, `item`, `edit`, `patch`, `weave`.

pub mod edit;
pub mod item;
pub mod patch;
pub mod tokens;
pub mod weave;
