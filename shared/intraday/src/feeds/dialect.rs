//! Old forms of RSS in terms that the parser knows: the same elements under another name or number.

use std::borrow::Cow;

/// The namespace of RSS 0.90, and of its successor RSS 1.0.
const NETSCAPE: [&str; 2] =
    ["http://my.netscape.com/rdf/simple/0.9/", "http://channel.netscape.com/rdf/simple/0.9/"];
const RSS_1_0: &str = "http://purl.org/rss/1.0/";

/// Numbers of RSS that RSS 2.0 took in unchanged; the first is none at all.
const LIKE_2_0: [&str; 7] = [
    "<rss>",
    "<rss version=\"0.93\"",
    "<rss version=\"0.94\"",
    "<rss version=\"2.0.1\"",
    "<rss version='0.93'",
    "<rss version='0.94'",
    "<rss version='2.0.1'",
];
const RSS_2_0: &str = "<rss version=\"2.0\"";

/// How far the root element is looked for: comments may stand before it.
const ROOT_BYTES_MAX: usize = 4096;

/// `text` with its root element in a form that is still spoken.
pub(super) fn modern(text: &str) -> Cow<'_, str> {
    let (start, rest) = text.split_at(text.floor_char_boundary(ROOT_BYTES_MAX));
    for namespace in NETSCAPE {
        if start.contains(namespace) {
            return Cow::Owned(start.replacen(namespace, RSS_1_0, 1) + rest);
        }
    }
    for root in LIKE_2_0 {
        if start.contains(root) {
            let end = if root.ends_with('>') { ">" } else { "" };
            return Cow::Owned(start.replacen(root, &format!("{RSS_2_0}{end}"), 1) + rest);
        }
    }
    Cow::Borrowed(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_of_an_old_form_becomes_a_known_one() {
        assert_eq!(modern("<rss><channel/></rss>"), "<rss version=\"2.0\"><channel/></rss>");
        assert_eq!(modern("<rss version=\"0.94\" x=\"\">"), "<rss version=\"2.0\" x=\"\">");
        assert_eq!(
            modern("<rdf:RDF xmlns=\"http://my.netscape.com/rdf/simple/0.9/\">"),
            "<rdf:RDF xmlns=\"http://purl.org/rss/1.0/\">"
        );
    }

    #[test]
    fn other_documents_stay_as_they_are() {
        assert!(matches!(modern("<rss version=\"2.0\"/>"), Cow::Borrowed(_)));
    }
}
