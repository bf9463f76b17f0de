//! What may stand between the parentheses of `#[row(..)]`.
//!
//! Owns the grammar: row ids, then nothing but an optional `crate = path`. Refuses to know which
//! ids exist. Invariant: what is returned names at least one row and none twice.

use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, Path, Result, Token, parse_quote};

/// The parsed arguments.
pub(crate) struct Args {
    /// The crate that holds the row constants.
    pub(crate) spec: Path,
    /// The rows in the order written, without repetition.
    pub(crate) rows: Vec<Ident>,
}

impl Parse for Args {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut spec: Path = parse_quote!(::m0_spec);
        let mut rows: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                spec = input.call(Path::parse_mod_style)?;
            } else {
                let id: Ident = input.parse().map_err(|error| {
                    Error::new(error.span(), "a row id is wanted here, as in #[row(E22)]")
                })?;
                if rows.contains(&id) {
                    return Err(Error::new(id.span(), format!("row {id} is named twice")));
                }
                rows.push(id);
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if rows.is_empty() {
            return Err(Error::new(
                Span::call_site(),
                "name the rows that this test shows, as in #[row(E22)]",
            ));
        }
        Ok(Self { spec, rows })
    }
}

#[cfg(test)]
mod tests {
    use super::Args;

    fn parse(text: &str) -> Result<Vec<String>, String> {
        syn::parse_str::<Args>(text)
            .map(|args| args.rows.iter().map(ToString::to_string).collect())
            .map_err(|error| error.to_string())
    }

    #[m0_spec::row(H2)]
    #[test]
    fn the_grammar_is_ids_and_at_least_one() {
        assert_eq!(parse("E22"), Ok(vec!["E22".into()]));
        assert_eq!(parse("E22, E23,"), Ok(vec!["E22".into(), "E23".into()]));
        assert_eq!(parse("crate = other::spec, E1"), Ok(vec!["E1".into()]));
        for (text, part) in [
            ("", "name the rows"),
            ("crate = x", "name the rows"),
            ("E1, E1", "named twice"),
            ("\"E1\"", "row id is wanted"),
            ("E1 E2", "expected `,`"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
