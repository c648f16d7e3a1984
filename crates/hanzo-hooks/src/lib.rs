//! Programs that run before and after a tool call and may refuse it.
