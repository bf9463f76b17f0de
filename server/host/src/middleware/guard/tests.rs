//! Credentials, right and wrong, and paths that try to walk round a guard.

use m0_spec::row;
use proptest::prelude::*;

use super::*;

fn basic_guard() -> Guard {
    Guard::basic("the realm", |user, password| {
        user == "ada" && password.is("corr:ect")
    })
}

fn judge(guard: &Guard, given: &[&str]) -> Result<(), Denied> {
    let mut headers = HeaderMap::new();
    for value in given {
        headers.append(
            AUTHORIZATION,
            HeaderValue::from_str(value).expect("a value"),
        );
    }
    guard.judge(&mut headers)
}

fn challenge(text: &str) -> Result<(), Denied> {
    Err(Denied::Challenge(
        HeaderValue::from_str(text).expect("a value"),
    ))
}

#[row(E125)]
#[test]
fn the_right_password_passes_and_whatever_else_is_challenged() {
    let guard = basic_guard();
    let right = STANDARD.encode("ada:corr:ect");
    for scheme in ["Basic", "basic", "BASIC", "Basic "] {
        assert_eq!(
            judge(&guard, &[&format!("{scheme} {right}")]),
            Ok(()),
            "{scheme}"
        );
    }
    let want = challenge("Basic realm=\"the realm\", charset=\"UTF-8\"");
    let wrong = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
    assert_eq!(judge(&guard, &[]), want);
    for given in [
        wrong("ada:corr:ecT"),
        wrong("ada:corr:ec"),
        wrong("ada:corr:ect "),
        wrong("Ada:corr:ect"),
        wrong("ada"),
        wrong(":"),
        wrong(""),
        format!("Basic{right}"),
        format!("Bearer {right}"),
        "Basic".to_owned(),
        "Basic !!!".to_owned(),
        format!("Basic {right} {right}"),
        format!("Basic {}", STANDARD.encode([0xff, b':'])),
    ] {
        assert_eq!(judge(&guard, &[&given]), want, "{given}");
    }
    let twice = format!("Basic {right}");
    assert_eq!(judge(&guard, &[&twice, &twice]), want);
}

#[row(E125)]
#[test]
fn the_right_token_passes_and_a_wrong_one_is_told_so() {
    let guard = Guard::bearer("api", |token| token.is("t0ken.-_~+/="));
    assert_eq!(judge(&guard, &["Bearer t0ken.-_~+/="]), Ok(()));
    assert_eq!(judge(&guard, &[]), challenge("Bearer realm=\"api\""));
    for given in [
        "Bearer t0ken",
        "Bearer ",
        "Bearer",
        "bearer a b",
        "Bearer \"x\"",
    ] {
        let told = judge(&guard, &[given]);
        assert_eq!(
            told,
            challenge("Bearer realm=\"api\", error=\"invalid_token\""),
            "{given}"
        );
    }
    // RFC 6750 section 3.1: it has brought no token that could be wrong.
    for given in ["Basic t0ken.-_~+/=", "Bearert0ken", "\u{e9}", ""] {
        let told = judge(&guard, &[given]);
        assert_eq!(told, challenge("Bearer realm=\"api\""), "{given}");
    }
    let panics = Guard::bearer("api", |_| panic!("a check that fails"));
    assert_eq!(judge(&panics, &["Bearer x"]), Err(Denied::Failed));
}

