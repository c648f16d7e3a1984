//! The types and traits every part of hanzo-dev speaks.
