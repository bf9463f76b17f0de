//! Requests of pages, and the fields that they get.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, VARY,
};
use m0_spec::row;

use super::*;

const PAGE: &str = "https://app.example";

fn request(method: Method, fields: &[(HeaderName, &str)]) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = method;
    for (name, value) in fields {
        let value = HeaderValue::from_str(value).expect("a value");
        request.headers_mut().insert(name, value);
    }
    request
}

fn rules() -> Cors {
    Cors::of([PAGE, "http://localhost:5173"])
        .methods(["GET", "DELETE"])
        .headers(["content-type", "x-own"])
        .exposed(["x-request-id"])
        .credentials()
        .cached_for(Duration::from_mins(10))
}

#[row(E123)]
#[test]
fn a_listed_page_may_read_and_no_other() {
    let cors = rules();
    for origin in [PAGE, "http://localhost:5173"] {
        let fields = cors.fields(&request(Method::GET, &[(ORIGIN, origin)]));
        assert_eq!(fields[ACCESS_CONTROL_ALLOW_ORIGIN], origin);
        assert_eq!(fields[ACCESS_CONTROL_ALLOW_CREDENTIALS], "true");
        assert_eq!(fields[ACCESS_CONTROL_EXPOSE_HEADERS], "x-request-id");
        assert!(!fields.contains_key(ACCESS_CONTROL_ALLOW_METHODS));
    }
    for origin in [
        "https://app.example.evil.example",
        "https://evil.example",
        "http://app.example",
        "https://app.example:444",
        "https://APP.example",
        "null",
        "",
        "*",
        "https://app.example, https://evil.example",
    ] {
        let fields = cors.fields(&request(Method::GET, &[(ORIGIN, origin)]));
        assert!(
            !fields.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN),
            "{origin}"
        );
    }
    // A cache must not give one page's answer to another.
    let none = cors.fields(&request(Method::GET, &[]));
    assert!(!none.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN));
    let vary = none[VARY].to_str().expect("text");
    assert!(
        vary.to_ascii_lowercase()
            .split(',')
            .any(|name| name.trim() == "origin"),
        "{vary}"
    );
}

#[row(E123)]
#[test]
fn a_preflight_is_told_the_rules_and_other_options_are_not() {
    let cors = rules();
    let asks = [(ORIGIN, PAGE), (ACCESS_CONTROL_REQUEST_METHOD, "DELETE")];
    let preflight = request(Method::OPTIONS, &asks);
    assert!(is_preflight(&preflight));
    let fields = cors.fields(&preflight);
    assert_eq!(fields[ACCESS_CONTROL_ALLOW_ORIGIN], PAGE);
    assert_eq!(fields[ACCESS_CONTROL_ALLOW_METHODS], "GET,DELETE");
    assert_eq!(fields[ACCESS_CONTROL_ALLOW_HEADERS], "content-type,x-own");
    assert_eq!(fields[ACCESS_CONTROL_MAX_AGE], "600");
    for other in [
        request(Method::OPTIONS, &asks[..1]),
        request(Method::OPTIONS, &asks[1..]),
        request(Method::GET, &asks),
    ] {
        assert!(!is_preflight(&other));
        assert!(
            !cors
                .fields(&other)
                .contains_key(ACCESS_CONTROL_ALLOW_METHODS)
        );
    }
    let every = Cors::of(["*"]).fields(&request(Method::GET, &[(ORIGIN, "https://any.example")]));
    assert_eq!(every[ACCESS_CONTROL_ALLOW_ORIGIN], "*");
    assert!(!every.contains_key(ACCESS_CONTROL_ALLOW_CREDENTIALS));
}

#[row(E124)]
#[test]
fn rules_that_contradict_themselves_are_refused_by_name() {
    for good in [
        rules(),
        Cors::of(["*"]),
        Cors::of(["http://[::1]:8080", "app+x://a_b", "https://1.2.3.4"]),
        Cors::of(["http://a:443", "https://a:80", "app://a:80", "http://a:0"]),
    ] {
        assert_eq!(good.refusal(), None);
    }
    for (bad, told) in [
        (
            Cors::of(["*"]).credentials(),
            "Cors::credentials=*: credentials for every origin",
        ),
        (Cors::of([PAGE, "*"]), "want * alone"),
        (Cors::of(Vec::<String>::new()), "want at least one"),
        (Cors::of(["https://app.example/"]), "is no origin"),
        (Cors::of(["app.example"]), "is no origin"),
        (Cors::of(["https://App.example"]), "is no origin"),
        (Cors::of(["https://a:99999"]), "is no origin"),
        (Cors::of(["https://a:b:1"]), "is no origin"),
        (Cors::of(["https://a:443"]), "is no origin"),
        (Cors::of(["http://a:80"]), "is no origin"),
        (Cors::of(["https://a:0444"]), "is no origin"),
        (Cors::of(["https://a:+444"]), "is no origin"),
        (Cors::of(["https://a:"]), "is no origin"),
        (Cors::of(["null"]), "is no origin"),
        (Cors::of([PAGE]).methods(["GE T"]), "is no method"),
        (Cors::of([PAGE]).headers(["a b"]), "is no name of a field"),
        (
            Cors::of([PAGE]).headers(["*"]).credentials(),
            "is no name of a field",
        ),
        (Cors::of([PAGE]).exposed(["ä"]), "is no name of a field"),
    ] {
        let refused = bad
            .refusal()
            .unwrap_or_else(|| panic!("{bad:?}"))
            .to_string();
        assert!(refused.contains(told), "{refused}");
    }
}
