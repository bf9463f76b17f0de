//! The outbox against a model that is one flat list of bytes.

use bytes::Bytes;
use m0_streams::{Outbox, OverBudget};
use proptest::prelude::*;

const BUDGET: usize = 100;

#[derive(Debug, Clone)]
enum Step {
    Push(usize),
    PushRest(usize, usize),
    Notice(usize),
    DropUnsent,
    Advance(proptest::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..70_usize).prop_map(Step::Push),
        1 => (60..300_usize).prop_map(Step::Push),
        1 => (1..150_usize, 0..150_usize).prop_map(|(length, sent)| Step::PushRest(length, sent.min(length))),
        1 => (1..20_usize).prop_map(Step::Notice),
        1 => Just(Step::DropUnsent),
        4 => any::<proptest::sample::Index>().prop_map(Step::Advance),
    ];
    proptest::collection::vec(step, 0..40)
}

/// Chunks as they were pushed, front first, and what of the front was sent.
#[derive(Default)]
struct Model {
    chunks: Vec<Vec<u8>>,
    sent: usize,
    made: u8,
}

impl Model {
    fn chunk(&mut self, length: usize) -> Vec<u8> {
        self.made = self.made.wrapping_add(1);
        vec![self.made; length]
    }

    fn waiting(&self) -> Vec<u8> {
        self.chunks.concat()[self.sent..].to_vec()
    }

    fn push(&mut self, chunk: Vec<u8>, sent: usize) {
        if sent < chunk.len() {
            self.chunks.push(chunk);
            self.sent += sent;
        }
    }

    fn advance(&mut self, count: usize) {
        self.sent += count;
        while let Some(front) = self.chunks.first() {
            if self.sent < front.len() {
                return;
            }
            self.sent -= front.len();
            self.chunks.remove(0);
        }
    }
}

proptest! {
    #[m0_spec::row(S7, S24)]
    #[test]
    fn it_holds_what_the_model_holds(steps in steps()) {
        let mut outbox = Outbox::new();
        let mut model = Model::default();
        for step in steps {
            let waiting = model.waiting().len();
            match step {
                Step::Push(length) => {
                    let chunk = model.chunk(length);
                    let fits = waiting == 0 || waiting + length <= BUDGET;
                    let expected = if fits { Ok(()) } else { Err(OverBudget { waiting, budget: BUDGET }) };
                    prop_assert_eq!(outbox.push(Bytes::from(chunk.clone()), BUDGET), expected);
                    if fits {
                        model.push(chunk, 0);
                    }
                }
                Step::PushRest(length, sent) => {
                    // Only an empty queue can take the rest of a chunk.
                    let sent = if waiting == 0 { sent } else { continue };
                    let chunk = model.chunk(length);
                    prop_assert_eq!(outbox.push_rest(Bytes::from(chunk.clone()), sent, BUDGET), Ok(()));
                    model.push(chunk, sent);
                }
                Step::Notice(length) => {
                    let chunk = model.chunk(length);
                    outbox.push_notice(Bytes::from(chunk.clone()));
                    model.push(chunk, 0);
                }
                Step::DropUnsent => {
                    outbox.drop_unsent();
                    model.chunks.truncate(usize::from(model.sent > 0));
                }
                Step::Advance(index) => {
                    let count = index.index(waiting + 1);
                    outbox.advance(count);
                    model.advance(count);
                }
            }
            let waiting = model.waiting();
            prop_assert_eq!(outbox.len_bytes(), waiting.len());
            prop_assert_eq!(outbox.slices().collect::<Vec<_>>().concat(), waiting.clone());
            prop_assert_eq!(outbox.is_empty(), waiting.is_empty());
            prop_assert_eq!(outbox.capacity() == 0, waiting.is_empty());
            let front = model.chunks.first().map(|front| &front[model.sent..]);
            prop_assert_eq!(outbox.front(), front);
        }
    }
}

#[m0_spec::row(S7)]
#[test]
fn the_budget_is_exact() {
    let mut outbox = Outbox::new();
    assert_eq!(outbox.push(Bytes::from_static(b"12345"), 10), Ok(()));
    assert_eq!(outbox.push(Bytes::from_static(b"67890"), 10), Ok(()));
    assert_eq!(
        outbox.push(Bytes::from_static(b"1"), 10),
        Err(OverBudget {
            waiting: 10,
            budget: 10
        })
    );
    outbox.advance(1);
    assert_eq!(outbox.push(Bytes::from_static(b"1"), 10), Ok(()));
}

#[m0_spec::row(S7)]
#[test]
fn one_chunk_above_the_budget_is_taken_by_an_empty_queue_only() {
    let mut outbox = Outbox::new();
    assert_eq!(outbox.push(Bytes::from_static(b"1234567890"), 5), Ok(()));
    assert_eq!(
        outbox.push(Bytes::from_static(b"1"), 5),
        Err(OverBudget {
            waiting: 10,
            budget: 5
        })
    );
}

#[m0_spec::row(S24)]
#[test]
fn a_chunk_in_flight_is_sent_to_its_end() {
    let mut outbox = Outbox::new();
    outbox
        .push(Bytes::from_static(b"in flight"), BUDGET)
        .expect("empty");
    outbox
        .push(Bytes::from_static(b"unsent"), BUDGET)
        .expect("room");
    outbox.advance(2);
    outbox.drop_unsent();
    outbox.push_notice(Bytes::from_static(b"!"));
    assert_eq!(outbox.slices().collect::<Vec<_>>().concat(), b" flight!");
}
