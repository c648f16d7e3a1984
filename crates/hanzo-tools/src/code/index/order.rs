//! The names in the order in which an answer shows them, with marks that tell most of those that do not fit a query without
//! looking at them.
//!
//! Putting half a million names in order takes too long to do it for every file that changes. Names that came later are the
//! tail: a search looks at each of them, and when there are too many, all are put in order again.

use std::ops::Range;

use super::pairs::{Pairs, Stand};
use super::table::{NONE, Texts, begins_word};

/// With no more names than this behind those in order, a search is as quick.
const FEW_LATER: usize = 2048;

/// Spreads pairs of letters over the bits.
const FACTOR: u32 = 0x9E37_79B1;

/// What of a text a query can be held against: a text that lacks a bit of the query does not fit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Marks {
    /// The first two bytes.
    head: [u8; 2],
    /// Its letters.
    any: u64,
    /// The letters words of it begin with.
    initial: u64,
    /// Every two letters that follow one another: two bits each, that others share.
    pairs: u128,
    /// The first two letters of its words.
    starts: u64,
}

impl Marks {
    /// Of a text and the same in lower case.
    fn of(text: &[u8], lower: &[u8]) -> Self {
        let mut marks = Self { head: head(lower), ..Self::default() };
        let mut before = 0;
        for (at, byte) in lower.iter().enumerate() {
            let letter = letter_bit(*byte);
            let next = lower.get(at + 1);
            marks.any |= letter;
            marks.pairs |= next.map_or(0, |next| pair_bits(*byte, *next));
            if begins_word(before, text[at]) {
                marks.initial |= letter;
                marks.starts |= next.map_or(0, |next| pair_bit(*byte, *next, FACTOR));
            }
            before = text[at];
        }
        marks
    }
}

fn head(lower: &[u8]) -> [u8; 2] {
    [lower.first().copied().unwrap_or(0), lower.get(1).copied().unwrap_or(0)]
}

fn letter_bit(byte: u8) -> u64 {
    1 << match byte {
        letter @ b'a'..=b'z' => letter - b'a',
        digit @ b'0'..=b'9' => 26 + digit - b'0',
        b'_' => 36,
        0x80.. => 37,
        _ => 38,
    }
}

fn pair_bit(first: u8, second: u8, factor: u32) -> u64 {
    let mixed = (u32::from(first) << 8 | u32::from(second)).wrapping_mul(factor);
    1 << (mixed >> 26)
}

/// One bit of each half: hardly any two pairs share both.
fn pair_bits(first: u8, second: u8) -> u128 {
    let low = pair_bit(first, second, FACTOR);
    let high = pair_bit(first, second, 0x85EB_CA6B);
    u128::from(high) << 64 | u128::from(low)
}

/// What is looked for, in lower case, with the marks a text must have.
#[derive(Debug)]
pub(super) struct Needle<'n> {
    pub(super) text: &'n [u8],
    marks: Marks,
}

impl<'n> Needle<'n> {
    pub(super) fn new(text: &'n [u8]) -> Self {
        let mut marks = Marks { head: head(text), ..Marks::default() };
        for (at, byte) in text.iter().enumerate() {
            marks.any |= letter_bit(*byte);
            if let Some(next) = text.get(at + 1) {
                marks.pairs |= pair_bits(*byte, *next);
            }
        }
        if let [first, rest @ ..] = text {
            marks.initial = letter_bit(*first);
            marks.starts = rest.first().map_or(0, |second| pair_bit(*first, *second, FACTOR));
        }
        Self { text, marks }
    }

    fn is_letter(&self) -> bool {
        self.text.len() == 1
    }

    /// Whether it is one letter that shares its bit with no other.
    fn is_exact_letter(&self) -> bool {
        matches!(self.text, [b'a'..=b'z' | b'0'..=b'9' | b'_'])
    }
}

/// The names that were there when they were last put in order: by length, then by their text. Each kind of mark lies by itself,
/// because a search goes over all of one kind.
#[derive(Debug, Default)]
pub(super) struct Order {
    numbers: Vec<u32>,
    heads: Vec<[u8; 2]>,
    any: Vec<u64>,
    initial: Vec<u64>,
    pairs: Vec<u128>,
    starts: Vec<u64>,
    /// For needles of two letters.
    twos: Pairs,
}

/// Names that may fit, in order.
type Names<'o> = Box<dyn Iterator<Item = u32> + 'o>;

impl Order {
    /// Puts all names in order.
    pub(super) fn of(names: &Texts) -> Self {
        let count = u32::try_from(names.len()).unwrap_or(NONE);
        let mut keys: Vec<(u32, u64, u32)> = (0..count)
            .map(|number| {
                let text = names.bytes_of(number);
                // The first bytes decide nearly always, and are next to each other here.
                let mut first = [0; 8];
                let length = text.len().min(8);
                first[..length].copy_from_slice(&text[..length]);
                (u32::try_from(text.len()).unwrap_or(NONE), u64::from_be_bytes(first), number)
            })
            .collect();
        keys.sort_unstable_by(|a, b| {
            (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| names.bytes_of(a.2).cmp(names.bytes_of(b.2)))
        });
        let mut order = Self {
            numbers: Vec::with_capacity(keys.len()),
            heads: Vec::with_capacity(keys.len()),
            any: Vec::with_capacity(keys.len()),
            initial: Vec::with_capacity(keys.len()),
            pairs: Vec::with_capacity(keys.len()),
            starts: Vec::with_capacity(keys.len()),
            twos: Pairs::default(),
        };
        for (_, _, number) in keys {
            let marks = Marks::of(names.bytes_of(number), names.lower_of(number));
            order.numbers.push(number);
            order.heads.push(marks.head);
            order.any.push(marks.any);
            order.initial.push(marks.initial);
            order.pairs.push(marks.pairs);
            order.starts.push(marks.starts);
        }
        order.twos = Pairs::of(names, &order.numbers);
        order
    }

