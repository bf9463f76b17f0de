//! Rules that are read in one pass: what concerns rows, and the values that the hash is made of.
//!
//! Owns the plain form, in which every name is a text. Refuses everything else, right or wrong: two passes, each by its
//! own type, say what it is. Invariant: what is read here is what the two passes read.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::{Location, Spanned};

/// A text and where it stands.
pub(super) type Text = (String, Location);

/// One rule.
pub(super) struct Once {
    pub(super) id: Text,
    pub(super) promise: String,
    pub(super) rows: Vec<Text>,
    pub(super) checks: Vec<Text>,
    /// All of it.
    pub(super) value: Value,
}

/// The rules of a file; none where one of them is not of the plain form.
pub(super) fn read(text: &str) -> Option<Vec<Once>> {
    // A tag may make another text of a name than of a value.
    if text.contains("!!") {
        return None;
    }
    let rules: Vec<Plain<Once>> = serde_saphyr::from_str(text).ok()?;
    Some(rules.into_iter().map(|Plain(rule)| rule).collect())
}

/// A part of a rule that is a mapping, or a list where it says so.
trait Part: Sized {
    const IS: &'static str;

    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;

    fn of_list<'de, A: SeqAccess<'de>>(_list: A) -> Result<Self, A::Error> {
        Err(A::Error::custom("a list"))
    }
}

/// A part, read as what stands there.
struct Plain<T>(T);

impl<'de, T: Part> Deserialize<'de> for Plain<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = deserializer.deserialize_any(Reader(PhantomData));
        read.map(Self)
    }
}

struct Reader<T>(PhantomData<T>);

impl<'de, T: Part> Visitor<'de> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::IS)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::of_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::of_list(list)
    }
}

/// The text of a value, and the value.
fn text<E: Error>(read: Spanned<Value>) -> Result<(Text, Value), E> {
    match &read.value {
        Value::String(text) => Ok(((text.clone(), read.referenced), read.value)),
        _ => Err(E::custom("no text")),
    }
}

/// The entries of a mapping, each of a name of its own, as `entry` reads them.
fn entries<'de, A: MapAccess<'de>>(
    mut map: A,
    mut entry: impl FnMut(&str, &mut A) -> Result<Value, A::Error>,
) -> Result<Value, A::Error> {
    let mut all = Map::new();
    while let Some(key) = map.next_key::<String>()? {
        let value = entry(&key, &mut map)?;
        let is_word = key.starts_with(|first: char| first.is_ascii_alphabetic());
        if !is_word || all.insert(key, value).is_some() {
            return Err(A::Error::custom("no word, or one that is twice"));
        }
    }
    Ok(Value::Object(all))
}

impl Part for Once {
    const IS: &'static str = "a rule";

    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let (mut id, mut promise) = (None, String::new());
        let (mut rows, mut checks) = (Vec::new(), Vec::new());
        let value = entries(map, |key, map| match key {
            "id" => {
                let (own, value) = text(map.next_value()?)?;
                id = Some(own);
                Ok(value)
            }
            "promise" => {
                let value;
                ((promise, _), value) = text(map.next_value()?)?;
                Ok(value)
            }
            "rows" => {
                let list: Vec<Spanned<Value>> = map.next_value()?;
                // Nothing at all may be a list of none.
                if list.is_empty() {
                    return Err(A::Error::custom("no rows"));
                }
                let list = list.into_iter().map(text);
                let values: Vec<Value>;
                (rows, values) = list.collect::<Result<_, A::Error>>()?;
                Ok(Value::Array(values))
            }
            "expect" => {
                let Plain(expected) = map.next_value::<Plain<Expected>>()?;
                checks = expected.checks;
                Ok(expected.value)
            }
            _ => map.next_value(),
        })?;
        let id = id.ok_or_else(|| A::Error::custom("no id"))?;
        Ok(Self {
            id,
            promise,
            rows,
            checks,
            value,
        })
    }
}

/// A list of checks, or `any:` or `all:` with one.
struct Expected {
    checks: Vec<Text>,
    value: Value,
}

impl Part for Expected {
    const IS: &'static str = "checks";

    fn of_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let (mut checks, mut values) = (Vec::new(), Vec::new());
        while let Some(Plain(Check { check, value })) = list.next_element()? {
            checks.push(check);
            values.push(value);
        }
        let value = Value::Array(values);
        Ok(Self { checks, value })
    }

    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let mut checks = Vec::new();
        let value = entries(map, |key, map| {
            if !["any", "all"].contains(&key) {
                return map.next_value();
            }
            let Plain(list) = map.next_value::<Plain<Self>>()?;
            // Nothing at all may be a list of none.
            if list.checks.is_empty() || !list.value.is_array() {
                return Err(A::Error::custom("no checks"));
            }
            checks.extend(list.checks);
            Ok(list.value)
        })?;
        Ok(Self { checks, value })
    }
}

struct Check {
    check: Text,
    value: Value,
}

impl Part for Check {
    const IS: &'static str = "a check";

    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let mut check = None;
        let value = entries(map, |key, map| {
            if key != "check" {
                return map.next_value();
            }
            let (own, value) = text(map.next_value()?)?;
            check = Some(own);
            Ok(value)
        })?;
        let check = check.ok_or_else(|| A::Error::custom("no check"))?;
        Ok(Self { check, value })
    }
}
