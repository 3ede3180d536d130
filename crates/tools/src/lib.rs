//! tine-tools.
