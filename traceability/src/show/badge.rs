//! The share of proven rows as a picture for a README.
//!
//! Owns the SVG. Refuses to show a share where results are missing: it says `unknown` then. Invariant: the words in the
//! picture are also its accessible name.

use crate::judge::Judged;
use crate::rows::read::Grade;
use crate::show::by_grade;
use crate::workspace::Workspace;

/// What the badge says beside `proven`.
pub fn share(workspace: &Workspace, judged: &Judged) -> Option<usize> {
    let grades = by_grade(workspace);
    let all: usize = grades.iter().map(|(_, count)| count).sum();
    let proven = grades.iter().find(|(grade, _)| *grade == Grade::Proven);
    let proven = proven.map_or(0, |(_, count)| *count);
    let unknown = matches!(judged.exit(), 2 | 3) || workspace.results.lacks_sabotage();
    // Rounded down: a hundred is said of all alone.
    (!unknown)
        .then(|| (proven * 100).checked_div(all))
        .flatten()
}

/// The picture.
pub fn svg(share: Option<usize>) -> String {
    let value = share.map_or_else(|| "unknown".to_owned(), |share| format!("{share} %"));
    let colour = match share {
        Some(90..) => "#0b6b2e",
        Some(60..90) => "#7a5200",
        Some(_) => "#a80f1c",
        None => "#555",
    };
    let (left, right) = (54, 14 + value.chars().count() * 7);
    let (all, middle) = (left + right, left + right / 2);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all}\" height=\"20\" role=\"img\" aria-label=\"proven: {value}\">\
         <title>proven: {value}</title><rect width=\"{all}\" height=\"20\" rx=\"3\" fill=\"#333\"/>\
         <path fill=\"{colour}\" d=\"M{left} 0h{}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H{left}z\"/>\
         <g fill=\"#fff\" text-anchor=\"middle\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">\
         <text x=\"{}\" y=\"14\">proven</text><text x=\"{middle}\" y=\"14\">{value}</text></g></svg>\n",
        right - 3,
        left / 2
    )
}

#[cfg(test)]
mod tests {
    use super::svg;

    #[m0_spec::row(T22)]
    #[test]
    fn the_picture_says_the_share_in_words() {
        let svg = |share| {
            let text = svg(share);
            let document = roxmltree::Document::parse(&text).expect("it is XML");
            let title = document
                .descendants()
                .find(|node| node.has_tag_name("title"))
                .and_then(|node| node.text())
                .map(str::to_owned);
            (
                document
                    .root_element()
                    .attribute("aria-label")
                    .map(str::to_owned),
                title,
            )
        };
        let both = |text: &str| (Some(text.to_owned()), Some(text.to_owned()));
        assert_eq!(svg(Some(87)), both("proven: 87 %"));
        assert_eq!(svg(Some(100)), both("proven: 100 %"));
        assert_eq!(svg(None), both("proven: unknown"));
    }
}
