//! Many rules in one text: each function body becomes a choice between itself and its patched forms.
//!
//! Owns which functions can hold a choice, and the splice. Works on texts; refuses to write files.
//! Invariant: with no rule chosen the original body runs, on its own lines: `line!()` stays true in it.
//!
//! The number of the chosen rule is read from the environment once a process, so it is inherited over
//! fork and exec. A patched body first leaves its witness: one touch of a file that the environment names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::edit::{Splice, spliced};
use super::tokens;

/// The variable with the number of the chosen rule.
pub const CHOSEN: &str = "SABOTAGE_RULE";
/// The variable with the path that the chosen rule touches when its patch runs.
pub const WITNESS: &str = "SABOTAGE_WITNESS";

/// A rule's splices in one file.
#[derive(Debug, Clone)]
pub struct Part {
    /// The rule's number, from 1.
    pub number: u32,
    /// Its splices, rising.
    pub splices: Vec<Splice>,
}

/// A woven file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Woven {
    /// The text.
    pub text: String,
    /// The bytes of each patched body, and its rule.
    pub arms: Vec<(Range<usize>, u32)>,
    /// The bytes of each body that holds a choice, and the rules of that choice.
    pub choices: Vec<(Range<usize>, Vec<u32>)>,
}

/// The bodies of a file in which a choice can stand: outermost functions, from brace to brace.
pub struct Bodies(Vec<Range<usize>>);

impl Bodies {
    /// Reads a file; none when it is no Rust.
    pub fn of(text: &str) -> Option<Self> {
        let file = syn::parse_file(text).ok()?;
        let mut found = Finder {
            text,
            bodies: Vec::new(),
        };
        found.visit_file(&file);
        Some(Self(found.bodies))
    }

    /// The body that holds a splice whole.
    fn holding(&self, splice: &Splice) -> Option<&Range<usize>> {
        self.0
            .iter()
            .find(|body| body.start < splice.range.start && splice.range.end < body.end)
    }

    /// Whether every splice lies inside a body.
    pub fn hold(&self, splices: &[Splice]) -> bool {
        splices.iter().all(|splice| self.holding(splice).is_some())
    }
}

struct Finder<'t> {
    text: &'t str,
    bodies: Vec<Range<usize>>,
}

