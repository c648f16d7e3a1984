//! How this process uses memory. That confines nobody; it is here because only this crate speaks to the C library.

/// Blocks of this size and larger are returned to the system as soon as they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 64 * 1024;

/// Has the allocator of the C library keep less of what was freed, for a process that lives for hours and is idle for most of
/// them: one heap for all threads instead of one for each, and large blocks of their own pages. Left alone, the allocator takes
/// larger and larger blocks into its heaps, where one small block above them holds all of them.
///
/// To be called before other threads are started. Where there is another C library nothing happens.
pub fn be_frugal() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        for (option, value) in
            [(libc::M_ARENA_MAX, 1), (libc::M_MMAP_THRESHOLD, LARGE), (libc::M_TRIM_THRESHOLD, 2 * LARGE)]
        {
            #[expect(unsafe_code, reason = "there is no safe wrapper")]
            // SAFETY: sets a number under the allocator's own lock.
            let done = unsafe { libc::mallopt(option, value) };
            // An option that is not known leaves things as they were.
            debug_assert_eq!(done, 1, "option {option}");
        }
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    /// The memory this process has for itself, in kilobytes.
    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux has this file");
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("and this line in it");
        line.split_whitespace().nth(1).and_then(|count| count.parse().ok()).expect("with a number")
    }

    #[test]
    fn what_was_large_and_is_freed_is_given_back() {
        super::be_frugal();
        let before = resident();
        // A small block above each large one would hold it.
        let blocks: Vec<(Vec<u8>, Box<u64>)> = (0..100).map(|n| (vec![1; 1 << 20], Box::new(n))).collect();
        assert!(resident() > before + 90_000);
        let small: Vec<Box<u64>> = blocks.into_iter().map(|(_, small)| small).collect();
        assert!(resident() < before + 30_000, "{} kB, {before} kB before", resident());
        drop(small);
    }
}
