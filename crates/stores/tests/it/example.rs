//! What the example of a checkpointer promises beyond the contract: `examples/json_files`.

use crate::json_files::JsonFiles;
use crate::kit::{advance, append, namespace, newest, root, set, wait};
use std::fs::File;
use std::io::Write as _;
use tine_engine::{Checkpointer, StoreError, ThreadKey, Value};

/// Stores a checkpoint after this one, or the first, that appends its id.
async fn store(threads: &JsonFiles, id: u128) -> Result<(), StoreError> {
    let writer = threads.open(&ThreadKey::local("t")).await?;
    let parent = (id > 1).then(|| id - 1);
    let effects = match parent {
        None => set(Value::list()),
        Some(_) => append(id as i64),
    };
    let next = advance(id, parent, &[("list", effects)]);
    writer.advance(&namespace(""), next).await
}

#[test]
fn a_line_without_its_end_was_not_committed() {
    let folder = tempfile::tempdir().unwrap();
    let threads = JsonFiles::new(folder.path()).unwrap();
    let file = threads.file(&ThreadKey::local("t"));
    let read = || wait(newest(&threads, &root("t"), "list"));
    wait(store(&threads, 1)).unwrap();
    wait(store(&threads, 2)).unwrap();

    let mut torn = File::options().append(true).open(&file).unwrap();
    torn.write_all(br#"{"advance":{"namespace":"","adv"#)
        .unwrap();
    assert_eq!(read().as_deref(), Some("[2]"));
    wait(store(&threads, 3)).unwrap();
    assert_eq!(read().as_deref(), Some("[2,3]"));

    let mut damaged = File::options().append(true).open(&file).unwrap();
    damaged.write_all(b"{}\n").unwrap();
    let refused = wait(store(&threads, 4)).unwrap_err();
    let place = file.display().to_string();
    assert!(
        matches!(&refused, StoreError::Damaged { place: named, .. } if *named == place),
        "{refused}"
    );
}

#[test]
fn a_lock_of_another_process_is_heeded() {
    let folder = tempfile::tempdir().unwrap();
    let threads = JsonFiles::new(folder.path()).unwrap();
    wait(store(&threads, 1)).unwrap();
    let lock = threads.file(&ThreadKey::local("t")).with_extension("lock");
    let lock = File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    let held = StoreError::Held {
        thread: "t".into(),
        holder: "another process".to_owned(),
    };
    assert_eq!(wait(store(&threads, 2)), Err(held.clone()));
    // The refusal gave back what this process had of it.
    assert_eq!(wait(store(&threads, 2)), Err(held));
    drop(lock);
    wait(store(&threads, 2)).unwrap();
}
