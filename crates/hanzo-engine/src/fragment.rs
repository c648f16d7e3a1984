//! What the host adds to a thread: text for the model, and sentences for the user.

use hanzo_protocol::item::{ItemContent, NoticeLevel};

/// Text for the model, marked with its kind. Everything that changes from day to day or from step to step is told so,
/// appended, and never by changing the system message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// What sort of text, which also is its tag.
    pub kind: &'static str,
    /// The text.
    pub text: String,
}

impl From<Fragment> for ItemContent {
    fn from(fragment: Fragment) -> Self {
        Self::Fragment { kind: fragment.kind.to_owned(), text: fragment.text }
    }
}

/// Something the user should know and the model need not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How grave it is.
    pub level: NoticeLevel,
    /// The sentence to show.
    pub text: String,
}

impl Notice {
    /// Good to know.
    pub fn info(text: impl Into<String>) -> Self {
        Self { level: NoticeLevel::Info, text: text.into() }
    }

    /// Something did not go as asked.
    pub fn warning(text: impl Into<String>) -> Self {
        Self { level: NoticeLevel::Warning, text: text.into() }
    }
}

impl From<Notice> for ItemContent {
    fn from(notice: Notice) -> Self {
        Self::Notice { level: notice.level, text: notice.text }
    }
}
