//! Segments: pieces of a text, each small enough to be read on its own.
//!
//! The title is the first. A paragraph is cut between sentences, and a sentence only when it alone is
//! too long, then between words. Nothing is lost but white space, control characters (PostgreSQL stores
//! no NUL), and what lies beyond [`SEGMENTS_MAX`].

use unicode_segmentation::UnicodeSegmentation;

/// The longest segment, in characters: a few sentences, so that what stands together belongs together.
pub const SEGMENT_CHARS_MAX: usize = 400;
/// The most segments of one item. A longer text is not news, and one transaction writes them all.
pub const SEGMENTS_MAX: usize = 500;

/// Words whose full stop does not end a sentence.
const ABBREVIATIONS: [&str; 22] = [
    "inc.", "corp.", "co.", "ltd.", "plc.", "bros.", "mr.", "mrs.", "ms.", "dr.", "st.", "no.", "vs.",
    "jan.", "feb.", "aug.", "sept.", "sep.", "oct.", "nov.", "dec.", "u.s.",
];

/// Cuts an item into segments. At least one, unless title and text are blank.
#[must_use]
pub fn split(title: &str, text: &str) -> Vec<String> {
    std::iter::once(title)
        .chain(text.lines())
        .flat_map(|paragraph| pack(&printable(paragraph)))
        .take(SEGMENTS_MAX)
        .collect()
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Puts as many whole sentences into each segment as fit.
fn pack(paragraph: &str) -> Vec<String> {
    let mut packed: Vec<String> = Vec::new();
    for piece in sentences(paragraph).into_iter().flat_map(|sentence| bounded(&sentence)) {
        match packed.last_mut().filter(|last| chars(last) + 1 + chars(&piece) <= SEGMENT_CHARS_MAX) {
            Some(last) => {
                last.push(' ');
                last.push_str(&piece);
            }
            None => packed.push(piece),
        }
    }
    packed
}

/// The sentences of a paragraph, with those the abbreviations cut put together again.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for part in paragraph.split_sentence_bounds().map(str::trim).filter(|part| !part.is_empty()) {
        match sentences.last_mut().filter(|last| ends_with_abbreviation(last)) {
            Some(last) => {
                last.push(' ');
                last.push_str(part);
            }
            None => sentences.push(part.to_owned()),
        }
    }
    sentences
}

fn ends_with_abbreviation(text: &str) -> bool {
    let last = text.rsplit(char::is_whitespace).next().unwrap_or_default().to_lowercase();
    let initial = last.ends_with('.') && chars(&last) == 2;
    initial || ABBREVIATIONS.contains(&last.trim_start_matches(['(', '"', '“']))
}

/// A sentence in pieces that are not too long, cut between words where there are any.
fn bounded(sentence: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for word in sentence.split_word_bounds().flat_map(cut) {
        if pieces.last().is_some_and(|last| chars(last) + chars(&word) > SEGMENT_CHARS_MAX) {
            pieces.push(String::new());
        }
        if let Some(last) = pieces.last_mut() {
            last.push_str(&word);
        }
    }
    let trimmed = pieces.into_iter().map(|piece| piece.trim().to_owned());
    trimmed.filter(|piece| !piece.is_empty()).collect()
}

/// A word in pieces, for texts without words.
fn cut(word: &str) -> Vec<String> {
    let characters: Vec<char> = word.chars().collect();
    characters.chunks(SEGMENT_CHARS_MAX).map(|piece| piece.iter().collect()).collect()
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn title_stands_alone_and_paragraphs_are_not_joined() {
        assert_eq!(
            split(" Apple beats ", "First one.\n\nSecond one. And more.\n"),
            ["Apple beats", "First one.", "Second one. And more."]
        );
    }

    #[test]
    fn abbreviation_does_not_end_a_sentence() {
        let text = "Apple Inc. Said it paid J. P. Morgan. Then it rained.";
        assert_eq!(sentences(text), ["Apple Inc. Said it paid J. P. Morgan.", "Then it rained."]);
    }

    #[test]
    fn long_paragraph_is_cut_between_sentences() {
        let sentence = format!("{}.", "Word ".repeat(30).trim());
        let segments = split("", &[sentence.as_str(); 5].join(" "));
        assert_eq!(segments.len(), 3);
        assert!(segments.iter().all(|segment| segment.ends_with("Word.")));
    }

    #[test]
    fn blank_item_has_no_segment() {
        assert_eq!(split(" ", "\n \n"), Vec::<String>::new());
    }

    #[test]
    fn endless_text_is_bounded() {
        assert_eq!(split("", &"a\n".repeat(SEGMENTS_MAX + 10)).len(), SEGMENTS_MAX);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_text_is_cut_into_short_pieces_and_nothing_is_lost(text in "(?s).{0,3000}") {
            let segments = split("", &text);
            let visible = |text: &str| text.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect::<String>();
            prop_assert!(segments.iter().all(|segment| chars(segment) <= SEGMENT_CHARS_MAX));
            prop_assert_eq!(visible(&segments.concat()), visible(&text));
        }
    }
}
