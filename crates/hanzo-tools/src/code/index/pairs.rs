//! Which names have two letters next to each other in them, for every two letters: what makes a query of two letters as quick as a
//! longer one, of which the marks of `order` tell more.

use super::table::{Texts, begins_word};

/// Letters, digits and `_`; names with other signs in them are looked at one by one.
const LETTERS: usize = 37;
const STANDS: usize = 3;

/// Where two letters stand in a name, at best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stand {
    /// It begins with them.
    First,
    /// A word of it does.
    Word,
    Inside,
}

/// For every two letters and every stand, the places in order of the names that have them so.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// Where the list of each begins in `places`, and where the last ends.
    begins: Vec<u32>,
    places: Vec<u32>,
}

impl Pairs {
    /// Of names in order.
    pub(super) fn of(names: &Texts, numbers: &[u32]) -> Self {
        let mut look = Look { best: vec![None; LETTERS * LETTERS], found: Vec::new() };
        // Each list is counted first, so that all lie in one piece of memory of the right size.
        let mut begins = vec![0_u32; LETTERS * LETTERS * STANDS + 1];
        for number in numbers {
            look.at(names.bytes_of(*number), names.lower_of(*number), |list| begins[list + 1] += 1);
        }
        for list in 1..begins.len() {
            begins[list] += begins[list - 1];
        }
        let mut next = begins.clone();
        let mut places = vec![0; begins.last().map_or(0, |end| *end as usize)];
        for (place, number) in (0_u32..).zip(numbers) {
            look.at(names.bytes_of(*number), names.lower_of(*number), |list| {
                places[next[list] as usize] = place;
                next[list] += 1;
            });
        }
        Self { begins, places }
    }

    /// The places of names that have the two letters of `needle`, and nothing else, standing so; `None` when that is not known.
    pub(super) fn places(&self, needle: &[u8], stand: Stand) -> Option<&[u32]> {
        let [first, second] = needle else { return None };
        let list = list(letter(*first)? * LETTERS + letter(*second)?, stand);
        let (from, to) = (self.begins.get(list)?, self.begins.get(list + 1)?);
        self.places.get(*from as usize..*to as usize)
    }
}

fn list(pair: usize, stand: Stand) -> usize {
    pair * STANDS + stand as usize
}

fn letter(byte: u8) -> Option<usize> {
    match byte {
        b'a'..=b'z' => Some(usize::from(byte - b'a')),
        b'0'..=b'9' => Some(26 + usize::from(byte - b'0')),
        b'_' => Some(36),
        _ => None,
    }
}

/// Looks at one name after another.
struct Look {
    best: Vec<Option<Stand>>,
    found: Vec<usize>,
}

impl Look {
    /// Calls `take` with every list that a name belongs to, once.
    fn at(&mut self, text: &[u8], lower: &[u8], mut take: impl FnMut(usize)) {
        let mut before = 0;
        // `aaa` has `aa` in it once: those that overlap the one before are none.
        let mut doubled = 0;
        for (at, two) in lower.windows(2).enumerate() {
            let begins = begins_word(before, text[at]);
            before = text[at];
            let (Some(first), Some(second)) = (letter(two[0]), letter(two[1])) else { continue };
            if first == second {
                if at < doubled {
                    continue;
                }
                doubled = at + 2;
            }
            let stand = match (at, begins) {
                (0, _) => Stand::First,
                (_, true) => Stand::Word,
                _ => Stand::Inside,
            };
            let pair = first * LETTERS + second;
            match &mut self.best[pair] {
                Some(best) => *best = (*best).min(stand),
                none => {
                    *none = Some(stand);
                    self.found.push(pair);
                }
            }
        }
        for pair in self.found.drain(..) {
            if let Some(stand) = self.best[pair].take() {
                take(list(pair, stand));
            }
        }
    }
}
