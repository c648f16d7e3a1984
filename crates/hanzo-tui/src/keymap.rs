//! Which key does what, outside the text itself: the defaults, and the user's own file over them.
//!
//! The file is a JSON object from a key, or two keys one after the other, to an action, in the notation of
//! [`Key::parse_all`]: `{"<C-g>": "editor", "<C-x><C-f>": "find", "<C-t>": "none"}`. A file with a mistake is not used at all, and the mistake is told: half a keymap surprises more than none.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::edit::{Key, KeyCode, Modifiers};

macro_rules! actions {
    ($($(#[doc = $doc:literal])+ $action:ident = $name:literal, $keys:expr, $about:literal;)+) => {
        /// Something a key can do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Action {
            $($(#[doc = $doc])+ $action,)+
        }

        impl Action {
            /// All of them, in the order of the help.
            pub const ALL: &'static [Self] = &[$(Self::$action),+];

            /// Its name in the keybinding file.
            pub fn name(self) -> &'static str {
                match self { $(Self::$action => $name,)+ }
            }

            /// What it does, in a few words.
            pub fn about(self) -> &'static str {
                match self { $(Self::$action => $about,)+ }
            }

            fn default_keys(self) -> &'static str {
                match self { $(Self::$action => $keys,)+ }
            }
        }
    };
}

actions! {
    /// Stops the turn, closes what is open.
    Interrupt = "interrupt", "<Esc>", "stop the turn; twice on an empty prompt: go back";
    /// Copies nothing yet; stops, clears, leaves.
    Cancel = "cancel", "<C-c>", "stop the turn, else clear the prompt, else leave";
    /// Leaves.
    Leave = "leave", "<C-d>", "leave, on an empty prompt";
    /// Sends, after the running turn.
    Queue = "queue", "<Tab>", "complete; while a turn runs: send after it";
    /// Changes posture and mode.
    Posture = "posture", "<S-Tab>", "ask → auto → plan";
    /// A line break.
    Newline = "newline", "<C-j> <S-CR> <M-CR>", "line break (also \\ before Enter)";
    /// Searches the prompts of before.
    SearchHistory = "search_history", "<C-r>", "search earlier prompts";
    /// Opens the user's editor.
    Editor = "editor", "<C-g> <C-x><C-e>", "write in $EDITOR";
    /// Attaches the image on the clipboard.
    Image = "image", "<C-v> <M-v>", "attach the image on the clipboard";
    /// Searches the thread.
    Find = "find", "<C-f>", "search this thread";
    /// Shows the whole transcript.
    Transcript = "transcript", "<C-o>", "show the last tool outputs in full";
    /// Shows or hides the plan.
    Plan = "plan", "<C-t>", "show or hide the plan";
    /// Shows or hides what the model thinks.
    Reasoning = "reasoning", "<M-t>", "show or hide what the model thinks";
    /// Takes the last waiting input back.
    Unqueue = "unqueue", "<M-Up>", "take back what waits to be sent";
    /// Draws everything anew.
    Redraw = "redraw", "<C-l>", "draw anew";
    /// Gives the terminal to the shell.
    Suspend = "suspend", "<C-z>", "to the shell; `fg` comes back";
}

/// A key's meaning, where it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keymap {
    bindings: Vec<(Chord, Action)>,
}

/// One key, or two one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chord {
    before: Option<Key>,
    key: Key,
}

impl Chord {
    fn parse(notation: &str) -> Option<Self> {
        match Key::parse_all(notation).ok()?.as_slice() {
            [key] => Some(Self { before: None, key: *key }),
            [before, key] => Some(Self { before: Some(*before), key: *key }),
            _ => None,
        }
    }

    fn first(&self) -> Key {
        self.before.unwrap_or(self.key)
    }
}

/// What a key comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// It does something.
    Action(Action),
    /// It is the first of two keys.
    Begun,
    /// It is bound to nothing.
    Nothing,
}

impl Default for Keymap {
    fn default() -> Self {
        let mut bindings = Vec::new();
        for action in Action::ALL {
            for notation in action.default_keys().split(' ') {
                let chord =
                    Chord::parse(notation).expect("our own notation is right; a test reads all of it");
                bindings.push((chord, *action));
            }
        }
        Self { bindings }
    }
}

/// Why a keybinding file is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeymapError {
    /// It is not an object from keys to names.
    #[error("it is not a JSON object from keys to actions: {0}")]
    Shape(String),
    /// A key is not one.
    #[error("`{0}` is neither one key nor two\n\nhint: write `<C-g>`, `<M-t>`, `<S-Tab>`, `<C-x><C-e>`")]
    Key(String),
    /// A key both does something and begins something.
    #[error("`{0}` does something by itself and cannot begin `{1}`\n\nhint: bind `{0}` to \"none\" first")]
    Prefix(String, String),
    /// An action is unknown.
    #[error("there is no action `{name}` for `{key}`\n\nhint: the actions are {known}")]
    Action {
        /// The key it stands for.
        key: String,
        /// What was written.
        name: String,
        /// What could have been.
        known: String,
    },
    /// The key is needed to write.
    #[error("`{0}` types text and cannot be an action")]
    Typing(String),
    /// Nothing would be left to stop with.
    #[error("`{0}` would be left without a key\n\nhint: bind another key to it first")]
    Unreachable(&'static str),
}

