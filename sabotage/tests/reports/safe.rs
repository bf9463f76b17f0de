//! A page is opened by people who did not write the rules: texts stay texts, and nothing is fetched.

use std::path::Path;

use sabotage::report::html;
use sabotage::verdict::Verdict;
use serde_json::Value;

use super::sample::{record, run};

#[m0_spec::row(B34)]
#[test]
fn no_text_becomes_markup_and_nothing_is_loaded() {
    let evil = "</script><img src=x onerror=alert(1)>\"'&";
    let mut hostile = record("one", Verdict::Missed, 1);
    hostile.promise = evil.into();
    hostile.why = evil.into();
    hostile.message = Some(evil.into());
    hostile.rows = vec![evil.into()];
    hostile.patches[0].new = evil.into();
    hostile.patches[0].with = evil.into();
    let mut told = run(vec![hostile]);
    told.notes = vec![evil.into()];
    let page = html::page(&told, Path::new("/nonexistent"));
    assert!(!page.contains("<img"), "{page}");
    assert_eq!(
        page.matches("</script").count(),
        2,
        "the data and the script"
    );
    for load in ["src=", "href=", "url(", "@import", "fetch("] {
        let outside = page
            .replace("&lt;img src=x", "")
            .replace("\\u003cimg src=x", "");
        assert!(!outside.contains(load), "{load}");
    }
    assert!(page.contains(
        "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\""
    ));
    let (_, data) = page
        .split_once("id=\"mutation-testing-report\">")
        .expect("data");
    let data: Value =
        serde_json::from_str(data.split("</script>").next().expect("an end")).expect("JSON");
    let mutant = &data["files"]["src/sum.rs"]["mutants"][0];
    assert_eq!(mutant["description"], evil);
    assert_eq!(mutant["status"], "Survived");
}