impl Finder<'_> {
    fn take(
        &mut self,
        signature: &syn::Signature,
        attributes: &[syn::Attribute],
        block: &syn::Block,
    ) {
        let inner = attributes
            .iter()
            .any(|attribute| matches!(attribute.style, syn::AttrStyle::Inner(_)));
        // Two arms of an opaque type would be two types, and a constant cannot ask the environment.
        if signature.constness.is_some() || inner || opaque(&signature.output) {
            return;
        }
        let body = block.span().byte_range();
        if self
            .text
            .get(body.clone())
            .is_some_and(|text| text.starts_with('{') && text.ends_with('}'))
        {
            self.bodies.push(body);
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        // Not visited further: the outermost function holds the choice.
        self.take(&item.sig, &item.attrs, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.take(&item.sig, &item.attrs, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.take(&item.sig, &item.attrs, block);
        }
    }
}

/// Whether a return type holds an `impl Trait`.
fn opaque(output: &syn::ReturnType) -> bool {
    struct Seen(bool);
    impl<'ast> Visit<'ast> for Seen {
        fn visit_type_impl_trait(&mut self, _: &'ast syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut seen = Seen(false);
    visit::visit_return_type(&mut seen, output);
    seen.0
}

/// The rules of one body, each with its splices there.
type Choices = Vec<(u32, Vec<Splice>)>;

/// Weaves parts into a file. Every splice must lie in a body.
pub fn weave(text: &str, bodies: &Bodies, parts: &[Part]) -> Woven {
    // Body to its rules, each with its splices in that body.
    let mut choices: BTreeMap<(usize, usize), Choices> = BTreeMap::new();
    for part in parts {
        let mut mine: BTreeMap<(usize, usize), Vec<Splice>> = BTreeMap::new();
        for splice in &part.splices {
            if let Some(body) = bodies.holding(splice) {
                mine.entry((body.start, body.end))
                    .or_default()
                    .push(splice.clone());
            }
        }
        for (body, splices) in mine {
            choices
                .entry(body)
                .or_default()
                .push((part.number, splices));
        }
    }
    let mut woven = Woven {
        text: String::new(),
        arms: Vec::new(),
        choices: Vec::new(),
    };
    let mut at = 0;
    for ((start, end), rules) in choices {
        woven.text.push_str(&text[at..start]);
        let body = &text[start..end];
        let began = woven.text.len();
        let unchosen: Vec<String> = rules
            .iter()
            .map(|(number, _)| format!("{NAME} != {number}"))
            .collect();
        let guard = unchosen.join(" && ");
        let _ = write!(
            woven.text,
            "{{match {CHOICE} {{ {NAME} if {guard} => {body}"
        );
        for (index, (number, splices)) in rules.iter().enumerate() {
            let moved: Vec<Splice> = splices
                .iter()
                .map(|splice| Splice {
                    range: splice.range.start - start..splice.range.end - start,
                    with: splice.with.clone(),
                })
                .collect();
            let patched = squeeze(&spliced(body, &moved));
            let pattern = if index + 1 == rules.len() {
                "_".to_owned()
            } else {
                number.to_string()
            };
            let _ = write!(woven.text, " {pattern} => {{ {TOUCH} ");
            let from = woven.text.len();
            woven.text.push_str(&patched);
            woven.arms.push((from..woven.text.len(), *number));
            woven.text.push_str(" }");
        }
        woven.text.push_str("}}");
        let numbers = rules.iter().map(|(number, _)| *number).collect();
        woven.choices.push((began..woven.text.len(), numbers));
        at = end;
    }
    woven.text.push_str(&text[at..]);
    woven
}

/// What the number is bound to: no name of the body's own, which would be hidden.
const NAME: &str = "__sabotage_chosen";

/// The number of the chosen rule, 0 for none. `extern crate` serves crates without a prelude of std.
const CHOICE: &str = "{ extern crate std as __sabotage_std; \
    static CHOSEN: __sabotage_std::sync::OnceLock<u32> = __sabotage_std::sync::OnceLock::new(); \
    *CHOSEN.get_or_init(|| __sabotage_std::env::var(\"SABOTAGE_RULE\").ok().and_then(|text| text.parse().ok()).unwrap_or(0)) }";

/// The witness, once a process and function.
const TOUCH: &str = "{ extern crate std as __sabotage_std; \
    static TOUCHED: __sabotage_std::sync::Once = __sabotage_std::sync::Once::new(); \
    TOUCHED.call_once(|| { if let __sabotage_std::option::Option::Some(path) = __sabotage_std::env::var_os(\"SABOTAGE_WITNESS\") \
    { let _ = __sabotage_std::fs::File::create(path); } }); }";

/// A piece of Rust on one line, as far as its literals let it.
fn squeeze(text: &str) -> String {
    let Some(row) = tokens::of(text) else {
        return text.to_owned();
    };
    let mut out = String::with_capacity(text.len());
    let mut at: Option<usize> = None;
    for token in row {
        if let Some(end) = at {
            let gap = &text[end..token.range.start];
            if !gap.is_empty() {
                out.push(' ');
            }
        }
        out.push_str(&text[token.range.clone()]);
        at = Some(token.range.end);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splice(text: &str, old: &str, with: &str) -> Splice {
        let at = text.find(old).expect("it is there");
        Splice {
            range: at..at + old.len(),
            with: with.into(),
        }
    }

    #[m0_spec::row(B18)]
    #[test]
    fn a_body_becomes_a_choice_and_its_lines_stay() {
        let text =
            "fn a(x: u32) -> u32 {\n    // why\n    x + 1\n}\n\nfn b() -> u32 {\n    line!()\n}\n";
        let bodies = Bodies::of(text).expect("it is Rust");
        let parts = [
            Part {
                number: 1,
                splices: vec![splice(text, "x + 1", "x + 2")],
            },
            Part {
                number: 2,
                splices: vec![splice(text, "x + 1", "{\n  x // no\n}")],
            },
        ];
        let woven = weave(text, &bodies, &parts);
        assert_eq!(
            woven.text.lines().count(),
            text.lines().count(),
            "{}",
            woven.text
        );
        assert_eq!(woven.text.lines().nth(6), text.lines().nth(6));
        assert!(syn::parse_file(&woven.text).is_ok(), "{}", woven.text);
        let bodies: Vec<&str> = woven
            .arms
            .iter()
            .map(|(range, _)| &woven.text[range.clone()])
            .collect();
        assert_eq!(bodies, ["{ x + 2 }", "{ { x } }"]);
    }

    #[m0_spec::row(B18)]
    #[test]
    fn what_cannot_hold_a_choice_is_left_out() {
        let text = "const fn a() -> u8 { 1 }\nfn b() -> impl Iterator<Item = u8> { std::iter::once(2) }\nconst C: u8 = 3;\n\
             macro_rules! m { () => { fn d() -> u8 { 4 } } }\nimpl X { fn e(&self) -> u8 { 5 } }\n";
        let bodies = Bodies::of(text).expect("it is Rust");
        for (digit, held) in [
            ("1", false),
            ("2", false),
            ("3", false),
            ("4", false),
            ("5", true),
        ] {
            assert_eq!(bodies.hold(&[splice(text, digit, "9")]), held, "{digit}");
        }
    }
}
