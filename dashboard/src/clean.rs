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

/// The same for a whole text of lines, whose line feeds are its own.
#[must_use]
pub(crate) fn clean_lines(text: &str) -> String {
    text.split('\n').map(clean).collect::<Vec<_>>().join("\n")
}

/// The same for JSON, which has escapes of its own and, outside of strings, none of these characters but line feeds.
#[must_use]
pub(crate) fn clean_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_harmful(c) && c != '\n' {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::{clean, clean_json};

    #[test]
    fn json_stays_json_and_holds_no_control_character() {
        let json = serde_json::to_string(&serde_json::json!({ "a": "x\u{9b}y\u{7f}\u{202e}\n" }))
            .unwrap_or_default();
        let cleaned = clean_json(&json);
        assert_eq!(cleaned, "{\"a\":\"x\\u009by\\u007f\\u202e\\n\"}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&cleaned).ok(),
            serde_json::from_str::<serde_json::Value>(&json).ok()
        );
    }

    #[test]
    fn a_name_cannot_drive_the_terminal() {
        assert_eq!(clean("nvme\u{1b}[2Jroot"), "nvme\\u{1b}[2Jroot");
        assert_eq!(clean("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(clean("Ünïcode °C"), "Ünïcode °C");
    }
}