impl Keymap {
    /// The defaults, changed as `json` says. `"none"` unbinds a key.
    pub fn with_file(json: &str) -> Result<Self, KeymapError> {
        let wishes: BTreeMap<String, String> = serde_json::from_str(json.trim_start_matches('\u{feff}'))
            .map_err(|error| KeymapError::Shape(error.to_string()))?;
        let mut map = Self::default();
        for (notation, name) in wishes {
            let chord = Chord::parse(&notation).ok_or_else(|| KeymapError::Key(notation.clone()))?;
            let key = chord.first();
            if key.typed().is_some()
                || matches!(
                    key,
                    Key { code: KeyCode::Enter | KeyCode::Backspace, modifiers: Modifiers::NONE }
                )
            {
                return Err(KeymapError::Typing(notation));
            }
            map.bindings.retain(|(bound, _)| *bound != chord);
            if name == "none" {
                continue;
            }
            let action = Action::ALL.iter().find(|action| action.name() == name).ok_or_else(|| {
                let known: Vec<&str> = Action::ALL.iter().map(|action| action.name()).collect();
                KeymapError::Action { key: notation.clone(), name: name.clone(), known: known.join(", ") }
            })?;
            map.bindings.push((chord, *action));
        }
        for (chord, _) in &map.bindings {
            if let Some(before) = chord.before.filter(|before| map.action(*before).is_some()) {
                let whole = format!("{} {}", spoken(before), spoken(chord.key));
                return Err(KeymapError::Prefix(spoken(before), whole));
            }
        }
        for needed in [Action::Interrupt, Action::Cancel] {
            if !map.bindings.iter().any(|(_, action)| *action == needed) {
                return Err(KeymapError::Unreachable(needed.name()));
            }
        }
        Ok(map)
    }

    /// What `key` does by itself.
    pub fn action(&self, key: Key) -> Option<Action> {
        self.bound(Chord { before: None, key })
    }

    fn bound(&self, chord: Chord) -> Option<Action> {
        self.bindings.iter().find(|(bound, _)| *bound == chord).map(|(_, action)| *action)
    }

    /// What `key` comes to after `before`, the first of two keys. Two that mean nothing together are two single ones.
    pub fn binding(&self, before: Option<Key>, key: Key) -> Binding {
        let together = before.and_then(|before| self.bound(Chord { before: Some(before), key }));
        match together.or_else(|| self.action(key)) {
            Some(action) => Binding::Action(action),
            None if self.bindings.iter().any(|(bound, _)| bound.before == Some(key)) => Binding::Begun,
            None => Binding::Nothing,
        }
    }

    /// The keys of an action, as a person writes them.
    pub fn keys(&self, action: Action) -> String {
        let keys = self.bindings.iter().filter(|(_, bound)| *bound == action).map(|(chord, _)| {
            let before = chord.before.map(|key| format!("{} ", spoken(key))).unwrap_or_default();
            format!("{before}{}", spoken(chord.key))
        });
        keys.collect::<Vec<_>>().join(", ")
    }
}

/// A key as a person writes it: `Ctrl+G`.
pub fn spoken(key: Key) -> String {
    let mut name = String::new();
    for (modifier, word) in
        [(Modifiers::CONTROL, "Ctrl+"), (Modifiers::ALT, "Alt+"), (Modifiers::SHIFT, "Shift+")]
    {
        if key.modifiers.contains(modifier) {
            name.push_str(word);
        }
    }
    match key.code {
        KeyCode::Char(' ') => name.push_str("Space"),
        KeyCode::Char(c) => name.extend(c.to_uppercase()),
        KeyCode::Escape => name.push_str("Esc"),
        other => {
            let _ = write!(name, "{other:?}");
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_a_key_and_no_key_has_two() {
        let map = Keymap::default();
        for action in Action::ALL {
            assert!(!map.keys(*action).is_empty(), "{action:?}");
        }
        for (index, (key, _)) in map.bindings.iter().enumerate() {
            assert!(!map.bindings[..index].iter().any(|(other, _)| other == key), "{key:?}");
        }
    }

    #[test]
    fn the_users_file_goes_over_the_defaults() {
        let map = Keymap::with_file(r#"{"<C-e>": "editor", "<C-t>": "none"}"#).unwrap();
        assert_eq!(map.action(Key::ctrl('e')), Some(Action::Editor));
        assert_eq!(map.action(Key::ctrl('g')), Some(Action::Editor));
        assert_eq!(map.action(Key::ctrl('t')), None);
        assert_eq!(map.keys(Action::Editor), "Ctrl+G, Ctrl+X Ctrl+E, Ctrl+E");
    }

    #[test]
    fn two_keys_are_one_binding() {
        let map = Keymap::with_file(r#"{"<C-x><C-f>": "find"}"#).unwrap();
        let (x, e) = (Key::ctrl('x'), Key::ctrl('e'));
        assert_eq!(map.binding(None, x), Binding::Begun);
        assert_eq!(map.binding(Some(x), e), Binding::Action(Action::Editor));
        assert_eq!(map.binding(Some(x), Key::ctrl('f')), Binding::Action(Action::Find));
        assert_eq!(map.binding(None, e), Binding::Nothing);
        // The second key means what it means alone when the two mean nothing.
        assert_eq!(map.binding(Some(x), Key::ctrl('g')), Binding::Action(Action::Editor));
    }

    #[test]
    fn a_mistake_is_told_and_nothing_of_the_file_counts() {
        let wrong = |json| Keymap::with_file(json).unwrap_err().to_string();
        assert!(wrong("[]").contains("JSON object"));
        assert!(wrong(r#"{"<C-nonsense>": "editor"}"#).contains("neither one key nor two"));
        assert!(wrong(r#"{"<C-g><C-e>": "editor"}"#).contains("`Ctrl+G` does something by itself"));
        assert!(wrong(r#"{"<C-e>": "edit"}"#).contains("the actions are interrupt, cancel"));
        assert!(wrong(r#"{"a": "editor"}"#).contains("types text"));
        assert!(wrong(r#"{"<C-c>": "none"}"#).contains("without a key"));
    }
}
