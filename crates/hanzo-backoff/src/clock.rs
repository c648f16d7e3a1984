//! The time, as something a test can set.

use std::time::{Instant, SystemTime};

/// The two clocks retrying needs.
pub trait Clock {
    /// The time that only moves forward, for budgets.
    fn instant(&self) -> Instant;

    /// The time of day, which dates in headers refer to.
    fn wall(&self) -> SystemTime;
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn instant(&self) -> Instant {
        Instant::now()
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn instant(&self) -> Instant {
        (**self).instant()
    }

    fn wall(&self) -> SystemTime {
        (**self).wall()
    }
}