#[row(E125)]
#[test]
fn a_guard_stands_at_its_path_however_it_is_written() {
    let guard = basic_guard().below("/admin");
    for path in [
        "/admin",
        "/admin/",
        "/admin/x",
        "/%61dmin",
        "/%61%64min/x",
        "//admin",
        "/./admin",
        "/x/../admin",
        "/admin/../x",
        "/admin%2fx",
        "/%2e/admin",
        "/x/%2e%2e/admin/y",
        "/admin//x",
        "/admin/%2e%2e/x",
        "/x//../admin",
    ] {
        assert!(guard.stands_at(path), "{path}");
    }
    for path in ["/", "/administer", "/x/admin", "/Admin", "/admi", "*"] {
        assert!(!guard.stands_at(path), "{path}");
    }
    assert!(basic_guard().stands_at("/anything"));
    // Where one router merges slashes, or takes an encoded one for a slash, another steps up from there.
    let inner = basic_guard().below("/x/admin");
    for path in [
        "/x//../admin",
        "/x/y%2fz/../admin",
        "/x/%2f/../admin",
        "/x///../../admin/",
        "/y/..//x//../admin",
        "//x//../admin",
        "/x/y%2F../admin",
    ] {
        assert!(inner.stands_at(path), "{path}");
    }
}

#[row(E126)]
#[test]
fn a_secret_is_compared_whole_and_never_shown() {
    let secret = Secret("correct".to_owned());
    assert!(secret.is("correct") && secret.expose() == "correct");
    for other in ["", "correc", "correct ", "Correct", "correcu"] {
        assert!(!secret.is(other), "{other}");
    }
    assert_eq!(format!("{secret:?} {secret:#?}"), "Secret(..) Secret(..)");
    let guard = format!("{:?}", basic_guard());
    assert!(!guard.contains("corr"), "{guard}");
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer t0ken"));
    let _ = basic_guard().judge(&mut headers);
    assert!(!format!("{headers:?}").contains("t0ken"), "{headers:?}");
}

#[row(E124)]
#[test]
fn a_realm_or_a_path_that_cannot_be_written_is_refused() {
    assert_eq!(basic_guard().refusal(), None);
    assert_eq!(basic_guard().below("/a/b").refusal(), None);
    for realm in ["a\"b", "a\\b", "a\nb", "ä"] {
        assert!(
            Guard::bearer(realm, |_| true).refusal().is_some(),
            "{realm}"
        );
    }
    for path in ["admin", "/", "/a/", "/a b", "/%61"] {
        assert!(basic_guard().below(path).refusal().is_some(), "{path}");
    }
}

/// A path as the `url` crate and browsers read it (WHATWG URL, "path state"): steps up, slashes kept, nothing decoded
/// but the dots of a step.
fn as_a_browser(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut steps = path.split('/').skip(1).peekable();
    while let Some(step) = steps.next() {
        let last = steps.peek().is_none();
        match step.to_ascii_lowercase().replace("%2e", ".").as_str() {
            "." if last => kept.push(""),
            "." => {}
            ".." => {
                kept.pop();
                if last {
                    kept.push("");
                }
            }
            _ => kept.push(step),
        }
    }
    kept.iter()
        .fold(String::new(), |path, step| path + "/" + step)
}

proptest! {
    #[row(E125)]
    #[test]
    fn wherever_a_router_ends_the_guard_stands(path in "(/(\\.|\\.\\.|%2e%2E|x|a|%61|%78|x%2fa|)){1,7}") {
        let guard = basic_guard().below("/x/a");
        let merged = |text: &str| {
            let steps = text.split('/').filter(|step| !step.is_empty());
            steps.fold(String::new(), |path, step| path + "/" + step)
        };
        let plain = |text: &str| text.replace("%61", "a").replace("%78", "x").replace("%2f", "/");
        let browser = as_a_browser(&path);
        for read in [plain(&browser), as_a_browser(&merged(&path)), as_a_browser(&plain(&path)), merged(&plain(&browser))] {
            let read = plain(&read);
            if read == "/x/a" || read.starts_with("/x/a/") {
                prop_assert!(guard.stands_at(&path), "{} read as {}", path, read);
            }
        }
    }

    #[row(E125)]
    #[test]
    fn whatever_is_given_only_the_right_password_passes(given in prop::collection::vec(b' '..=255, 0..80)) {
        let mut headers = HeaderMap::new();
        if let Ok(value) = HeaderValue::from_bytes(&given) {
            headers.insert(AUTHORIZATION, value);
        }
        prop_assert!(basic_guard().judge(&mut headers).is_err());
    }
}
