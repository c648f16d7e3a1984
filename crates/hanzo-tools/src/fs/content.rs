//! What is in a file, before or after an edit.

use std::borrow::Cow;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use hanzo_protocol::primitives::{ContentHash, ContentHasher};

use crate::patch::Splice;

/// From this many bytes on, hashing takes longer than starting a thread for it by far, and a copy is worth avoiding.
pub(super) const LARGE: usize = 1 << 20;
/// How often it is noted how far the hashing of a large content is.
const STEP: usize = 1 << 20;
/// A content and what an edit makes of it; what finds no room is hashed where the hash is wanted.
const WAITING: usize = 2;

/// The bytes of a file, hashed no more than once.
#[derive(Debug, Clone)]
pub(crate) struct Content(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    body: Body,
    hash: OnceLock<Hashed>,
    /// The thread a large content is hashed by. What an edit makes of it is hashed there as well, and not beside it: on two
    /// cores that would be in the way of writing it, and of the kernel's threads that bring it to the disk.
    hasher: Option<SyncSender<Content>>,
}

#[derive(Debug)]
enum Body {
    Whole(Arc<Vec<u8>>),
    /// What a change makes of another one, which is whole.
    Spliced {
        base: Content,
        splice: Splice,
    },
}

#[derive(Debug)]
struct Hashed {
    hash: ContentHash,
    steps: Vec<Step>,
}

/// A hasher that has had the bytes before `at`: what begins in the same way is hashed from there on.
#[derive(Debug)]
struct Step {
    at: usize,
    hasher: ContentHasher,
}

impl Content {
    /// Large content is hashed in a thread of its own from now on: the hash is wanted later.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let hasher = (bytes.len() >= LARGE).then(start_hasher);
        Self::hashed_by(hasher, Body::Whole(Arc::new(bytes)))
    }

    /// With the hash that is known already.
    pub(crate) fn hashed(bytes: Vec<u8>, hash: ContentHash) -> Self {
        let hash = OnceLock::from(Hashed { hash, steps: Vec::new() });
        Self(Arc::new(Inner { body: Body::Whole(Arc::new(bytes)), hash, hasher: None }))
    }

    /// What `splice` makes of `base`. Of a large one there is no second copy.
    pub(crate) fn spliced(base: &Self, splice: Splice) -> Self {
        let body = Body::Spliced { base: base.clone(), splice };
        if body.len() < LARGE || !matches!(base.0.body, Body::Whole(_)) {
            return Self::new(body.pieces().concat());
        }
        Self::hashed_by(base.0.hasher.clone(), body)
    }

    fn hashed_by(hasher: Option<SyncSender<Self>>, body: Body) -> Self {
        let content = Self(Arc::new(Inner { body, hash: OnceLock::new(), hasher }));
        if let Some(hasher) = &content.0.hasher {
            let _ = hasher.try_send(content.clone());
        }
        content
    }

    pub(crate) fn len(&self) -> usize {
        self.0.body.len()
    }

    /// The bytes; some of the pieces may be empty.
    pub(crate) fn pieces(&self) -> [&[u8]; 3] {
        self.0.body.pieces()
    }

    pub(crate) fn bytes(&self) -> Cow<'_, [u8]> {
        match &self.0.body {
            Body::Whole(bytes) => Cow::Borrowed(bytes),
            Body::Spliced { .. } => Cow::Owned(self.pieces().concat()),
        }
    }

    pub(crate) fn to_shared(&self) -> Arc<Vec<u8>> {
        match &self.0.body {
            Body::Whole(bytes) => Arc::clone(bytes),
            Body::Spliced { .. } => Arc::new(self.pieces().concat()),
        }
    }

    /// Waits for it where it is being worked out.
    pub(crate) fn hash(&self) -> &ContentHash {
        &self.worked_out().hash
    }

    fn worked_out(&self) -> &Hashed {
        self.0.hash.get_or_init(|| match &self.0.body {
            Body::Whole(bytes) => Hashed::of(bytes),
            Body::Spliced { base, splice } => base.worked_out().with(splice.start, self.pieces()),
        })
    }
}

