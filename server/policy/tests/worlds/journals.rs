//! Any run replays to the state that its supervisor was in, however much of it was dropped; and no
//! text, however broken, does worse than an error.

use m0_policy::replay;
use m0_spec::row;
use proptest::prelude::*;

use crate::cases;
use crate::script::scripts;
use crate::world::World;

proptest! {
    #![proptest_config(cases(200))]

    #[row(D22, D23)]
    #[test]
    fn any_run_replays_to_the_same_state(script in scripts(100)) {
        let world = World::after(&script);
        prop_assert!(world.journal.len() <= script.journal_entries);
        let text = world.journal.text();
        prop_assert_eq!(replay(&text), Ok(world.state), "{}", text);
    }

    #[row(D41)]
    #[test]
    fn no_text_is_worse_than_an_error(
        script in scripts(60),
        edits in prop::collection::vec((any::<prop::sample::Index>(), edits()), 1..6),
    ) {
        let mut lines: Vec<String> =
            World::after(&script).journal.text().lines().map(str::to_owned).collect();
        for (at, edit) in edits {
            let at = at.index(lines.len().max(1));
            if at < lines.len() {
                edit.apply(&mut lines, at);
            }
        }
        let count = lines.len();
        if let Err(error) = replay(&lines.join("\n")) {
            prop_assert!((1..=count + 1).contains(&error.line()), "{error}");
        }
    }
}

/// What may happen to a text on its way.
#[derive(Clone, Debug)]
enum Edit {
    Lost,
    Twice,
    Swapped,
    /// The nth number of the line becomes another.
    Number(usize, u64),
    /// The line is cut after so many characters.
    Cut(usize),
    Replaced(String),
}

fn edits() -> impl Strategy<Value = Edit> {
    let number = prop_oneof![0..3_u64, 90..130_u64, any::<u64>(), Just(u64::MAX)];
    prop_oneof![
        Just(Edit::Lost),
        Just(Edit::Twice),
        Just(Edit::Swapped),
        (0..8_usize, number).prop_map(|(nth, number)| Edit::Number(nth, number)),
        (0..40_usize).prop_map(Edit::Cut),
        ".{0,40}".prop_map(Edit::Replaced),
    ]
}

impl Edit {
    fn apply(&self, lines: &mut Vec<String>, at: usize) {
        match self {
            Self::Lost => drop(lines.remove(at)),
            Self::Twice => lines.insert(at, lines[at].clone()),
            Self::Swapped => lines.swap(at, at.saturating_sub(1)),
            Self::Number(nth, number) => {
                let mut words: Vec<String> = lines[at].split('=').map(str::to_owned).collect();
                let nth = 1 + nth % words.len();
                if let Some(word) = words.get_mut(nth) {
                    let rest = word.find(' ').map_or("", |space| &word[space..]).to_owned();
                    *word = format!("{number}{rest}");
                }
                lines[at] = words.join("=");
            }
            Self::Cut(chars) => lines[at] = lines[at].chars().take(*chars).collect(),
            Self::Replaced(text) => lines[at].clone_from(text),
        }
    }
}
