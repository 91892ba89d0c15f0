//! The words of a segment, with what stands around them.

use unicode_segmentation::UnicodeSegmentation;

/// A word of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    /// The word without a possessive ending.
    pub text: &'a str,
    /// Everything before it.
    pub before: &'a str,
    /// Everything after it, the possessive ending included.
    pub after: &'a str,
}

/// The words of `text`, in order. A colon separates them, as in `NASDAQ:AAPL`.
pub(super) fn words(text: &str) -> Vec<Word<'_>> {
    let parts = text.unicode_word_indices().flat_map(|(start, word)| {
        let mut offset = start;
        word.split(':').map(move |part| {
            let start = offset;
            offset += part.len() + 1;
            (start, part)
        })
    });
    parts
        .map(|(start, word)| {
            let bare = without_possessive(word);
            Word { text: bare, before: &text[..start], after: &text[start + bare.len()..] }
        })
        .collect()
}

fn without_possessive(word: &str) -> &str {
    word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word)
}

/// Whether a text is set in capitals throughout, so that capitals say nothing.
pub(super) fn shouts(text: &str) -> bool {
    let cased = text.chars().filter(|c| c.is_lowercase() || c.is_uppercase());
    let (lower, all) = cased.fold((0, 0), |(lower, all), c| (lower + usize::from(c.is_lowercase()), all + 1));
    all > 10 && lower * 5 < all
}
