//! The table as data: what its reader takes and refuses, and how much of it there is.

use super::cases::{End, Expected, Framing, read};
use super::groups;

const GOOD: &str = r#"
served:
  - {name: one, section: RFC 9112 3, send: "a\x80\xff\r\n", answers: ["200 length = \xe9 = x", "204 none"]}
  - {name: two, section: RFC 9112 3, send: ["a", {times: 3, of: "\r\n"}, "b"], half_close: true, end: fin}
refused:
  - {name: three, section: RFC 9112 3, send: ""}
"#;

#[m0_spec::row(H40)]
#[test]
fn a_character_is_a_byte_and_an_answer_is_read_whole() {
    let group = read("good", GOOD).expect("it is right");
    let [one, two, three] = &group.cases[..] else {
        panic!("{} cases", group.cases.len());
    };
    assert_eq!(one.send, b"a\x80\xff\r\n");
    let answer = |status, framing, body: Option<&[u8]>| Expected {
        status,
        framing,
        body: body.map(<[u8]>::to_vec),
    };
    let wanted = [
        answer(200, Framing::Length, Some(b"\xe9 = x")),
        answer(204, Framing::None, None),
    ];
    assert_eq!(one.answers, wanted);
    assert_eq!(
        (two.send.as_slice(), two.end),
        (&b"a\r\n\r\n\r\nb"[..], End::Fin)
    );
    assert_eq!(two.answers, [answer(200, Framing::Length, None)]);
    assert_eq!(three.answers, [answer(400, Framing::Length, None)]);
    assert_eq!((three.refused, three.end), (true, End::Close));
}

#[m0_spec::row(H40)]
#[test]
fn a_case_that_expects_nothing_or_means_nothing_is_an_error() {
    let cases = [
        ("name: two", "name: one", "stands twice"),
        ("RFC 9112 3", "section 3", "names no document"),
        ("200 length = ", "200 long = ", "is no framing"),
        ("204 none", "2o4 none", "status"),
        ("\\xff", "\\u0100", "is not one byte"),
        ("half_close", "halfclose", "halfclose"),
        (r#"send: """#, r#"send: "", end: open"#, "a refusal closes"),
        (
            r#"send: """#,
            r#"send: "", answers: []"#,
            "nothing is expected",
        ),
    ];
    for (from, to, wanted) in cases {
        assert!(GOOD.contains(from), "{from}");
        let error = read("bad", &GOOD.replacen(from, to, 1)).expect_err(to);
        let text = format!("{error:#}");
        assert!(text.contains(wanted), "{to}: {text}");
    }
}

#[m0_spec::row(H40)]
#[test]
fn the_table_has_at_least_150_cases_of_each_kind() {
    let groups = groups().expect("the files are right");
    let count = |refused: bool| {
        let cases = groups.iter().flat_map(|group| &group.cases);
        cases.filter(|case| case.refused == refused).count()
    };
    let (served, refused) = (count(false), count(true));
    assert!(served >= 150 && refused >= 150, "{served} and {refused}");
}
