//! Every report of one made-up run that has each verdict once: what is printed is held as it is.
//!
//! Reading order: `sample` (the run), `forms` (snapshots), `safe` (what a hostile text cannot do).

mod forms;
mod safe;
mod sample;
