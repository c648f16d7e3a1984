//! How this process uses memory. That confines nobody; it is here because only this crate speaks to the C library.

#![expect(
    unsafe_code,
    reason = "the system is told about addresses, and the allocator has no other interface"
)]

use std::io;

/// Says that this program does its work on one thread, and that the others only wait for it: they need no memory set aside for each.
pub fn expect_one_thread() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it changes a number the allocator goes by, and may be called at any time.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

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
        expect_one_thread();
        for (option, value) in [(libc::M_MMAP_THRESHOLD, LARGE), (libc::M_TRIM_THRESHOLD, 2 * LARGE)] {
            // SAFETY: sets a number under the allocator's own lock.
            let done = unsafe { libc::mallopt(option, value) };
            // An option that is not known leaves things as they were.
            debug_assert_eq!(done, 1, "option {option}");
        }
    }
}

/// Asks for large pages for a buffer that is about to be filled: ten megabytes are then five of them and not 2,560, each of which
/// costs a moment when it is first touched. Where there are none nothing happens.
pub fn fill_soon(buffer: &mut Vec<u8>) {
    #[cfg(target_os = "linux")]
    {
        let start = buffer.as_mut_ptr().addr();
        let page = rustix::param::page_size();
        let (first, last) = (start.next_multiple_of(page), (start + buffer.capacity()) / page * page);
        if first < last {
            // SAFETY: the pages are whole and within the buffer's own memory, and the advice changes nothing of what is in them.
            let _ = unsafe { libc::madvise(first as *mut libc::c_void, last - first, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = buffer;
}

/// Gives back what the start of this program took and its work does not need: the pages of its own code and constants, of which
/// those that are needed again come back by themselves from the file they are in, and what the allocator keeps for nobody.
/// Returns how many bytes of code and constants were let go of.
///
/// Only for a program that has settled: what is needed again costs a moment each time.
#[cfg(target_os = "linux")]
pub fn give_back() -> io::Result<usize> {
    let code = own_code()?;
    for range in &code {
        // SAFETY: the range is mapped from a file, privately and not writable, and has never been writable. So there is
        // nothing in it that is not in the file, where it is found again.
        let done =
            unsafe { libc::madvise(range.start as *mut libc::c_void, range.len(), libc::MADV_DONTNEED) };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: it may be called at any time, by any thread.
    unsafe {
        libc::malloc_trim(0);
    }
    Ok(code.iter().map(ExactSizeIterator::len).sum())
}

/// Nothing is known of how to do that here.
#[cfg(not(target_os = "linux"))]
pub fn give_back() -> io::Result<usize> {
    Ok(0)
}

/// Where the code and the constants of this program are mapped.
#[cfg(target_os = "linux")]
fn own_code() -> io::Result<Vec<std::ops::Range<usize>>> {
    use std::os::unix::fs::MetadataExt as _;

    let inode = std::fs::metadata("/proc/self/exe")?.ino().to_string();
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let code = maps.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        let (offset, of) = (words.next()?, words.nth(1)?);
        let (start, end) = range.split_once('-')?;
        let parse = |text: &str| usize::from_str_radix(text, 16).ok();
        // What stands first in the file, before the code, are constants. Others were written to while the program was loaded.
        let unchanged = rights == "r-xp" || (rights == "r--p" && parse(offset) == Some(0));
        (unchanged && of == inode).then(|| Some(parse(start)?..parse(end)?))?
    });
    Ok(code.collect())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn resident_code() -> u64 {
        let inode = format!(
            " {} ",
            std::os::unix::fs::MetadataExt::ino(&std::fs::metadata("/proc/self/exe").unwrap())
        );
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut own = false;
        let mut kilobytes = 0;
        for line in text.lines() {
            if line.contains(" r-xp ") {
                own = line.contains(&inode);
            } else if let Some(size) = line.strip_prefix("Rss:").filter(|_| own) {
                kilobytes += size.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
                own = false;
            }
        }
        kilobytes
    }

    #[test]
    fn code_that_is_not_run_again_is_let_go_of_and_the_rest_goes_on() {
        let before = resident_code();
        let all = give_back().unwrap();
        let after = resident_code();
        assert!(all > 0 && after < before, "{before} kB, then {after} kB of {all} bytes");
        // It comes back where it is needed.
        assert_eq!("x".repeat(3).to_uppercase(), "XXX");
    }

    /// The memory this process has for itself, in kilobytes.
    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("Linux has this file");
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("and this line in it");
        line.split_whitespace().nth(1).and_then(|count| count.parse().ok()).expect("with a number")
    }

    #[test]
    fn a_buffer_is_the_same_with_large_pages() {
        for size in [0, 1, 4096, 3 << 20] {
            let mut buffer = Vec::with_capacity(size);
            buffer.extend_from_slice(&b"kept"[..size.min(4)]);
            super::fill_soon(&mut buffer);
            assert_eq!(buffer, b"kept"[..size.min(4)]);
            buffer.resize(size, 7);
            assert!(buffer.iter().skip(4).all(|byte| *byte == 7));
        }
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
