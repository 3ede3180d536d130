//! tine-testkit.
