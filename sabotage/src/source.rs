//! Source text: tokens, named items, and edits at exactly one place.
//!
//! Reading order: `tokens`, `item`, `edit`.

pub mod edit;
pub mod item;
pub mod tokens;
