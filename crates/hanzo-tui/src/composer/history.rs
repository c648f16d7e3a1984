//! What was asked before, newest last.

/// The most prompts that are remembered.
const MOST: usize = 1_000;

/// The prompts of earlier turns, and where in them one is.
#[derive(Debug, Clone, Default)]
pub struct PromptHistory {
    prompts: Vec<String>,
    /// Which prompt is shown, and the draft it replaced.
    browsing: Option<(usize, String)>,
}

impl PromptHistory {
    /// A history with these prompts, oldest first.
    pub fn new(prompts: impl IntoIterator<Item = String>) -> Self {
        let mut history = Self::default();
        for prompt in prompts {
            history.add(&prompt);
        }
        history
    }

    /// Remembers a prompt. The same one twice in a row is one.
    pub fn add(&mut self, prompt: &str) {
        self.browsing = None;
        if prompt.trim().is_empty() || self.prompts.last().is_some_and(|last| last == prompt) {
            return;
        }
        self.prompts.push(prompt.to_owned());
        if self.prompts.len() > MOST {
            self.prompts.remove(0);
        }
    }

    /// The prompt before the one shown. `draft` is kept for the way back.
    pub fn older(&mut self, draft: &str) -> Option<&str> {
        let (at, draft) = match self.browsing.take() {
            Some((0, draft)) => {
                self.browsing = Some((0, draft));
                return None;
            }
            Some((at, draft)) => (at - 1, draft),
            None => (self.prompts.len().checked_sub(1)?, draft.to_owned()),
        };
        self.browsing = Some((at, draft));
        Some(&self.prompts[at])
    }

    /// The prompt after the one shown, at last the draft.
    pub fn newer(&mut self) -> Option<String> {
        let (at, draft) = self.browsing.take()?;
        match self.prompts.get(at + 1) {
            Some(prompt) => {
                self.browsing = Some((at + 1, draft));
                Some(prompt.clone())
            }
            None => Some(draft),
        }
    }

    /// The text was changed by hand: the next step back begins at the newest prompt again.
    pub fn stop_browsing(&mut self) {
        self.browsing = None;
    }

    /// Different prompts that contain all words of `query`, newest first.
    pub fn search(&self, query: &str) -> Vec<&str> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let mut found: Vec<&str> = Vec::new();
        for prompt in self.prompts.iter().rev() {
            let lower = prompt.to_lowercase();
            if words.iter().all(|word| lower.contains(word.as_str())) && !found.contains(&prompt.as_str()) {
                found.push(prompt);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_ends_at_the_draft() {
        let mut history = PromptHistory::new(["one", "two", "two"].map(String::from));
        assert_eq!(history.older("dr"), Some("two"));
        assert_eq!(history.older("two"), Some("one"));
        assert_eq!(history.older("one"), None);
        assert_eq!(history.newer().as_deref(), Some("two"));
        assert_eq!(history.newer().as_deref(), Some("dr"));
        assert_eq!(history.newer(), None);
    }

    #[test]
    fn a_search_finds_words_in_any_order_newest_first() {
        let history = PromptHistory::new(["fix the test", "run it", "Test the fix"].map(String::from));
        assert_eq!(history.search("fix test"), ["Test the fix", "fix the test"]);
        assert_eq!(history.search("nothing"), Vec::<&str>::new());
    }
}
