//! Changes of Rust that are of imports alone.
//!
//! Owns the comparison. Invariant: a name that comes from another place than before is a change like any other, for
//! what it names may do something else.

use std::collections::{BTreeMap, BTreeSet};

use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{ItemUse, UseTree, Visibility};

use crate::source::edit::{Splice, spliced};
use crate::source::tokens;

/// Whether two texts differ in nothing but imports that one of them has and the other has not.
pub(super) fn alone(before: &str, after: &str) -> bool {
    let (Some((before, had)), Some((after, has))) = (without(before), without(after)) else {
        return false;
    };
    let moved = |(name, places): (&String, &BTreeSet<String>)| {
        let other = has.get(name);
        other.is_some_and(|other| other != places)
    };
    !tokens::differ(&before, &after) && had != has && !had.iter().any(moved)
}

/// A file's text without its imports, and from where each imported name comes.
fn without(text: &str) -> Option<(String, BTreeMap<String, BTreeSet<String>>)> {
    let mut imports = Imports::default();
    imports.visit_file(&syn::parse_file(text).ok()?);
    Some((spliced(text, &imports.cuts), imports.names))
}

/// Names with the places that they come from, and where in the text they are imported.
#[derive(Default)]
struct Imports {
    names: BTreeMap<String, BTreeSet<String>>,
    cuts: Vec<Splice>,
}

impl Imports {
    fn tree(&mut self, tree: &UseTree, place: &str) {
        let (name, place) = match tree {
            UseTree::Path(path) => {
                return self.tree(&path.tree, &format!("{place}{}::", path.ident));
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.tree(tree, place));
            }
            UseTree::Name(name) => (name.ident.to_string(), format!("{place}{}", name.ident)),
            // Those without a name do not hide each other.
            UseTree::Rename(rename) if rename.rename == "_" => {
                let place = format!("{place}{}", rename.ident);
                (format!("_ {place}"), place)
            }
            UseTree::Rename(rename) => {
                let place = format!("{place}{}", rename.ident);
                (rename.rename.to_string(), place)
            }
            UseTree::Glob(_) => (format!("{place}*"), place.to_owned()),
        };
        self.names.entry(name).or_default().insert(place);
    }
}

impl<'ast> Visit<'ast> for Imports {
    /// One that others may read, or that a condition rules, is more than an import.
    fn visit_item_use(&mut self, import: &'ast ItemUse) {
        if import.attrs.is_empty() && matches!(import.vis, Visibility::Inherited) {
            self.tree(&import.tree, "");
            self.cuts.push(Splice {
                range: import.span().byte_range(),
                with: String::new(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::alone;

    #[m0_spec::row(B55)]
    #[test]
    fn an_import_more_or_less_is_alone_and_a_name_from_elsewhere_is_not() {
        let of = |imports: &str| format!("{imports}\nfn two() -> u8 {{ 2 }}\n");
        let before = of("use std::{fs::File, io::Read};");
        for after in [
            "use std::fs::File;",
            "",
            "use std::{fs::File, io::{Read, Write}};",
            "use std::{fs::File, io::{Read, Write as _}, env as surroundings};",
            "use std::{fs::File, io::*, io::Read};",
        ] {
            assert!(alone(&before, &of(after)), "{after}");
            assert!(alone(&of(after), &before), "{after}");
        }
        for after in [
            "use std::{fs::File, io::Read}; // the same",
            "use other::{fs::File, io::Read};",
            "use std::{fs::File, io::Write as Read};",
            "pub use std::fs::File;",
            "#[cfg(unix)] use std::fs::File;",
            "use std::fs::File; use std::io::Read; const ONE: u8 = 1;",
            "use std::{",
        ] {
            assert!(!alone(&before, &of(after)), "{after}");
        }
        assert!(!alone(&before, &before.replace("{ 2 }", "{ 3 }")));
        let inner = "mod inner { use std::fs::File; fn f() { use std::io::Read; } }";
        assert!(alone(inner, "mod inner { fn f() {} }"));
        assert!(!alone(inner, "mod inner { fn f() { g(); } }"));
    }
}
