//! Text from outside, made harmless for a terminal.

use std::borrow::Cow;

/// The same text with control characters, which could drive a terminal, and characters that reorder or hide what
/// stands beside them, made visible as `\u{…}`.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().fold(String::new(), |mut out, c| {
        if is_harmful(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        out
    }))
}

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn a_name_cannot_drive_the_terminal() {
        assert_eq!(clean("nvme\u{1b}[2Jroot"), "nvme\\u{1b}[2Jroot");
        assert_eq!(clean("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(clean("Ünïcode °C"), "Ünïcode °C");
    }
}
