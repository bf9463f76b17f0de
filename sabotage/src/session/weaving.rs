//! The copy in which all rules that can be built together stand, compiled.
//!
//! Owns what is left out of it when it does not compile: the rules whose patches hold the errors, else those of the
//! choices around them, else half. Refuses to judge a rule: what is left out is built alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Applied, Session};
use crate::run::build::Diagnostic;
use crate::run::gate::{NotBuilt, Place, Ready, build};
use crate::source::weave::{Bodies, Part, Woven, weave};

/// How often rules are left out before all of them are built alone.
const ATTEMPTS: usize = 6;

/// The woven copy, built; rules that do not compile are left out. None when that does not help.
pub(super) fn built<'a>(
    session: &'a Session,
    place: &Place<'_>,
    bodies: &BTreeMap<PathBuf, Option<Bodies>>,
    woven: &[Applied<'_>],
    names: &BTreeSet<&str>,
    out: &mut BTreeSet<u32>,
) -> Result<Option<BTreeMap<&'a str, Ready<'a>>>> {
    for _ in 0..ATTEMPTS {
        let mut parts: BTreeMap<&Path, (&str, Vec<Part>)> = BTreeMap::new();
        for (index, applied) in woven.iter().enumerate() {
            let number = index as u32 + 1;
            for (path, changed) in &applied.files {
                let (_, parts) = parts.entry(path).or_insert((&changed.before, Vec::new()));
                if !out.contains(&number) {
                    parts.push(Part {
                        number,
                        splices: changed.splices.clone(),
                    });
                }
            }
        }
        let mut texts = BTreeMap::new();
        for (path, (before, parts)) in parts {
            if let Some(Some(bodies)) = bodies.get(path) {
                texts.insert(path, weave(before, bodies, &parts));
            }
        }
        place.slot.write(
            "one build for all",
            texts
                .iter()
                .map(|(path, woven)| (*path, woven.text.as_str())),
        )?;
        let mut gates = BTreeMap::new();
        let mut refused = None;
        for name in names {
            let Some((name, gate)) = session.declared.gates.gates.get_key_value(*name) else {
                continue;
            };
            match build(place, name, gate)? {
                Ok(ready) => {
                    gates.insert(name.as_str(), ready);
                }
                Err(why) => {
                    refused = Some(why);
                    break;
                }
            }
        }
        let errors = match refused {
            None => return Ok(Some(gates)),
            Some(NotBuilt::Infra(why)) => {
                session.log.note(&format!(
                    "no build for all rules: {why}; each rule is built alone"
                ));
                return Ok(None);
            }
            Some(NotBuilt::Refused(errors, _)) => errors,
        };
        let before = out.len();
        let texts: Vec<(&Path, &Woven)> = texts.iter().map(|(path, text)| (*path, text)).collect();
        let blame = blamed(&texts, &errors);
        // A rule that does not compile is told as such when it is built alone; all else is a shortcoming of ours.
        let ours = !matches!(blame, Blame::Patches(_));
        match blame {
            Blame::Patches(rules) | Blame::Choices(rules) => out.extend(rules),
            Blame::Nobody => {
                let left = (1..=woven.len() as u32).filter(|number| !out.contains(number));
                let left: Vec<u32> = left.collect();
                out.extend(&left[left.len() / 2..]);
            }
        }
        let left = woven.len() - out.len();
        if ours {
            let first = errors
                .first()
                .map_or_else(String::new, |error| error.finding.to_string());
            let tried = woven.len() - before;
            session.log.note(&format!(
                "{tried} rules in one build do not compile ({first}), each of them may; {left} are tried"
            ));
        }
        if left < 2 {
            break;
        }
    }
    session
        .log
        .note("no build for all rules; each rule is built alone");
    Ok(None)
}

/// Whose fault it is that the woven copy does not compile.
#[derive(Debug, PartialEq, Eq)]
enum Blame {
    /// Errors lie in the patched bodies of these rules.
    Patches(BTreeSet<u32>),
    /// They lie beside them, in the choice that holds these rules.
    Choices(BTreeSet<u32>),
    /// Their places tell nothing.
    Nobody,
}

fn blamed(texts: &[(&Path, &Woven)], errors: &[Diagnostic]) -> Blame {
    let (mut patches, mut choices) = (BTreeSet::new(), BTreeSet::new());
    for error in errors {
        let file = error.finding.at.file.as_path();
        let text = texts.iter().find(|(path, _)| *path == file);
        let (Some((_, woven)), Some((start, end))) = (text, error.bytes) else {
            continue;
        };
        let hit = |range: &Range<usize>| start < range.end && end > range.start;
        let arms = woven.arms.iter().filter(|(arm, _)| hit(arm));
        patches.extend(arms.map(|(_, number)| *number));
        let bodies = woven.choices.iter().filter(|(body, _)| hit(body));
        choices.extend(bodies.flat_map(|(_, numbers)| numbers));
    }
    match (patches.is_empty(), choices.is_empty()) {
        (false, _) => Blame::Patches(patches),
        (true, false) => Blame::Choices(choices),
        (true, true) => Blame::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{At, Finding};

    #[m0_spec::row(B18)]
    #[test]
    fn an_error_is_blamed_on_a_patch_else_on_a_choice_else_on_nobody() {
        let woven = Woven {
            text: String::new(),
            arms: vec![(20..30, 1), (40..50, 2)],
            choices: vec![(10..60, vec![1, 2]), (70..90, vec![3])],
        };
        let path = Path::new("src/lib.rs");
        let error = |file: &str, bytes| Diagnostic {
            finding: Finding {
                at: At::file(Path::new(file)),
                message: "mismatched types".into(),
            },
            bytes,
            rendered: String::new(),
        };
        let blame = |errors: &[Diagnostic]| blamed(&[(path, &woven)], errors);
        let (patch, beside) = (Some((42, 44)), Some((12, 14)));
        let both = [error("src/lib.rs", beside), error("src/lib.rs", patch)];
        assert_eq!(blame(&both), Blame::Patches([2].into()));
        assert_eq!(blame(&both[..1]), Blame::Choices([1, 2].into()));
        for elsewhere in [
            error("src/lib.rs", Some((62, 64))),
            error("src/other.rs", patch),
            error("src/lib.rs", None),
        ] {
            assert_eq!(blame(&[elsewhere]), Blame::Nobody);
        }
    }
}
