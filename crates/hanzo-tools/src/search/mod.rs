//! Searching text in files, with ripgrep's own libraries.
