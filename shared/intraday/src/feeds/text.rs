//! Readable text from what feeds carry: HTML, escaped HTML, or text that only looks like it.

use html2text::render::TrivialDecorator;

/// Wide enough that no line is broken: a passage is cut where its reader wants it.
const LINE_CHARACTERS: usize = 100_000;
/// More is no news item. A revision's text is cut here.
const TEXT_BYTES_MAX: usize = 256 * 1024;
/// How much of a text stands in for a missing headline.
const HEADLINE_CHARACTERS_MAX: usize = 120;

/// `markup` as paragraphs, a blank line between them.
pub(super) fn plain(markup: &str) -> String {
    let mut text = String::with_capacity(markup.len());
    for line in unmarked(markup).lines() {
        let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
        if words.is_empty() && (text.is_empty() || text.ends_with("\n\n")) {
            continue;
        }
        text.push_str(&words);
        text.push('\n');
    }
    cut(text.trim_end(), TEXT_BYTES_MAX).to_owned()
}

/// The headline as one line; the beginning of `text` where there is none. `None` if both are empty.
pub(super) fn headline(markup: &str, text: &str) -> Option<String> {
    let title = unmarked(markup).split_whitespace().collect::<Vec<_>>().join(" ");
    if !title.is_empty() {
        return Some(title);
    }
    let start: String = text.lines().next()?.chars().take(HEADLINE_CHARACTERS_MAX).collect();
    Some(start).filter(|start| !start.is_empty())
}

fn unmarked(markup: &str) -> String {
    if !looks_like_html(markup) {
        return markup.to_owned();
    }
    let config = html2text::config::with_decorator(TrivialDecorator::new()).raw_mode(true).no_table_borders();
    config.string_from_read(markup.as_bytes(), LINE_CHARACTERS).unwrap_or_else(|_| markup.to_owned())
}

/// Whether there is a tag or an entity: "profit < loss & more" has neither and stays as it is.
fn looks_like_html(text: &str) -> bool {
    let tag = text
        .match_indices('<')
        .any(|(at, _)| text[at + 1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!'));
    let entity = text.match_indices('&').any(|(at, _)| {
        let name: String =
            text[at + 1..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '#').collect();
        !name.is_empty() && text[at + 1 + name.len()..].starts_with(';')
    });
    tag || entity
}

fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_paragraphs_without_links() {
        let html = "<p>Apple <b>beat</b> estimates.</p>\n<p>Shares rose <a href=\"https://e.org\">4%</a>.</p><img src=x>";
        assert_eq!(plain(html), "Apple beat estimates.\n\nShares rose 4%.");
    }

    #[test]
    fn entities_are_read_in_titles_too() {
        assert_eq!(headline("AT&amp;T &#8217;s\n  day", ""), Some("AT&T ’s day".to_owned()));
    }

    #[test]
    fn text_that_only_looks_like_markup_stays() {
        assert_eq!(plain("profit < loss & more"), "profit < loss & more");
        assert_eq!(plain("R&D; up"), "R&D; up");
    }

    #[test]
    fn beginning_of_the_text_stands_in_for_a_headline() {
        assert_eq!(headline(" ", "First line\nsecond"), Some("First line".to_owned()));
        assert_eq!(headline("", ""), None);
    }

    #[test]
    fn endless_text_is_cut_between_characters() {
        let text = plain(&"ö".repeat(TEXT_BYTES_MAX));
        assert!(text.len() <= TEXT_BYTES_MAX && text.chars().all(|c| c == 'ö'));
    }
}
