//! Files that comments and READMEs name exist.

use std::fs;
use std::path::Path;

use super::{folder, section_of_internals};

/// Returns the names of files in a text: `a/b.rs`, `README.md`.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_./*-".contains(c);
    let words = text.split(move |c| !is_part(c)).map(|word| word.trim_end_matches('.'));
    words.filter(|word| {
        let is_file = [".rs", ".md"].iter().any(|end| word.len() > end.len() && word.ends_with(end));
        is_file && !word.contains('*')
    })
}

/// Returns the names in this file that lead to no file: not from `src`, not from the repository, and not from
/// the folder of the file, that of its module, or the one above.
fn lost(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap();
    let is_code = path.extension().is_some_and(|extension| extension == "rs");
    let (own, module) = (path.parent().unwrap(), path.with_extension(""));
    let from = [folder(), folder().join(".."), own.into(), own.join(".."), module];
    let prose = text.lines().map(|line| match line.split_once("//") {
        Some((_, comment)) => comment,
        None if is_code => "",
        None => line,
    });
    // Examples of output name programs of the reader, and packages: `axum-0.8.9/..`.
    let readers = ["src/main.rs", "tests/shop.rs"];
    let is_of_reader =
        |folder: &str| folder == "shop" || folder.ends_with(|last: char| last.is_ascii_digit());
    let is_elsewhere = |name: &str| name.split_once('/').is_some_and(|(folder, _)| is_of_reader(folder));
    let named = prose.flat_map(names).filter(|name| !readers.contains(name) && !is_elsewhere(name));
    let is_lost = |name: &&str| !from.iter().any(|folder| folder.join(name).is_file());
    named.filter(is_lost).map(|name| format!("{}: {name}", path.display())).collect()
}

fn lost_below(folder: &Path, found: &mut Vec<String>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            lost_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "md") {
            found.extend(lost(&path));
        }
    }
}

#[test]
fn files_that_are_named_exist() {
    let mut found = lost(&folder().join("../README.md"));
    lost_below(&folder(), &mut found);
    lost_below(&folder().join("../docs"), &mut found);
    assert!(found.is_empty(), "{found:#?}");
}

/// The drawing in `docs/src/internals.md` names the file of each step.
#[test]
fn the_way_of_an_event_names_the_files_on_it() {
    let way = section_of_internals("The way of an event");
    let files: Vec<_> = names(&way).collect();
    assert!((8..=14).contains(&files.len()), "{files:?}");
    let missing: Vec<_> = files.iter().filter(|file| !folder().join(file).is_file()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn names_of_files_are_found_in_prose() {
    let text = "See `pool/deputy/duty.rs`, and a.rs. Not examples/*.rs, .rs or 1.rs.x; README.md (b/c.md).";
    assert_eq!(names(text).collect::<Vec<_>>(), ["pool/deputy/duty.rs", "a.rs", "README.md", "b/c.md"]);
}
