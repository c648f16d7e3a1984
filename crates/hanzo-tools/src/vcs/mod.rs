//! `vcs`: git.
