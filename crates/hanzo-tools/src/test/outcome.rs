//! What came of a run, in one form for all runners.

/// How much of a failure's text is read at all.
const MAX_TEXT: usize = 16 << 10;
/// Failures kept; more are counted.
pub(super) const MAX_FAILURES: usize = 500;

/// Counts and failures.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) pass: u64,
    pub(crate) fail: u64,
    pub(crate) skip: u64,
    /// What the runner says it took, in seconds.
    pub(crate) seconds: Option<f64>,
    pub(crate) failures: Vec<Failure>,
    /// Whether the runner never came to run tests because building failed.
    pub(crate) is_build_failure: bool,
    /// What is not as it should be.
    pub(crate) notes: Vec<String>,
}

/// A test that failed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Failure {
    pub(crate) name: String,
    /// Why, as far as it was written down.
    pub(crate) text: String,
    /// Where, when the runner says so itself: a path, a line and a column, both from 0.
    pub(crate) at: Option<(String, u32, u32)>,
    /// The directory that paths in the text are relative to, when it is not the suite's.
    pub(crate) directory: Option<String>,
}

impl Failure {
    pub(crate) fn new(name: impl Into<String>, text: &str) -> Self {
        let text = text.trim_matches('\n');
        let text = &text[..text.floor_char_boundary(MAX_TEXT)];
        Self { name: name.into(), text: text.to_owned(), ..Self::default() }
    }
}

impl Outcome {
    pub(crate) fn total(&self) -> u64 {
        self.pass + self.fail + self.skip
    }

    /// A test failed.
    pub(crate) fn failed(&mut self, failure: Failure) {
        self.fail += 1;
        self.keep(failure);
    }

    /// Remembers a failure that is counted elsewhere.
    pub(crate) fn keep(&mut self, failure: Failure) {
        if self.failures.len() < MAX_FAILURES {
            self.failures.push(failure);
        }
    }

    /// Takes in what another report says.
    pub(crate) fn add(&mut self, other: Self) {
        self.pass += other.pass;
        self.fail += other.fail;
        self.skip += other.skip;
        self.seconds = match (self.seconds, other.seconds) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        self.is_build_failure |= other.is_build_failure;
        other.failures.into_iter().for_each(|failure| self.keep(failure));
        self.notes.extend(other.notes);
    }
}
