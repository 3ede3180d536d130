//! tine-stores.
