//! The characters of a feed, whatever its bytes and its declaration say.
//!
//! Declarations lie more often than bytes do: bytes that are valid UTF-8 are read as UTF-8 even where
//! another encoding is declared, because text in one of those is practically never valid UTF-8.

use encoding_rs::{Encoding, WINDOWS_1252};

/// How far a declaration is looked for; it stands at the very beginning.
const DECLARATION_BYTES_MAX: usize = 256;

/// `bytes` as text, without byte order mark and without XML declaration: what it said is no longer true.
pub(super) fn decode(bytes: &[u8]) -> String {
    let text = match Encoding::for_bom(bytes) {
        Some((encoding, _)) => encoding.decode(bytes).0,
        None => match std::str::from_utf8(bytes) {
            Ok(text) => text.into(),
            Err(_) => declared(bytes).unwrap_or(WINDOWS_1252).decode(bytes).0,
        },
    };
    let text = text.trim_start();
    let body = text.strip_prefix("<?xml").and_then(|rest| rest.split_once("?>")).map(|(_, body)| body);
    body.unwrap_or(text).to_owned()
}

fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(DECLARATION_BYTES_MAX)]);
    let declaration = start.split_once("<?xml")?.1.split_once("?>")?.0;
    let value = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next()?;
    let label = value[quote.len_utf8()..].split(quote).next()?;
    Encoding::for_label(label.trim().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_utf8_are_read_so_whatever_is_declared() {
        let text = "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n<rss>Börse</rss>";
        assert_eq!(decode(text.as_bytes()), "\n<rss>Börse</rss>");
    }

    #[test]
    fn other_bytes_are_read_as_declared() {
        let latin = b"<?xml version='1.0' encoding='ISO-8859-1'?><rss>B\xf6rse</rss>";
        assert_eq!(decode(latin), "<rss>Börse</rss>");
        let big5 = b"<?xml version=\"1.0\" encoding=\"big5\"?><rss>\xa4\xa4</rss>";
        assert_eq!(decode(big5), "<rss>中</rss>");
    }

    #[test]
    fn other_bytes_without_a_declaration_are_western() {
        assert_eq!(decode(b"<rss>B\xf6rse</rss>"), "<rss>Börse</rss>");
    }

    #[test]
    fn byte_order_mark_decides_and_goes() {
        assert_eq!(decode("\u{feff}<rss>ö</rss>".as_bytes()), "<rss>ö</rss>");
        let utf16: Vec<u8> = "\u{feff}<rss>ö</rss>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(decode(&utf16), "<rss>ö</rss>");
    }
}
