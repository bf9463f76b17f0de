//! The attribute `#[row(E22, E23)]`: a test names the rows of the specification that it shows.
//!
//! Owns: turning the attribute into one statement at the start of the test. Refuses to know which
//! rows exist, what a runner is, and who reads the result; the crate of row constants (`m0_spec`
//! unless the attribute says `crate = other`) supplies the constants and the function `ran`.
//!
//! How each promise of the attribute is kept:
//!
//! - *A typo is a compile error at the test.* `E22` becomes the path `m0_spec::rows::E22` with the
//!   span of the word in the attribute, so rustc itself points at it and offers the nearest name;
//!   a retired row is a `#[deprecated]` constant and warns in the same place. Editors resolve the
//!   path: hover, completion and rename need no tool of ours.
//! - *The body is not wrapped.* Only a statement is put before it, so `#[should_panic]`, results,
//!   `async`, `proptest!` and loom models keep their meaning, and the order of the attributes does
//!   not matter: before `#[tokio::test]` the statement lands in the async body, after it in the
//!   function that starts the runtime.
//! - *What a binary declares can be listed without unsafe.* The usual registries (`inventory`,
//!   `linkme`) expand to `#[link_section]` statics, which is unsafe code in the crate under test,
//!   and every crate here but one forbids that. A scan of the source alone misses tests that macros
//!   make. So the same statement answers: with `TRACE_DECLARE` set it writes a `declared` line and
//!   unwinds before the body (see `m0_spec::runtime`), and a tool lists a binary by running it that
//!   way once.
//!
//! Invariant: with `TRACE_EVENTS` unset the expanded test does nothing that the written one does
//! not, but for one look at the environment.

mod args;

use proc_macro::TokenStream;
use quote::{quote, quote_spanned};
use syn::{ItemFn, parse_macro_input, parse_quote};

use args::Args;

/// Names the rows that a test shows: `#[row(E22)]`, `#[row(E22, E23)]`.
///
/// Stands on any test function, before or after `#[test]`, `#[tokio::test]`, `#[should_panic]`,
/// inside `proptest!` and inside `macro_rules!`. At least one row is needed and none twice; each
/// must be a constant of the row crate's module `rows`.
///
/// ```text
/// #[m0_spec::row(D10)]
/// #[test]
/// fn nobody_is_respawned_after_a_stop() { /* … */ }
/// ```
#[proc_macro_attribute]
pub fn row(args: TokenStream, item: TokenStream) -> TokenStream {
    let args = parse_macro_input!(args as Args);
    let mut test = parse_macro_input!(item as ItemFn);
    let spec = &args.spec;
    let rows = args.rows.iter().map(|id| {
        let span = id.span();
        quote_spanned!(span=> #spec::rows::#id)
    });
    let name = test.sig.ident.to_string();
    let announce = quote! {
        #spec::runtime::ran(
            &[#(#rows),*],
            &#spec::runtime::Place {
                module: ::core::module_path!(),
                test: #name,
                package: ::core::option_env!("CARGO_PKG_NAME"),
                file: ::core::file!(),
                line: ::core::line!(),
            },
        );
    };
    test.block.stmts.insert(0, parse_quote!(#announce));
    quote!(#test).into()
}
