//! Judges a table of heads that must be refused.
//!
//! Each is fed whole, one byte at a time and cut once at every place, alone and between two right
//! requests; nothing of a refused head may come out.

use m0_wire::{Limits, Place};

/// A head that is refused.
pub(crate) struct Bad {
    pub(crate) name: &'static str,
    /// Section of RFC 9112 unless it says otherwise.
    section: &'static str,
    status: u16,
    bytes: &'static [u8],
}

pub(crate) const fn bad(
    name: &'static str,
    section: &'static str,
    status: u16,
    bytes: &'static [u8],
) -> Bad {
    Bad {
        name,
        section,
        status,
        bytes,
    }
}

/// A right request, to stand before the refused ones.
const BEFORE: &[u8] = b"POST /before HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";

/// A right request, to stand after: whatever the refused head was, this must not come out.
const AFTER: &[u8] = b"GET /after HTTP/1.1\r\nHost: a\r\n\r\n";

pub(crate) fn check(limits: Limits, table: &[Bad]) {
    assert!(!table.is_empty());
    for case in table {
        let name = format!("{} ({})", case.name, case.section);
        let alone = super::outcome(limits, case.bytes);
        let refusal = alone.refusal.unwrap_or_else(|| panic!("{name}: passed"));
        assert_eq!(
            (refusal.status, refusal.place, refusal.after_requests),
            (case.status, Place::Head, 0),
            "{name}: {}",
            refusal.reason
        );
        assert_eq!(
            alone.released, b"",
            "{name}: something of the head came out"
        );

        let bytes = [BEFORE, case.bytes, AFTER].concat();
        let between = super::outcome(limits, &bytes);
        let second = between
            .refusal
            .unwrap_or_else(|| panic!("{name}: passed as the second"));
        assert_eq!(
            (second.status, second.reason, second.after_requests),
            (case.status, refusal.reason, 1),
            "{name}"
        );
        assert_eq!(between.released, BEFORE, "{name}: as the second");
    }
}

pub(crate) fn check_default(table: &[Bad]) {
    check(Limits::default(), table);
}