impl Body {
    fn len(&self) -> usize {
        self.pieces().into_iter().map(<[u8]>::len).sum()
    }

    fn pieces(&self) -> [&[u8]; 3] {
        match self {
            Self::Whole(bytes) => [bytes, &[], &[]],
            Self::Spliced { base, splice } => {
                let [base, ..] = base.pieces();
                [&base[..splice.start], splice.middle.as_bytes(), &base[base.len() - splice.end..]]
            }
        }
    }
}

impl Hashed {
    fn of(bytes: &[u8]) -> Self {
        let mut hasher = ContentHasher::default();
        let mut steps = Vec::new();
        for (number, piece) in bytes.chunks(STEP).enumerate() {
            steps.push(Step { at: number * STEP, hasher: hasher.clone() });
            hasher.update(piece);
        }
        Self { hash: hasher.finish(), steps }
    }

    /// The hash of other content, whose first `same` bytes are those of this one.
    fn with(&self, same: usize, pieces: [&[u8]; 3]) -> Self {
        let step = self.steps.iter().rfind(|step| step.at <= same);
        let (mut done, mut hasher) =
            step.map_or_else(Default::default, |step| (step.at, step.hasher.clone()));
        for piece in pieces {
            let known = done.min(piece.len());
            hasher.update(&piece[known..]);
            done -= known;
        }
        Self { hash: hasher.finish(), steps: Vec::new() }
    }
}

/// Starts a thread that hashes what it is sent.
fn start_hasher() -> SyncSender<Content> {
    let (sender, receiver) = sync_channel::<Content>(WAITING);
    let here = cores::current();
    // Without a thread nobody receives, and it is hashed where the hash is wanted.
    let started = std::thread::Builder::new().spawn(move || {
        cores::leave(here);
        for content in receiver {
            content.worked_out();
        }
    });
    if started.is_ok() {
        // Where the system has put it behind us, it goes to another core now.
        std::thread::yield_now();
    }
    sender
}

/// A new thread often begins on the core of the one that started it: a virtual machine does not know which of its others are
/// really free. There it waits, or has the other wait, until the system looks again, which is milliseconds later.
#[cfg(target_os = "linux")]
mod cores {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    pub(super) fn current() -> usize {
        sched_getcpu()
    }

    /// Goes to another core, if there is one.
    pub(super) fn leave(core: usize) {
        let Ok(all) = sched_getaffinity(None) else { return };
        let mut others = all;
        if core < CpuSet::MAX_CPU {
            others.unset(core);
        }
        if others.count() > 0 && sched_setaffinity(None, &others).is_ok() {
            // It may come back.
            let _ = sched_setaffinity(None, &all);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod cores {
    pub(super) fn current() -> usize {
        0
    }

    pub(super) fn leave(_core: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_change_makes_of_a_large_content_is_hashed_like_any_other() {
        let text = "some line of text\n".repeat(3 * STEP / 18);
        for base in [Content::new(text.clone().into_bytes()), known(&text)] {
            for (start, end) in [
                (0, 0),
                (0, text.len()),
                (text.len(), 0),
                (7, 9),
                (STEP, 1),
                (STEP - 1, STEP),
                (2 * STEP + 1, 5),
            ] {
                let splice = Splice { start, end, middle: "other\n".into() };
                let whole = splice.of(&text);
                let content = Content::spliced(&base, splice);
                assert_eq!(content.len(), whole.len());
                assert_eq!(*content.bytes(), *whole.as_bytes());
                assert_eq!(*content.to_shared(), whole.as_bytes());
                assert_eq!(*content.hash(), ContentHash::of(whole.as_bytes()), "{start} {end}");
            }
        }
    }

    fn known(text: &str) -> Content {
        Content::hashed(text.as_bytes().to_vec(), ContentHash::of(text.as_bytes()))
    }
}
