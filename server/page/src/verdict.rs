//! Who takes the next connection.
//!
//! Owns the choice, which only reads the page. Knows nothing of listeners and doorbells.
//!
//! Invariant: a slot that is named is live (Serving, not busy, not starved, not stopped) at the
//! moment it was read, and is never the asker's own.

use crate::Page;
use crate::layout::line;

/// What a worker that was woken for a connection should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accept it.
    Take,
    /// Leave it in the kernel's queue for the worker in slot `to`, which holds less: ring that
    /// worker's doorbell, and accept after all when nobody took it within the bound.
    Defer {
        /// The slot to ring.
        to: usize,
    },
}

impl<'a> Page<'a> {
    /// Whether the worker in `slot` takes the next connection: it defers when it holds more than the
    /// least-loaded live sibling. Among equal siblings the choice turns with each deferral.
    pub fn verdict(&self, slot: usize) -> Verdict {
        let held = self.share(slot).held();
        match self.least_loaded_sibling(slot) {
            Some((to, less)) if less < held => Verdict::Defer { to },
            _ => Verdict::Take,
        }
    }

    /// The live sibling to ring, whatever it holds, when the worker in `slot` cannot take a
    /// connection itself; `None` when no sibling is live.
    pub fn nudge_target(&self, slot: usize) -> Option<usize> {
        self.least_loaded_sibling(slot).map(|(to, _)| to)
    }

    /// The slots of live workers, in order.
    pub fn live(&self) -> impl Iterator<Item = usize> + use<'a> {
        self.shares()
            .filter(|share| share.load_if_live().is_some())
            .map(|share| share.slot())
    }

    fn least_loaded_sibling(&self, slot: usize) -> Option<(usize, u64)> {
        // One pass: each share is read once, so the slots in the set were live and equal when read.
        let mut least = u64::MAX;
        let mut equal: u64 = 0;
        for share in self.shares().filter(|share| share.slot() != slot) {
            if let Some(held) = share.load_if_live() {
                if held < least {
                    least = held;
                    equal = 0;
                }
                if held == least {
                    equal |= 1 << share.slot();
                }
            }
        }
        if equal == 0 {
            return None;
        }
        // Turned by the asker's own deferrals, and by its slot so that two askers part ways.
        let turn = self
            .share(slot)
            .figure(line::DEFERRALS)
            .wrapping_add(slot as u64);
        Some((nth_member(equal, turn), least))
    }
}

/// Member number `turn` (modulo their count) of the set of slots `set`, which is not empty.
fn nth_member(mut set: u64, turn: u64) -> usize {
    for _ in 0..turn % u64::from(set.count_ones()) {
        set &= set - 1;
    }
    set.trailing_zeros() as usize
}
