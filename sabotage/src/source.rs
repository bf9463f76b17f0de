//! Source text: tokens, named items, and edits at exactly one place.
//!
//! Reading order: `tokens`, `item`, `edit`, `weave`.

pub mod edit;
pub mod item;
pub mod tokens;
pub mod weave;
