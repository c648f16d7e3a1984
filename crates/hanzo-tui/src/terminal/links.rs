//! Where text leads. A ratatui span has a style and no address, so the address is carried by the one part of a style that we
//! draw nothing with, the colour of the underline: its number is the address's place in a table. Links are written as OSC 8,
//! which terminals that do not know it ignore.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use ratatui::style::{Color, Style};

/// How many addresses are kept; text with one more is text.
const MOST: usize = 20_000;
/// The longest address terminals are known to take.
const LONGEST: usize = 2_000;

#[derive(Default)]
struct Table {
    targets: Vec<Arc<str>>,
    places: HashMap<Arc<str>, u32>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(Mutex::default);

/// `style` for text that leads to `address`, if that is one a click may open.
pub fn leading_to(style: Style, address: &str) -> Style {
    let Some(target) =
        hanzo_md_render::ansi::hyperlink_target(address).filter(|target| target.len() <= LONGEST)
    else {
        return style;
    };
    let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = table.places.get(target.as_str()).copied();
    let place = known.or_else(|| {
        let place = u32::try_from(table.targets.len()).ok().filter(|_| table.targets.len() < MOST)?;
        let target: Arc<str> = Arc::from(target);
        table.targets.push(Arc::clone(&target));
        table.places.insert(target, place);
        Some(place)
    });
    match place {
        Some(place) => style.underline_color(Color::from_u32(place)),
        None => style,
    }
}

/// Writes the start of a link, or its end.
pub(super) fn write(ink: Option<Color>, out: &mut Vec<u8>) {
    let target = match ink {
        Some(Color::Rgb(high, middle, low)) => {
            let place = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
            TABLE.lock().unwrap_or_else(PoisonError::into_inner).targets.get(place).cloned()
        }
        _ => None,
    };
    let mut sequence = String::from("\x1b]8;");
    match target {
        Some(target) => {
            // One name per address: the parts of a broken link are one to the terminal.
            let mut hasher = DefaultHasher::new();
            target.hash(&mut hasher);
            let _ = write!(sequence, "id={:08x};{target}\x1b\\", hasher.finish() & 0xffff_ffff);
        }
        None => sequence.push_str(";\x1b\\"),
    }
    out.extend_from_slice(sequence.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_opened_and_closed_and_only_where_a_click_is_safe() {
        let style = leading_to(Style::new(), "https://example.org/a b");
        let mut out = Vec::new();
        write(style.underline_color, &mut out);
        write(None, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("\x1b]8;id="), "{text:?}");
        assert!(text.ends_with(";https://example.org/a%20b\x1b\\\x1b]8;;\x1b\\"), "{text:?}");
        assert_eq!(
            leading_to(Style::new(), "https://example.org/a b"),
            style,
            "the same address, the same place"
        );
        assert_eq!(leading_to(Style::new(), "javascript:alert(1)"), Style::new());
    }
}
