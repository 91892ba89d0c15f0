//! Builds the functions with fault points, once, and keeps them apart from every other build.
//!
//! The build shares the target folder, so that only the product's own crates are compiled again; its
//! executables are copied aside at once, because the next build without the points replaces them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// Every executable that a scenario starts.
const PACKAGES: [&str; 11] = [
    "collector",
    "relay",
    "news-consumer",
    "price-consumer",
    "explain-consumer",
    "dead-letter",
    "reconciler",
    "operator",
    "migrator",
    "sweeper",
    "janitor",
];

/// The built executables.
#[derive(Clone, Debug)]
pub struct Components {
    /// Where they are, and the logs of runs.
    pub folder: PathBuf,
}

impl Components {
    /// Builds them.
    ///
    /// # Errors
    ///
    /// They do not compile; cargo has said why.
    pub fn build() -> Result<Self> {
        let workspace = workspace();
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // The whole workspace, so that no dependency is compiled with other features than elsewhere.
        cargo.args(["build", "--quiet", "--workspace", "--bins", "--features", "fault/fault-points"]);
        cargo.current_dir(&workspace);
        let built = cargo.status()?;
        if !built.success() {
            return Err("the components do not compile with fault points".into());
        }
        Self::keep(&workspace, PACKAGES.into_iter().chain(["subject"]))
    }

    fn keep<'a>(workspace: &Path, names: impl Iterator<Item = &'a str>) -> Result<Self> {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
        let folder = target.join("faults");
        std::fs::create_dir_all(&folder)?;
        for name in names {
            let kept = folder.join(name);
            // Never written into: an older one may still run.
            let fresh = folder.join(format!("{name}.new"));
            std::fs::copy(target.join("debug").join(name), &fresh)?;
            std::fs::rename(fresh, kept)?;
        }
        Ok(Self { folder })
    }

    /// The executable of `component`.
    #[must_use]
    pub fn path(&self, component: &str) -> PathBuf {
        self.folder.join(component)
    }
}

/// The root of the workspace.
#[must_use]
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}
