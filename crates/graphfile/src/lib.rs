//! tine-graphfile.
