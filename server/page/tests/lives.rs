//! A worker's life on the page beside what it counts: what a sibling leaves to it, and how it leaves.
//!
//! Owns what one thread can show; who dies where is in `death.rs`.

#![cfg(not(loom))]

use m0_page::{Page, WorkerState, words, words_needed};

#[m0_spec::row(E92)]
#[test]
fn a_connection_that_a_sibling_leaves_is_taken_once_and_by_its_worker_alone() {
    let memory = words(words_needed(2));
    let page = Page::format(&memory, 2, 1);
    let (one, other) = (page.share(0), page.share(1));
    for share in [one, other] {
        share.begin(10 + share.slot() as u32);
        share.serving();
    }
    one.mark_starved(true);
    assert!(!one.take_handed(), "nobody left anything yet");
    other.hand_one();
    assert!(!one.take_handed(), "it was left to the other one");
    one.hand_one();
    one.hand_one();
    assert!(one.take_handed());
    assert!(!one.take_handed(), "once");
    assert!(one.starved(), "the other flags stay");
    assert!(other.take_handed());
    assert_eq!(
        page.live().collect::<Vec<_>>(),
        [1],
        "who was left one is as able to take as before"
    );
}

#[m0_spec::row(F16)]
#[test]
fn a_worker_that_leaves_in_good_order_leaves_its_slot_to_a_successor() {
    let memory = words(words_needed(2));
    let page = Page::format(&memory, 2, 1);
    for slot in 0..2 {
        let share = page.share(slot);
        share.begin(20 + slot as u32);
        share.serving();
        share.opened();
        share.stream_opened();
        share.mark_busy(true);
    }
    let before = page.snapshot();
    page.share(0).draining();
    page.share(0).leave();
    let mut expected = before;
    let left = &mut expected.shares[0];
    (left.state, left.pid, left.busy) = (WorkerState::Absent, 0, false);
    (left.held, left.streams) = (0, 0);
    assert_eq!(page.snapshot(), expected, "the sibling's words too");
    page.share(0).begin(30);
    assert_eq!(page.share(0).pid(), 30);
}
