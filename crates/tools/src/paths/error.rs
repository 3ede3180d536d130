use std::io;

/// Says why a path of a tool call was refused.
///
/// The texts go to the model, so each names the path and what to write
/// instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path is an empty string.
    #[error("the path is empty: give a full path such as /mnt/user-data/outputs/report.md")]
    Empty,
    /// The path holds a NUL character, which no file system allows.
    #[error("the path {path:?} holds a NUL character: remove it")]
    Nul {
        /// The path as it came.
        path: String,
    },
    /// The path holds a character that makes it look like another one.
    #[error("the path {path:?} holds the invisible character U+{:04X}: remove it", u32::from(*character))]
    Character {
        /// The path as it came.
        path: String,
        /// The character.
        character: char,
    },
    /// The path of a file to be written ends like that of a folder.
    #[error("`{path}` ends in `/`, which names a folder: add the name of the file")]
    FolderName {
        /// The path as it came.
        path: String,
    },
    /// The path does not begin with `/`.
    #[error("`{path}` is a relative path: give the full one, such as {full}")]
    Relative {
        /// The path as it came.
        path: String,
        /// A full path that may be meant.
        full: String,
    },
    /// A part of the path is `..`.
    #[error("`{path}` goes up with `..`: write the path without it")]
    Upwards {
        /// The path as it came.
        path: String,
    },
    /// The path is not below a folder of this thread.
    #[error(
        "`{path}` is outside this thread's folders: use a path below /mnt/user-data/workspace, /mnt/user-data/uploads or /mnt/user-data/outputs"
    )]
    Outside {
        /// The path as it came.
        path: String,
    },
    /// The path is below a folder that only the host may write.
    #[error(
        "`{path}` cannot be written: {mount} is read-only; write below /mnt/user-data/workspace or /mnt/user-data/outputs"
    )]
    ReadOnly {
        /// The path as it came.
        path: String,
        /// The read-only folder.
        mount: &'static str,
    },
    /// The path is below a folder that is not set up here.
    #[error("`{path}` does not exist: there is no {mount} folder in this installation")]
    NotMounted {
        /// The path as it came.
        path: String,
        /// The folder that is missing.
        mount: &'static str,
    },
    /// A link on the way leads out of this thread's folders.
    #[error(
        "`{path}` follows a link that leads out of this thread's folders: use a file inside them"
    )]
    LinkOut {
        /// The path as it came.
        path: String,
    },
    /// A link on the way leads to nothing.
    #[error("`{path}` is a link to a file that does not exist")]
    DeadLink {
        /// The path as it came.
        path: String,
    },
    /// The path, or a name in it, is longer than file systems allow.
    #[error("`{shown}…` is too long ({bytes} bytes; at most {limit}): use a shorter name")]
    TooLong {
        /// The beginning of the path or name.
        shown: String,
        /// Its length.
        bytes: usize,
        /// The longest that is allowed.
        limit: usize,
    },
    /// Nothing is there.
    #[error("`{path}` does not exist: list its folder with ls to see what is there")]
    NotFound {
        /// The path as it came.
        path: String,
    },
    /// A folder stands where a file is needed.
    #[error("`{path}` is a folder, not a file")]
    IsFolder {
        /// The path as it came.
        path: String,
    },
    /// A pipe, a socket or a device stands where a file is needed.
    #[error("`{path}` is a pipe, a socket or a device, not a regular file")]
    NotRegular {
        /// The path as it came.
        path: String,
    },
    /// A file stands where a folder is needed.
    #[error("`{path}` is not a folder, or a part of its path is a file")]
    NotFolder {
        /// The path as it came.
        path: String,
    },
    /// The disk, or the user's share of it, is full.
    #[error(
        "`{path}` was not written, because the disk is full; what was there before is unchanged"
    )]
    DiskFull {
        /// The path as it came.
        path: String,
    },
    /// The operating system refused.
    #[error("`{path}`: {source}")]
    Io {
        /// The path as it came.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl PathError {
    /// Turns an error of the operating system into the reason it stands for.
    pub(crate) fn from_io(path: &str, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::NotADirectory => Self::NotFolder { path },
            io::ErrorKind::IsADirectory => Self::IsFolder { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            // A refusal of the kernel carries its number; one without is
            // cap-std's, and it has a single reason: an escape.
            io::ErrorKind::PermissionDenied if source.raw_os_error().is_none() => {
                Self::LinkOut { path }
            }
            _ => Self::Io { path, source },
        }
    }
}
