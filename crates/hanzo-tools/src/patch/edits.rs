//! Plain replacements: this text, which occurs once, becomes that text.

use std::borrow::Cow;

use hanzo_protocol::primitives::Position;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{PatchError, Splice};

/// How many places of an ambiguous text are shown.
pub(super) const MAX_CANDIDATES: usize = 10;

/// A replacement.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Edit {
    /// The text to replace; it occurs exactly once.
    #[serde(alias = "old_string", alias = "oldText", alias = "old_str", alias = "search")]
    pub(crate) old_text: String,
    /// What to put there.
    #[serde(alias = "new_string", alias = "newText", alias = "new_str", alias = "replace")]
    pub(crate) new_text: String,
    /// Replace every occurrence.
    #[serde(default, alias = "replace_all", alias = "replaceAll")]
    pub(crate) all: bool,
}

/// What replacements make of the text, one after the other.
pub(crate) fn replace(text: &str, edits: &[Edit]) -> Result<Splice, PatchError> {
    let mut all = Splice { start: text.len(), end: 0, middle: String::new() };
    let mut before = Cow::Borrowed(text);
    for (index, edit) in edits.iter().enumerate() {
        let this = replace_one(&before, edit, index, edits.len())?;
        all = if index == 0 { this } else { this.after(&all, &before) };
        if index + 1 < edits.len() {
            before = Cow::Owned(all.of(text));
        }
    }
    Ok(all)
}

impl Splice {
    /// This change of `between`, which `first` has made, and `first` as one.
    fn after(self, first: &Self, between: &str) -> Self {
        let (start, end) = (self.start.min(first.start), self.end.min(first.end));
        let kept = between.len() - self.end;
        let middle =
            [&between[start..self.start], &self.middle, &between[kept..between.len() - end]].concat();
        Self { start, end, middle }
    }
}

fn replace_one(text: &str, edit: &Edit, index: usize, count: usize) -> Result<Splice, PatchError> {
    let which = if count == 1 { String::new() } else { format!(" (edit {index} of {count}, from 0)") };
    if edit.old_text.is_empty() {
        return Err(PatchError::NotFound {
            what: format!("`old_text` is empty{which}, so it says no place"),
        });
    }
    if edit.old_text == edit.new_text {
        return Err(PatchError::NotFound { what: format!("`old_text` and `new_text` are the same{which}") });
    }
    // Where every line ends with CRLF, a caller's bare line feeds mean that.
    let crlf = uses_crlf_only(text);
    let (old, new) = if crlf {
        (with_crlf(&edit.old_text), with_crlf(&edit.new_text))
    } else {
        (edit.old_text.clone(), edit.new_text.clone())
    };
    let places: Vec<usize> = overlapping(text, &old);
    match places.as_slice() {
        [] => Err(PatchError::NotFound { what: format!("`old_text` is not there{which}") }),
        [at] => Ok(Splice { start: *at, end: text.len() - at - old.len(), middle: new }),
        [first, ..] if edit.all => {
            // What is behind the last place is not looked for: of places that overlap not every one is replaced.
            Ok(Splice { start: *first, end: 0, middle: text[*first..].replace(&old, &new) })
        }
        _ => Err(PatchError::Ambiguous {
            what: format!("`old_text` is there {} times{which}", places.len()),
            candidates: places.iter().take(MAX_CANDIDATES).map(|at| position(text, *at)).collect(),
        }),
    }
}

/// Every place where `old` begins, those that overlap included: of two such neither is more right.
fn overlapping(text: &str, old: &str) -> Vec<usize> {
    let finder = memchr::memmem::Finder::new(old);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(at) = finder.find(&text.as_bytes()[from..]) {
        places.push(from + at);
        from += at + old.chars().next().map_or(1, char::len_utf8);
        if places.len() > 10_000 {
            break;
        }
    }
    places
}

pub(super) fn uses_crlf_only(text: &str) -> bool {
    let mut any = false;
    for (at, _) in text.match_indices('\n') {
        if at == 0 || text.as_bytes()[at - 1] != b'\r' {
            return false;
        }
        any = true;
    }
    any
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn position(text: &str, at: usize) -> Position {
    let before = &text[..at];
    let line = before.matches('\n').count();
    let col = before.rsplit('\n').next().unwrap_or_default().chars().count();
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Position { line: number(line), col: number(col) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn several_replacements_are_one_change(
            text in "[ab\n]{0,24}",
            edits in prop::collection::vec(("[ab\n]{1,3}", "[abc\n]{0,4}", any::<bool>()), 1..4),
        ) {
            let edits: Vec<Edit> = edits
                .into_iter()
                .map(|(old_text, new_text, all)| Edit { old_text, new_text, all })
                .collect();
            if let Ok(change) = replace(&text, &edits) {
                let after = edits.iter().fold(text.clone(), |text, edit| text.replace(&edit.old_text, &edit.new_text));
                prop_assert!(change.start + change.end <= text.len());
                prop_assert_eq!(change.of(&text), after);
            }
        }
    }
}
