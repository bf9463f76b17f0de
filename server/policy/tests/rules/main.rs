//! The rules of supervision, one test a sentence, on hand-written events.
//!
//! Each file holds the rules of one idea. Properties over whole worlds stand in `properties.rs`,
//! the full table of states and events in `table.rs`.

mod bounds;
mod desk;
mod fork;
mod protocol;
mod refuse;
mod respawn;
mod stand_in;
mod stop;
