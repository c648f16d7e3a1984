//! Results that are the same every time, kept for a while (HIP-10). Only a tool that says so has its results kept, and only while
//! what they depended on is the same: the arguments, and the context where one was given.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many results are kept. The oldest make room.
const MOST: usize = 256;

/// Results by what they are results of.
#[derive(Debug)]
pub(crate) struct Results<K, V>(Mutex<HashMap<K, Kept<V>>>);

#[derive(Debug)]
struct Kept<V> {
    value: V,
    since: Instant,
    until: Instant,
}

impl<K, V> Default for Results<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Results<K, V> {
    /// The result of `key` that still holds.
    pub(crate) fn get(&self, key: &K, now: Instant) -> Option<V> {
        let mut kept = self.kept();
        if kept.get(key)?.until <= now {
            kept.remove(key);
            return None;
        }
        kept.get(key).map(|kept| kept.value.clone())
    }

    /// Keeps a result for as long as `ttl`.
    pub(crate) fn keep(&self, key: K, value: V, ttl: Duration, now: Instant) {
        let mut kept = self.kept();
        kept.retain(|_, kept| kept.until > now);
        if kept.len() >= MOST
            && let Some(oldest) = kept.iter().min_by_key(|(_, kept)| kept.since).map(|(key, _)| key.clone())
        {
            kept.remove(&oldest);
        }
        kept.insert(key, Kept { value, since: now, until: now + ttl });
    }

    /// Forgets those of which `gone` says so.
    pub(crate) fn forget(&self, gone: impl Fn(&K) -> bool) {
        self.kept().retain(|key, _| !gone(key));
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<K, Kept<V>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_holds_until_its_time_is_over_or_it_is_forgotten() {
        let results = Results::default();
        let now = Instant::now();
        results.keep("a", 1, Duration::from_secs(10), now);
        results.keep("b", 2, Duration::from_secs(10), now);
        assert_eq!(results.get(&"a", now + Duration::from_secs(9)), Some(1));
        assert_eq!(results.get(&"a", now + Duration::from_secs(10)), None);
        results.forget(|key| *key == "b");
        assert_eq!(results.get(&"b", now), None);
    }

    #[test]
    fn the_oldest_makes_room() {
        let results = Results::default();
        let start = Instant::now();
        for number in 0..=MOST {
            let now = start + Duration::from_millis(number as u64);
            results.keep(number, number, Duration::from_mins(1), now);
        }
        assert_eq!(results.get(&0, start), None);
        assert_eq!((results.get(&1, start), results.get(&MOST, start)), (Some(1), Some(MOST)));
    }
}
