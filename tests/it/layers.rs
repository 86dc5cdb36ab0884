//! The map of the source in `lib.rs` is true: no module names one that stands above it.

use std::fs;
use std::path::{Path, PathBuf};

/// The one name that goes up: see there.
const EXEMPT: &str = "oversee";

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The modules of the map, from the top.
fn layers() -> Vec<String> {
    let lib = fs::read_to_string(source().join("lib.rs")).unwrap();
    let (_, map) = lib.split_once("# Map of the source").expect("lib.rs has a map");
    let rows = map
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with("//!"))
        .filter_map(|line| line.strip_prefix("//! | `"));
    rows.map(|row| row.split('`').next().unwrap().into()).collect()
}

/// All files of the crate but its tests and models.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            if name != "model" {
                files(&path, found);
            }
        } else if name.ends_with(".rs") && !["lib.rs", "models.rs", "tests.rs"].contains(&name) {
            found.push(path);
        }
    }
}

/// What follows each `crate::` in the code of a file, up to its unit tests.
fn names(code: &str) -> Vec<&str> {
    let tests = ["\n#[cfg(test)]", "\n#[cfg(all(test"].iter().filter_map(|begin| code.find(begin)).min();
    let code = &code[..tests.unwrap_or(code.len())];
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let after = lines.flat_map(|line| line.split("crate::").skip(1));
    after.map(|name| name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap()).collect()
}

#[test]
fn modules_name_only_what_is_below_them() {
    let layers = layers();
    let height = |name: &str| layers.iter().position(|layer| layer == name);
    let (mut all, mut wrong, mut named) = (Vec::new(), Vec::new(), 0);
    files(&source(), &mut all);
    for file in &all {
        let inside = file.strip_prefix(source()).unwrap();
        let first = inside.iter().next().unwrap().to_str().unwrap();
        let own = first.strip_suffix(".rs").unwrap_or(first);
        let Some(own) = height(own) else { panic!("{own} is not on the map") };
        for name in names(&fs::read_to_string(file).unwrap()) {
            named += 1;
            let is_fine = name == EXEMPT || height(name).is_some_and(|other| other >= own);
            if !is_fine {
                wrong.push(format!("{} names crate::{name}", inside.display()));
            }
        }
    }
    assert!(named > 100, "only {named} names were found in {} files", all.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}
