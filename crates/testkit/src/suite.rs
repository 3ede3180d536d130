//! Many cases: finding them, running them, and the report.

use crate::case::Case;
use crate::compare::Difference;
use crate::drive::{Verdict, run_case};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tine_engine::Checkpointer;

/// The file that lists where the engine differs on purpose: `area/name: reason`.
const DIFFERS: &str = "differs.yaml";

/// How long a case may take, by the clock on the wall. Cases sleep on a simulated one, so this ends only what hangs.
const PATIENCE: Duration = Duration::from_secs(30);

/// The cases that may differ, by `area/name`, each with its reason.
pub type Differs = BTreeMap<String, String>;

/// A case and where it stands.
#[derive(Clone, Debug)]
pub struct CaseFile {
    /// The file.
    pub path: PathBuf,
    /// The folder it lies in.
    pub area: String,
    /// The case.
    pub case: Case,
    /// Why it may differ, if the list beside it says so.
    pub differs: Option<String>,
}

impl CaseFile {
    /// How lists call the case: `area/name`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.area, self.case.name)
    }
}

/// Why cases could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A file or folder that can not be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file that is no case.
    #[error("{}: this is no case: {message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// A list of differing cases that names one which is not there.
    #[error("{}: it lists `{id}`, and there is no such case", path.display())]
    UnknownDiffer {
        /// The list.
        path: PathBuf,
        /// The name.
        id: String,
    },
}

/// Which cases to run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only the case of this name.
    pub only: Option<String>,
    /// Only cases of these areas; all if empty.
    pub areas: Vec<String>,
}

impl Options {
    /// Whether a case is to be run.
    #[must_use]
    pub fn selects(&self, case: &CaseFile) -> bool {
        let named = self
            .only
            .as_ref()
            .is_none_or(|only| *only == case.case.name || *only == case.id());
        named && (self.areas.is_empty() || self.areas.contains(&case.area))
    }
}

/// Reads the cases below folders (or single files), sorted by path.
///
/// # Errors
/// If a file can not be read, or is no case.
pub fn find_cases(paths: &[PathBuf]) -> Result<Vec<CaseFile>, LoadError> {
    let mut files = Vec::new();
    for path in paths {
        walk(path, &mut files)?;
    }
    files.sort();
    files.dedup();
    let (lists, files): (Vec<PathBuf>, Vec<PathBuf>) = files
        .into_iter()
        .partition(|path| path.file_name().is_some_and(|name| name == DIFFERS));
    let mut cases = files
        .into_iter()
        .map(read_case)
        .collect::<Result<Vec<CaseFile>, LoadError>>()?;
    for list in &lists {
        for (id, reason) in read_list(list)? {
            if !mark(&mut cases, &id, &reason) {
                let path = list.clone();
                return Err(LoadError::UnknownDiffer { path, id });
            }
        }
    }
    // Whoever runs one area or one case means the same lists; what else they name is not there.
    let above = paths
        .iter()
        .flat_map(|path| path.ancestors().skip(1).take(2))
        .map(|folder| folder.join(DIFFERS))
        .filter(|list| list.is_file() && !lists.contains(list));
    for list in above {
        for (id, reason) in read_list(&list)? {
            mark(&mut cases, &id, &reason);
        }
    }
    Ok(cases)
}

/// Notes why a case differs; false if there is no such case.
fn mark(cases: &mut [CaseFile], id: &str, reason: &str) -> bool {
    let case = cases.iter_mut().find(|case| case.id() == id);
    let found = case.is_some();
    if let Some(case) = case {
        case.differs = Some(reason.to_owned());
    }
    found
}

fn walk(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), LoadError> {
    let read = |error| LoadError::Read {
        path: path.to_owned(),
        error,
    };
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(read)? {
        let entry = entry.map_err(read)?.path();
        if entry.is_dir() || entry.extension().is_some_and(|name| name == "yaml") {
            walk(&entry, files)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, LoadError> {
    std::fs::read_to_string(path).map_err(|error| LoadError::Read {
        path: path.to_owned(),
        error,
    })
}

fn read_case(path: PathBuf) -> Result<CaseFile, LoadError> {
    let case = Case::parse(&read(&path)?).map_err(|message| LoadError::Parse {
        path: path.clone(),
        message,
    })?;
    let area = path
        .parent()
        .and_then(Path::file_name)
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    Ok(CaseFile {
        path,
        area,
        case,
        differs: None,
    })
}

fn read_list(path: &Path) -> Result<Differs, LoadError> {
    let text = read(path)?;
    // A list of nothing is no map in YAML.
    serde_yaml::from_str::<Option<Differs>>(&text)
        .map(Option::unwrap_or_default)
        .map_err(|error| LoadError::Parse {
            path: path.to_owned(),
            message: error.to_string(),
        })
}

/// How a case counts.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Judgement {
    /// The engine does what the case says.
    Passed,
    /// It does not.
    Failed(Vec<Difference>),
    /// It does not, and says why it differs.
    Differs(String),
    /// It does what the case says, and a list says that it does not.
    Stale,
    /// A list says that it differs, and the case binds.
    Binding,
}

/// A case that was run.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The file.
    pub path: PathBuf,
    /// Its folder.
    pub area: String,
    /// Its name.
    pub name: String,
    /// How it counts.
    pub judgement: Judgement,
}

/// Cases that were run, in order.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The cases.
    pub cases: Vec<Judged>,
}

