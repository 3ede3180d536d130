//! tine-engine.
