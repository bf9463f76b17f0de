//! Which coding of an answer a peer likes best (RFC 9110 section 12.5.3).
//!
//! Owns the reading of Accept-Encoding. Refuses to know what is coded. Invariant: a coding is chosen only if the peer
//! named it, or `*`, with a weight above 0; what cannot be read is not accepted.

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// A coding that this host can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Brotli,
    Gzip,
}

impl Coding {
    pub(super) fn name(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Gzip => "gzip",
        }
    }
}

/// The best coding for a request: by weight, then the smaller result; none where the plain form is liked better.
pub(super) fn choose(headers: &HeaderMap) -> Option<Coding> {
    // In thousandths, which is all that section 12.4.2 allows.
    let (mut brotli, mut gzip, mut plain, mut any) = (None, None, None, None);
    for line in headers.get_all(ACCEPT_ENCODING) {
        for item in line.to_str().unwrap_or_default().split(',') {
            let mut parts = item.split(';').map(|part| part.trim_matches([' ', '\t']));
            let name = parts.next().unwrap_or_default();
            let weight = match (parts.next(), parts.next()) {
                (None, _) => 1_000,
                (Some(weight), None) => thousandths(weight).unwrap_or(0),
                (Some(_), Some(_)) => 0,
            };
            let place = match name.to_ascii_lowercase().as_str() {
                "br" => &mut brotli,
                "gzip" | "x-gzip" => &mut gzip,
                "identity" => &mut plain,
                "*" => &mut any,
                _ => continue,
            };
            *place = Some(weight);
        }
    }
    let brotli = brotli.or(any).unwrap_or(0);
    let gzip = gzip.or(any).unwrap_or(0);
    let (coding, weight) = if gzip > brotli {
        (Coding::Gzip, gzip)
    } else {
        (Coding::Brotli, brotli)
    };
    (weight > 0 && weight >= plain.unwrap_or(0)).then_some(coding)
}

/// `q=0.5` in thousandths.
fn thousandths(weight: &str) -> Option<u32> {
    let value = weight
        .strip_prefix("q=")
        .or_else(|| weight.strip_prefix("Q="))?;
    let (whole, rest) = value.split_once('.').unwrap_or((value, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if rest.len() > 3 || !digits(rest) {
        return None;
    }
    let part = format!("{rest:0<3}").parse::<u32>().ok()?;
    match whole {
        "0" => Some(part),
        "1" if part == 0 => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use m0_spec::row;

    use super::*;

    #[row(E121)]
    #[test]
    fn the_peer_has_what_it_likes_best_and_nothing_that_it_does_not_take() {
        let chosen = |lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(ACCEPT_ENCODING, line.parse().expect("a value"));
            }
            choose(&headers)
        };
        let (br, gz) = (Some(Coding::Brotli), Some(Coding::Gzip));
        for (lines, coding) in [
            (&["gzip, deflate, br, zstd"][..], br),
            (&["gzip"], gz),
            (&["GZIP"], gz),
            (&["x-gzip"], gz),
            (&["gzip", "br"], br),
            (&["br;q=0.5, gzip;q=0.8"], gz),
            (&["br;q=0.800 ,\tgzip;q=0.8"], br),
            (&["*"], br),
            (&["br;q=0, *"], gz),
            (&["gzip;q=1.0, identity; q=0.5"], gz),
            (&["gzip;q=0.001"], gz),
            (&["identity;q=0, gzip;q=0.1"], gz),
            (&[], None),
            (&[""], None),
            (&["deflate, zstd"], None),
            (&["gzip;q=0"], None),
            (&["gzip;q=0.000, br; q=0"], None),
            (&["*;q=0"], None),
            (&["identity"], None),
            (&["gzip;q=0.5, identity"], None),
            (&["gzip;q=x"], None),
            (&["gzip;q=1.5"], None),
            (&["gzip;q=0.0001"], None),
            (&["gzip;q="], None),
            (&["gzip;level=9"], None),
            (&["gzip;q=1;q=1"], None),
            (&["gzipped, brr"], None),
        ] {
            assert_eq!(chosen(lines), coding, "{lines:?}");
        }
    }
}
