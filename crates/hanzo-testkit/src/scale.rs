//! How often loops run that look for rare events: races, kills, random inputs.

/// The environment variable with which `cargo xtask soak` asks for loops of full size.
pub const SOAK_VARIABLE: &str = "HANZO_SOAK";

/// How many rounds to run of a loop whose full size is `full`: all of them in a soak, otherwise a twentieth.
pub fn rounds(full: u32) -> u32 {
    rounds_when(full, is_soak())
}

/// How many rounds to run of a loop that is slow for its size: `full` in a soak, otherwise `few`.
pub fn few_or_full(few: u32, full: u32) -> u32 {
    if is_soak() { full } else { few }
}

/// Whether loops are to run at full size.
pub fn is_soak() -> bool {
    std::env::var_os(SOAK_VARIABLE).is_some_and(|value| value == "1")
}

fn rounds_when(full: u32, soaking: bool) -> u32 {
    if soaking { full } else { full.div_ceil(20) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_run_does_a_twentieth_and_never_nothing() {
        assert_eq!(rounds_when(100_000, true), 100_000);
        assert_eq!(rounds_when(100_000, false), 5_000);
        assert_eq!(rounds_when(3, false), 1);
    }
}
