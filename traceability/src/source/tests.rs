//! Tests of what is found in source: Rust by its tokens, other languages by their comments.

use std::path::Path;

use super::cache::{Files, Held};
use super::comments::{Language, read};
use super::{Source, Test};
use crate::config::Config;
use crate::files::Open;
use crate::rows::read::Need;

/// Writes files into a directory of the test's own and searches them.
fn search(files: &[(&str, &str)]) -> Source {
    let root = tempfile::tempdir().expect("a directory for the test");
    for (name, text) in files {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    let listed = crate::files::list(root.path()).expect("it is listed");
    super::read(root.path(), &Config::default(), &listed, &Open::new())
}

fn told(source: &Source) -> Vec<String> {
    let one = |test: &Test| {
        let rows: Vec<&str> = test.rows.iter().map(|row| row.id.as_str()).collect();
        format!("{} {} [{}]", test.suite, test.name, rows.join(" "))
    };
    source.tests.iter().map(one).collect()
}

const MANIFEST: (&str, &str) = ("Cargo.toml", "[package]\nname = \"my-lib\"\n");

#[m0_spec::row(T2)]
#[test]
fn a_test_has_the_path_that_the_harness_prints() {
    let source = search(&[
        MANIFEST,
        (
            "src/lib.rs",
            "mod deep;\n#[path = \"odd/name.rs\"]\nmod other;\npub mod a { pub mod b { #[row(E1, E2)] #[test] fn c() {} } }\n",
        ),
        ("src/deep.rs", "mod deeper;\n#[cfg(test)] mod tests;\n"),
        (
            "src/deep/deeper/mod.rs",
            "#[test]\n#[m0_spec::row(E3)]\nfn d() {}\n",
        ),
        (
            "src/deep/tests.rs",
            "#[test] fn bare() {}\nfn helper() {}\n",
        ),
        (
            "src/odd/name.rs",
            "#[tokio::test(flavor = \"x\")] #[row(crate = x::y, E4)] pub(crate) async fn e() {}\n",
        ),
        (
            "tests/whole.rs",
            "#[row(E5)] #[test] #[ignore = \"slow\"] fn f() {}\n",
        ),
    ]);
    assert_eq!(
        told(&source),
        [
            "my-lib a::b::c [E1 E2]",
            "my-lib deep::deeper::d [E3]",
            "my-lib deep::tests::bare []",
            "my-lib other::e [E4]",
            "my-lib::whole f [E5]",
        ]
    );
    assert!(source.tests[4].ignored && !source.tests[0].ignored);
    assert_eq!(source.tests[0].rows[1].at.to_string(), "src/lib.rs:4:35");
}

#[m0_spec::row(T2)]
#[test]
fn macros_and_conditions_are_seen_and_strings_are_not() {
    let source = search(&[
        MANIFEST,
        (
            "src/lib.rs",
            "proptest::proptest! { #![proptest_config(x())] #[row(E1)] #[test] fn any(x in 0..9) { fn inner() {} } }\n\
             proptest! { #[row(E1)] #[test] fn plain(x in 0..9) {} }\n\
             const S: &str = \"#[row(E2)] #[test] fn no() {}\";\n\
             const R: &str = r#\"#[row(E2)] #[test] fn no() {}\"#;\n\
             macro_rules! make { ($name:ident) => { #[row(E3)] #[test] fn $name() {} }; () => { #[row(E4)] #[test] fn fixed() {} } }\n\
             #[cfg(loom)] mod models { #[row(E5)] #[test] fn model() {} }\n\
             #[cfg(not(loom))] mod plain_ones { #[row(E5)] #[test] fn case() {} }\n\
             #[cfg_attr(miri, ignore)] #[row(E6)] #[test] fn kept() {}\n",
        ),
    ]);
    assert_eq!(
        told(&source),
        [
            "my-lib any [E1]",
            "my-lib fixed [E4]",
            "my-lib kept [E6]",
            "my-lib models::model [E5]",
            "my-lib plain [E1]",
            "my-lib plain_ones::case [E5]",
        ]
    );
    let kinds: Vec<Need> = source.tests.iter().map(|test| test.kind).collect();
    use Need::{Loom, Property, Test};
    assert_eq!(kinds, [Property, Test, Test, Loom, Property, Test]);
    assert!(source.tests.iter().all(|test| !test.ignored));
    assert_eq!(source.by_macro.len(), 1, "the callers give the name");
    assert_eq!(source.tests[3].cfg, ["loom"]);
}

#[m0_spec::row(T12)]
#[test]
fn white_space_and_comments_leave_the_hash_of_a_test_alone() {
    let hash = |text: &str| {
        let source = search(&[MANIFEST, ("src/lib.rs", text)]);
        source.tests[0].hash.clone()
    };
    let plain = hash("#[row(E1)] #[test] fn a() { assert_eq!(1, 1); }");
    let spread = hash("#[row(E1)]\n#[test]\n// why\nfn a() {\n    assert_eq!(1, 1); // so\n}\n");
    assert_eq!(plain, spread);
    let changed = hash("#[row(E1)] #[test] fn a() { assert_eq!(1, 2); }");
    assert_ne!(plain, changed);
    let python = |text: &str| {
        let mut source = Source::default();
        read(Language::Python, Path::new("test_a.py"), text, &mut source);
        source.tests[0].hash.clone()
    };
    let plain = python("def test_a():\n    assert 1\n\ndef other():\n    pass\n");
    assert_eq!(plain, python("def test_a():\n    # why\n    assert  1\n"));
    assert_ne!(plain, python("def test_a():\n    assert 2\n"));
}

/// Searches a text of one language: the tests as told, and the places of misplaced tags.
fn tags(language: Language, name: &str, text: &str) -> (Vec<String>, Vec<String>) {
    let mut source = Source::default();
    read(language, Path::new(name), text, &mut source);
    let faults = source.faults.iter().map(|fault| {
        let finding = &fault.finding;
        format!(
            "{}:{} {}",
            finding.at.line, finding.at.column, finding.message
        )
    });
    (told(&source), faults.collect())
}

#[m0_spec::row(T10)]
#[test]
fn a_tag_of_python_belongs_to_the_test_below_it() {
    let text = "import x\n\n# proves: E1, E2\n@mark\ndef test_one():\n    '''\n    # proves: E3\n    '''\n\n\
                class TestMore:\n    # proves: E4\n    # why it is so\n    async def test_two(self):\n        pass\n\n\
                \x20   def test_bare(self): pass\n\n\
                # proves: E5\n\ndef test_far(): pass\n# proves: e6\ndef test_odd(): pass  # proves: E7\n# proves: E8\nx = 1\n";
    let (tests, faults) = tags(Language::Python, "tests/test_a.py", text);
    assert_eq!(
        tests,
        [
            "tests.test_a test_one [E1 E2]",
            "tests.test_a.TestMore test_two [E4]",
            "tests.test_a.TestMore test_bare []",
            "tests.test_a test_far []",
            "tests.test_a test_odd []",
        ]
    );
    assert_eq!(
        faults,
        [
            "7:5 a tag in a string belongs to no test",
            "18:1 no test follows this tag",
            "21:1 `e6` is no row id; wanted is `proves: E22, E23`",
            "22:23 a tag has a line of its own, before the test",
            "23:1 no test follows this tag",
        ]
    );
}

#[m0_spec::row(T10)]
#[test]
fn decorators_of_several_lines_nested_classes_and_functions_of_python() {
    let text = "class TestSum:\n    \"\"\"Sums.\n    class Nothing:\n    \"\"\"\n    # proves: E1\n    @pytest.mark.parametrize(\n        'left, right',\n        [(1, 1)],\n    )\n    \
                def test_adds(self, left, right):\n        def test_helper():\n            pass\n        assert left + right == 2\n\n    \
                class TestInner:\n        # proves: E2\n        @unittest.skip('later')\n        def test_in(self): pass\n\n\
                def helper():\n    # proves: E3\n    def test_not_collected(): pass\n\n\
                # proves: E4\ndef test_wide(\n    tmp_path,\n):\n    assert tmp_path\nlast = 1\n";
    let (tests, faults) = tags(Language::Python, "test_a.py", text);
    assert_eq!(
        tests,
        [
            "test_a.TestSum test_adds [E1]",
            "test_a.TestSum.TestInner test_in [E2]",
            "test_a test_wide [E4]",
        ]
    );
    assert_eq!(faults, ["21:5 no test follows this tag"]);
    let mut source = Source::default();
    read(Language::Python, Path::new("test_a.py"), text, &mut source);
    let lines: Vec<(u64, u64, bool)> = source
        .tests
        .iter()
        .map(|test| (test.at.line, test.last, test.ignored))
        .collect();
    assert_eq!(lines, [(10, 13, false), (18, 18, true), (25, 28, false)]);
    // What a decorator asks is a part of the test.
    let hash = |text: &str| {
        let mut source = Source::default();
        read(Language::Python, Path::new("test_a.py"), text, &mut source);
        source.tests[0].hash.clone()
    };
    assert_ne!(hash(text), hash(&text.replace("(1, 1)", "(2, 0)")));
    assert_eq!(hash(text), hash(&text.replace("last = 1", "last = 2")));
}

#[m0_spec::row(T10)]
#[test]
fn names_templates_patterns_and_parts_of_a_script() {
    let text = "// proves: E1\ntest(\n  // why\n  'it\\'s wide',\n  () => {},\n);\n\
                // proves: E2\nawait test.only(`plain`, () => { const s = `${f(`# proves: E9`)} // proves: E8`; });\n\
                const p = /[/'`]/.test(x) ? `}` : 1;\n\
                function f(x) { return /\"/.exec(x); }\n\
                // proves: E3\ntest(`of ${part}`, () => {});\n\
                test('whole', async (t) => {\n  // proves: E4\n  await t.test('part', () => {});\n  await t.test('bare part', () => {});\n});\n\
                // proves: E5\ntest.each([1])('of %d', () => {});\n";
    let (tests, faults) = tags(Language::Script, "a.test.ts", text);
    assert_eq!(
        tests,
        [
            "a.test.ts it's wide [E1]",
            "a.test.ts plain [E2]",
            "a.test.ts whole []",
            "a.test.ts part [E4]",
        ]
    );
    assert_eq!(
        faults,
        [
            "8:50 a tag in a string belongs to no test",
            "11:1 no test follows this tag",
            "18:1 no test follows this tag",
        ]
    );
}

#[m0_spec::row(T10)]
#[test]
fn a_tag_of_a_script_or_a_shell_belongs_to_the_test_below_it() {
    let text = "// proves: E1\ntest('adds \"one\"', () => { const s = `\n// proves: E2\n`; });\n\
                describe('more', () => {\n  // proves: E3\n  it.skip(\"waits\", async () => {});\n  it('bare', () => {});\n});\n";
    let (tests, faults) = tags(Language::Script, "a.test.ts", text);
    assert_eq!(
        tests,
        [
            "a.test.ts adds \"one\" [E1]",
            "a.test.ts waits [E3]",
            "a.test.ts bare []"
        ]
    );
    assert_eq!(faults, ["3:1 a tag in a string belongs to no test"]);
    let text = "# proves: E1\ntest_one() {\n  cat <<'END'\n# proves: E2\nEND\n}\n# proves: E3\nfunction test_two() { echo '# proves: E4'; }\n";
    let (tests, faults) = tags(Language::Shell, "run.sh", text);
    assert_eq!(tests, ["run.sh test_one [E1]", "run.sh test_two [E3]"]);
    assert_eq!(
        faults,
        [
            "4:1 a tag in a string belongs to no test",
            "8:29 a tag in a string belongs to no test"
        ]
    );
    let (tests, _) = tags(
        Language::Shell,
        "a.bats",
        "# proves: E1\n@test \"it adds\" {\n}\n",
    );
    assert_eq!(tests, ["a.bats it adds [E1]"]);
}

#[m0_spec::row(T28)]
#[test]
fn a_search_says_the_same_on_any_number_of_cores() {
    let dir = tempfile::tempdir().expect("a directory for the test");
    let mut texts = vec![];
    for at in 0..12 {
        texts.push((
            format!("p{at}/Cargo.toml"),
            format!("[package]\nname = \"p{at}\"\n"),
        ));
        let lib = "mod more;\nmod absent;\n#[row(E1)] #[test] fn a() {}\nmacro_rules! m { () => { #[row(E2)] #[test] fn $name() {} } }\n";
        texts.push((format!("p{at}/src/lib.rs"), lib.into()));
        texts.push((
            format!("p{at}/src/more.rs"),
            "#[row(E3)] #[test] fn b() { \" }\n".into(),
        ));
        texts.push((
            format!("p{at}/src/beside.rs"),
            "#[row(E4)] #[test] fn c() {}\n".into(),
        ));
        let tags = "# proves: E5\ndef test_d():\n    pass\n\n# proves: e\n# proves: E6\n\nx = 1\n";
        texts.push((format!("p{at}/test_{at}.py"), tags.into()));
    }
    for (name, text) in &texts {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    let listed = crate::files::list(dir.path()).expect("it is listed");
    let (open, held) = (Open::new(), Held::default());
    let said = |cores| {
        let files = Files::of(dir.path(), &open, &held);
        let (source, seen) = super::search(&Config::default(), &listed, files, cores);
        let json = serde_json::to_string(&source).expect("it is plain data");
        (
            json,
            format!("{seen:?}"),
            source.tests.len(),
            source.faults.len(),
        )
    };
    let alone = said(1);
    assert_eq!((alone.2, alone.3), (24, 48));
    for cores in [2, 5, 64] {
        assert_eq!(said(cores), alone, "{cores} cores");
    }
}
