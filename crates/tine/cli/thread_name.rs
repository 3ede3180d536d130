//! Names for threads that nobody named: short, easy to read out, easy to type.

use tine::engine::World;

const FIRST: [&str; 32] = [
    "amber", "azure", "bold", "brisk", "calm", "clear", "coral", "crisp", "deep", "early", "fair",
    "fleet", "gentle", "golden", "green", "hazel", "ivory", "keen", "late", "light", "lucid",
    "mellow", "mild", "misty", "noble", "proud", "quiet", "ruby", "silver", "still", "swift",
    "warm",
];

const SECOND: [&str; 32] = [
    "antler", "aspen", "birch", "brook", "cedar", "cliff", "crane", "dune", "eagle", "elm", "fern",
    "finch", "glade", "grove", "harbor", "heron", "hill", "lark", "maple", "marten", "meadow",
    "moor", "oak", "otter", "pine", "reed", "ridge", "river", "stag", "stone", "willow", "wren",
];

/// Makes a name such as `amber-heron-3f9c`; one of some 67 million.
pub(crate) fn new(world: &dyn World) -> String {
    let random = world.random();
    let pick = |words: [&'static str; 32], shift: u32| words[(random >> shift) as usize % 32];
    format!(
        "{}-{}-{:04x}",
        pick(FIRST, 0),
        pick(SECOND, 5),
        (random >> 10) & 0xffff
    )
}
