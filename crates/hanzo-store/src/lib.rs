//! Threads, items, audit records and content of hanzo-dev, kept so that nothing acknowledged is lost.