/// The counts of an area, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of the report")]
pub struct AreaCount {
    pub passed: usize,
    pub failed: usize,
    pub differ: usize,
}

impl AreaCount {
    fn add(&mut self, judgement: &Judgement) {
        match judgement {
            Judgement::Passed => self.passed += 1,
            Judgement::Differs(_) => self.differ += 1,
            Judgement::Failed(_) | Judgement::Stale | Judgement::Binding => self.failed += 1,
        }
    }
}

impl fmt::Display for AreaCount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            differ,
        } = self;
        write!(out, "{passed} passed, {failed} failed, {differ} differ")
    }
}

impl Report {
    /// The counts of all cases.
    #[must_use]
    pub fn total(&self) -> AreaCount {
        let mut total = AreaCount::default();
        for case in &self.cases {
            total.add(&case.judgement);
        }
        total
    }

    /// The counts by area.
    #[must_use]
    pub fn areas(&self) -> BTreeMap<&str, AreaCount> {
        let mut areas: BTreeMap<&str, AreaCount> = BTreeMap::new();
        for case in &self.cases {
            areas.entry(&case.area).or_default().add(&case.judgement);
        }
        areas
    }

    /// The names of the cases of an area that passed.
    pub fn passed<'a>(&'a self, area: &'a str) -> impl Iterator<Item = &'a str> {
        self.cases
            .iter()
            .filter(move |case| case.area == area && case.judgement == Judgement::Passed)
            .map(|case| case.name.as_str())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for case in &self.cases {
            let path = case.path.display();
            match &case.judgement {
                Judgement::Passed => {}
                Judgement::Failed(differences) => {
                    writeln!(out, "FAILED {path}")?;
                    for difference in differences {
                        writeln!(out, "  {difference}")?;
                    }
                }
                Judgement::Differs(reason) => {
                    writeln!(out, "differs {path}: {reason}")?;
                }
                Judgement::Stale => {
                    writeln!(out, "STALE  {path}: it passes; take it out of {DIFFERS}")?;
                }
                Judgement::Binding => {
                    writeln!(
                        out,
                        "FAILED {path}\n  {DIFFERS} lists it, and only cases labelled Q without a decision may differ"
                    )?;
                }
            }
        }
        for (area, count) in self.areas() {
            writeln!(out, "{area:<12} {count}")?;
        }
        write!(out, "{}", self.total())
    }
}

/// Runs cases over fresh checkpointers.
pub async fn run_suite(
    cases: &[CaseFile],
    options: &Options,
    make_checkpointer: &(dyn Fn() -> Arc<dyn Checkpointer> + Sync),
) -> Report {
    let mut report = Report::default();
    for file in cases.iter().filter(|file| options.selects(file)) {
        let verdict = patiently(&file.case, make_checkpointer).await;
        let judgement = match (&file.differs, verdict.passed()) {
            (Some(_), _) if !file.case.may_differ() => Judgement::Binding,
            (Some(_), true) => Judgement::Stale,
            (Some(reason), false) => Judgement::Differs(reason.clone()),
            (None, true) => Judgement::Passed,
            (None, false) => Judgement::Failed(verdict.differences),
        };
        report.cases.push(Judged {
            path: file.path.clone(),
            area: file.area.clone(),
            name: file.case.name.clone(),
            judgement,
        });
    }
    report
}

#[expect(
    clippy::disallowed_methods,
    reason = "ends a case that hangs, whatever the simulated clock says"
)]
async fn patiently(
    case: &Case,
    make_checkpointer: &(dyn Fn() -> Arc<dyn Checkpointer> + Sync),
) -> Verdict {
    let run = run_case(case, make_checkpointer);
    tokio::time::timeout(PATIENCE, run)
        .await
        .unwrap_or_else(|_| Verdict {
            differences: vec![Difference::Broken {
                action: None,
                message: format!("it hangs: nothing came for {} s", PATIENCE.as_secs()),
            }],
        })
}
