-- Tables are keyed by rowid and only grow at their end, so a commit touches few pages.

CREATE TABLE thread (
    -- Never given twice: a writer that lost its thread can not meet another one under its number.
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT    NOT NULL,
    id     TEXT    NOT NULL,
    -- Grows each time the thread is taken for writing.
    token  INTEGER NOT NULL,
    -- What the host noted: a JSON object.
    meta   TEXT    NOT NULL,
    UNIQUE (tenant, id)
) STRICT;

-- The graphs run in a thread: the root (namespace '') and its children.
CREATE TABLE graph (
    number    INTEGER PRIMARY KEY,
    thread    INTEGER NOT NULL REFERENCES thread (number) ON DELETE CASCADE,
    namespace TEXT    NOT NULL,
    UNIQUE (thread, namespace)
) STRICT;

CREATE TABLE channel (
    number INTEGER PRIMARY KEY,
    graph  INTEGER NOT NULL REFERENCES graph (number) ON DELETE CASCADE,
    name   TEXT    NOT NULL,
    UNIQUE (graph, name)
) STRICT;

CREATE TABLE checkpoint (
    number       INTEGER PRIMARY KEY,
    graph        INTEGER NOT NULL REFERENCES graph (number) ON DELETE CASCADE,
    -- Its place in the order in which the graph's checkpoints were stored, from 0.
    sequence     INTEGER NOT NULL,
    -- The number of the first checkpoint of its branch. A checkpoint whose parent is not the newest of a branch opens
    -- one, and its parent is where that branch leaves the other.
    branch       INTEGER NOT NULL,
    parent       INTEGER,
    id           BLOB    NOT NULL,
    step         INTEGER NOT NULL,
    source       TEXT    NOT NULL,
    created      INTEGER NOT NULL,
    run          BLOB    NOT NULL,
    -- The numbers of its rows in `effect` are the `effects` numbers from `first_effect` on.
    first_effect INTEGER NOT NULL,
    effects      INTEGER NOT NULL,
    -- JSON; NULL if empty.
    next         TEXT,
    joins        TEXT,
    deferred     TEXT,
    UNIQUE (graph, sequence)
) STRICT;

CREATE INDEX checkpoint_by_id ON checkpoint (graph, id);

-- What a checkpoint changed of a channel.
CREATE TABLE effect (
    number     INTEGER PRIMARY KEY,
    branch     INTEGER NOT NULL REFERENCES checkpoint (number) ON DELETE CASCADE,
    channel    INTEGER NOT NULL,
    checkpoint INTEGER NOT NULL,
    -- 1 if the effects do not build on an older value.
    whole      INTEGER NOT NULL,
    effects    TEXT    NOT NULL,
    -- The whole value after the effects, where a snapshot was due.
    snapshot   TEXT
) STRICT;

CREATE INDEX effect_by_channel ON effect (branch, channel, checkpoint);

-- What the tasks planned at a checkpoint did so far. The numbers give the order.
CREATE TABLE record (
    number     INTEGER PRIMARY KEY,
    checkpoint INTEGER NOT NULL REFERENCES checkpoint (number) ON DELETE CASCADE,
    task       TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    UNIQUE (checkpoint, task, name)
) STRICT;
