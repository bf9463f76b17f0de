//! Tests of the command: what it writes, and what it refuses, in a directory of their own.

const HEAD: &str = "area: E\ntitle: Hosts\nfloor: proven\nrows:\n";

fn row(id: &str, rest: &str) -> String {
    format!("  - id: {id}\n    claim: A thing is so.\n    why: It is.\n    needs: [test]\n{rest}")
}

const ACTIVE: &str = "    state: active\n";

#[m0_spec::row(H8)]
#[test]
fn what_is_generated_is_told_as_stale_until_it_is_written() {
    let root = tempfile::tempdir().expect("a directory for the test");
    let root = root.path();
    std::fs::create_dir_all(root.join("spec/src")).expect("made");
    let yaml = root.join("spec/E.yaml");
    std::fs::write(&yaml, format!("{HEAD}{}", row("E1", ACTIVE))).expect("written");
    super::run(root, true).expect_err("nothing is generated yet");
    super::run(root, false).expect("it generates");
    super::run(root, true).expect("it is fresh");
    for name in [super::CONSTANTS, "spec/SPEC.md", "spec/ids.lock"] {
        let path = root.join(name);
        let text = std::fs::read_to_string(&path).expect("it was generated");
        std::fs::write(&path, format!("{text}# by hand\n")).expect("written");
        super::run(root, true).expect_err(name);
        std::fs::write(&path, text).expect("written");
    }
    super::run(root, true).expect("it is fresh again");
    // The ledger keeps its order and refuses to lose an id.
    std::fs::write(&yaml, format!("{HEAD}{}", row("E2", ACTIVE))).expect("written");
    super::run(root, false).expect_err("E1 is lost");
    std::fs::write(
        &yaml,
        format!("{HEAD}{}{}", row("E2", ACTIVE), row("E1", ACTIVE)),
    )
    .expect("written");
    super::run(root, false).expect("both are there");
    let ledger = std::fs::read_to_string(root.join("spec/ids.lock")).expect("it was generated");
    assert!(ledger.ends_with("\nE1\nE2\n"), "{ledger}");
}

#[m0_spec::row(H9)]
#[test]
fn no_row_at_all_is_a_finding() {
    let root = tempfile::tempdir().expect("a directory for the test");
    std::fs::create_dir_all(root.path().join("spec/src")).expect("made");
    let error = super::run(root.path(), false).expect_err("there is nothing to generate");
    assert!(error.to_string().contains("finding"), "{error}");
}