    /// How many names are in order: those with a smaller number.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether so many names are behind those in order that a search is slower for it.
    pub(super) fn is_behind(&self, names: &Texts) -> bool {
        names.len() - self.len() > FEW_LATER + self.len() / 16
    }

    /// The places of names of a length, or of all longer ones.
    pub(super) fn places(&self, names: &Texts, length: usize) -> (Range<usize>, Range<usize>) {
        let from = self.numbers.partition_point(|number| names.bytes_of(*number).len() < length);
        let longer = self.numbers.partition_point(|number| names.bytes_of(*number).len() <= length);
        (from..longer, longer..self.len())
    }

    /// Names that have a needle of two letters standing so.
    fn with_two<'o>(&'o self, places: &Range<usize>, needle: &Needle<'_>, stand: Stand) -> Option<Names<'o>> {
        let found = self.twos.places(needle.text, stand)?;
        let at = |place: usize| found.partition_point(|found| (*found as usize) < place);
        let found = &found[at(places.start)..at(places.end)];
        Some(Box::new(found.iter().map(|place| self.numbers[*place as usize])))
    }

    /// Names that may begin with the needle.
    pub(super) fn beginning<'o>(&'o self, places: Range<usize>, needle: &'o Needle<'_>) -> Names<'o> {
        if let Some(names) = self.with_two(&places, needle, Stand::First) {
            return names;
        }
        let [first, second] = needle.marks.head;
        let pairs = needle.marks.pairs;
        let heads = self.heads[places.clone()].iter();
        if needle.is_letter() {
            let names = heads.zip(&self.numbers[places]).filter(move |(head, _)| head[0] == first);
            return Box::new(names.map(|(_, number)| *number));
        }
        let names = heads.zip(&self.pairs[places.clone()]).zip(&self.numbers[places]);
        let names =
            names.filter(move |((head, have), _)| **head == [first, second] && **have & pairs == pairs);
        Box::new(names.map(|(_, number)| *number))
    }

    /// Names in which a word may begin with the needle.
    pub(super) fn with_word<'o>(&'o self, places: Range<usize>, needle: &'o Needle<'_>) -> Names<'o> {
        if let Some(names) = self.with_two(&places, needle, Stand::Word) {
            return names;
        }
        let Marks { initial, starts, pairs, .. } = needle.marks;
        let letters = self.initial[places.clone()].iter();
        if needle.is_letter() {
            let names =
                letters.zip(&self.numbers[places]).filter(move |(have, _)| **have & initial == initial);
            return Box::new(names.map(|(_, number)| *number));
        }
        // Letters are told exactly, pairs of them are not, and common ones share a bit with rare ones.
        let columns = letters.zip(&self.starts[places.clone()]);
        let names = columns.zip(&self.pairs[places.clone()]).zip(&self.numbers[places]).filter(
            move |(((letters, words), have), _)| {
                **letters & initial == initial && **words & starts == starts && **have & pairs == pairs
            },
        );
        Box::new(names.map(|(_, number)| *number))
    }

    /// Names that may have the needle in them, where no word begins; others may be among them.
    pub(super) fn with_part<'o>(&'o self, places: Range<usize>, needle: &'o Needle<'_>) -> Names<'o> {
        if let Some(names) = self.with_two(&places, needle, Stand::Inside) {
            return names;
        }
        let Marks { any, pairs, initial, .. } = needle.marks;
        let letters = self.any[places.clone()].iter();
        if needle.is_exact_letter() {
            let names = letters
                .zip(&self.initial[places.clone()])
                .zip(&self.numbers[places])
                .filter(move |((have, words), _)| **have & any == any && **words & initial == 0);
            return Box::new(names.map(|(_, number)| *number));
        }
        let names = letters
            .zip(&self.pairs[places.clone()])
            .zip(&self.numbers[places])
            .filter(move |((letters, have), _)| **have & pairs == pairs && **letters & any == any);
        Box::new(names.map(|(_, number)| *number))
    }

    /// Names with all the letters of the needle, wherever they are.
    pub(super) fn with_letters<'o>(
        &'o self,
        places: Range<usize>,
        needle: &'o Needle<'_>,
    ) -> impl Iterator<Item = u32> + 'o {
        let wanted = needle.marks.any;
        let marked = self.any[places.clone()].iter().zip(&self.numbers[places]);
        marked.filter(move |(have, _)| **have & wanted == wanted).map(|(_, number)| *number)
    }
}
