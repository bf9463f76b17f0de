//! The encoder of events as the target of a fuzzer: text in, one event out, as an independent reader sees it.
//!
//! Owns what holds for an event whatever its text is, and how text is made. The seeds are the files of `corpus/`, each
//! named for what it is. Refuses to know how an event is written: `reader` takes it apart.

mod reader;

use std::path::Path;
use std::sync::LazyLock;

use m0_framelog::FrameId;
use m0_spec::row;
use m0_streams::{Chunk, Frame, chunk};
use proptest::prelude::*;
use proptest::sample::Index;
use reader::{Event, interpret, unchunk};

static SEEDS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let files = std::fs::read_dir(&dir).unwrap_or_else(|why| panic!("{}: {why}", dir.display()));
    let mut seeds: Vec<_> = files
        .map(|file| {
            let path = file.expect("an entry").path();
            let name = path.file_name().expect("a file").to_string_lossy();
            let text = std::fs::read_to_string(&path).expect("a text");
            (name.into_owned(), text)
        })
        .collect();
    seeds.sort();
    seeds
});

/// Seeds there are, at least.
const LEAST: usize = 27;

/// Bytes that a line of an event has beside its text, at most.
const LINE_BYTES: usize = "event: \n".len();

/// What a name or a comment becomes on its one line.
fn on_one_line(text: &str) -> String {
    text.replace(['\r', '\n', '\0', '\u{2028}', '\u{2029}'], " ")
}

/// The one event that this name, data and comment make, and what holds for its bytes.
fn hold(name: &str, data: &str, comment: &str) {
    let id = FrameId { epoch: 7, seq: 1 };
    let event = |text: &mut Vec<u8>| {
        let mut frame = Frame::new(Some(id), text);
        frame.comment(comment).event(name).data(data).finish();
    };
    let mut text = Vec::new();
    event(&mut text);
    let name = Some(on_one_line(name)).filter(|name| !name.is_empty());
    let expected = Event {
        name: name.unwrap_or_else(|| "message".to_owned()),
        data: data.replace("\r\n", "\n").replace('\r', "\n"),
        last_event_id: "7-1".to_owned(),
    };
    let seen = interpret(&text);
    assert_eq!(
        seen.events,
        std::slice::from_ref(&expected),
        "{}",
        text.escape_ascii()
    );
    assert_eq!((seen.retry, seen.comments), (None, 1));
    // Twice in a row it is twice the same: nothing of it reaches into what follows.
    let mut twice = text.clone();
    event(&mut twice);
    assert_eq!(
        interpret(&twice).events,
        [expected.clone(), expected.clone()]
    );
    // Cut anywhere, its reader has all of it or nothing.
    for cut in 0..text.len() {
        assert!(interpret(&text[..cut]).events.is_empty(), "cut at {cut}");
    }
    // Each byte of the data may begin a line, and no more than that.
    let lines = 4 + data.len();
    let most =
        lines * LINE_BYTES + "id: 7-1".len() + expected.name.len() + data.len() + comment.len();
    assert!(text.len() <= most, "{} bytes of at most {most}", text.len());
    // On its way it is one chunk, whatever stands in it.
    let framed = Chunk::encode(&text);
    let stream = [framed.framed(), chunk::LAST].concat();
    assert_eq!(unchunk(&stream), (text, true));
}

#[row(S32)]
#[test]
fn each_text_of_the_corpus_is_read_back_as_it_was() {
    assert!(SEEDS.len() >= LEAST, "{} seeds", SEEDS.len());
    for (name, text) in SEEDS.iter() {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        assert!(name.bytes().all(plain) && text.len() <= 1_000, "{name}");
        hold("note", text, "");
        hold(text, "x", text);
        for (_, other) in SEEDS.iter().filter(|(_, other)| other.len() < 100) {
            hold(other, text, "");
        }
    }
}

/// A character that a reader, a person or a printer takes for an end.
fn sharp() -> impl Strategy<Value = char> {
    let sharp = "\r\n\0:\u{2028}\u{2029}\u{feff}\u{85}\u{b} \tadeinrtv0é\u{1f600}";
    let letters = proptest::sample::select(sharp.chars().collect::<Vec<_>>());
    prop_oneof![6 => letters, 1 => any::<char>()]
}

/// A seed, changed in a few places.
fn text() -> impl Strategy<Value = String> {
    let edits = prop::collection::vec((any::<Index>(), sharp(), any::<bool>()), 0..6);
    (any::<Index>(), edits).prop_map(|(seed, edits)| {
        let mut text: Vec<char> = SEEDS[seed.index(SEEDS.len())].1.chars().take(100).collect();
        for (at, letter, puts) in edits {
            let at = at.index(text.len() + 1);
            if puts && at < text.len() {
                text[at] = letter;
            } else {
                text.insert(at, letter);
            }
        }
        text.into_iter().collect()
    })
}

proptest! {
    #[row(S32)]
    #[test]
    fn whatever_is_made_of_the_corpus_is_read_back_as_it_was(name in text(), data in text(), comment in text()) {
        hold(&name, &data, &comment);
    }
}
