//! No module names a module that stands above it in the map of `docs/src/internals.md`, and files do not name
//! each other in circles. These tests read the source; none of them runs it.
#![cfg(unix)]
#![allow(unreachable_pub)]

mod named_files;
mod names;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use names::Crate;

/// The known circles. The list only gets shorter: a circle that is not listed fails the test, and so does an
/// entry without a circle.
const KNOWN: &[&[&str]] = &[];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn text(file: &str) -> Option<String> {
    fs::read_to_string(folder().join(file)).ok()
}

/// Returns a section of the guide's page on the source.
fn section_of_internals(title: &str) -> String {
    let page = fs::read_to_string(folder().join("../docs/src/internals.md")).unwrap();
    let mut sections = page.split("\n## ");
    sections.find(|section| section.starts_with(title)).expect("the page has the section").into()
}

/// The modules of the map, from the top.
fn layers() -> Vec<String> {
    let map = section_of_internals("Map of the source");
    let rows = map.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split('`').next().unwrap().into()).collect()
}

/// The names that lead to a layer above, or to no layer.
fn that_go_up(of: &Crate, layers: &[String]) -> Vec<String> {
    let height = |name: &str| layers.iter().position(|layer| layer == name);
    let mut wrong = Vec::new();
    for name in of.names.iter().filter(|name| !name.module.is_empty()) {
        let (own, Some(other)) = (name.module[0].as_str(), name.top()) else { continue };
        let Some(own) = height(own) else { panic!("{own} is not on the map") };
        if height(&other).is_none_or(|other| other < own) {
            wrong.push(format!("{} names {}", name.file, name.path.join("::")));
        }
    }
    wrong
}

#[test]
fn modules_name_only_what_is_below_them() {
    let of = Crate::read(&text, false);
    assert!(of.names.len() > 1_000, "only {} names were found in {} files", of.names.len(), of.files.len());
    let wrong = that_go_up(&of, &layers());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_files_name_each_other_in_a_circle_but_those_that_are_known() {
    let known: BTreeSet<BTreeSet<String>> =
        KNOWN.iter().map(|circle| circle.iter().map(|file| file.to_string()).collect()).collect();
    let found = Crate::read(&text, false).circles();
    let new: Vec<_> = found.iter().filter(|(circle, _)| !known.contains(circle)).collect();
    assert!(new.is_empty(), "these files name each other in a circle: {new:#?}");
    let gone: Vec<_> =
        known.iter().filter(|known| !found.iter().any(|(circle, _)| circle == *known)).collect();
    assert!(gone.is_empty(), "these circles are gone, so take them from the list: {gone:#?}");
}

/// The reader follows `mod` declarations: a file that it misses would be in no graph.
#[test]
fn each_file_is_declared() {
    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                files(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let (mut all, of) = (Vec::new(), Crate::read(&text, true));
    files(&folder(), &mut all);
    let inside = all.iter().map(|path| path.strip_prefix(folder()).unwrap().to_str().unwrap());
    // `src/macros` and `src/tokio` are packages of their own.
    let ours = inside.filter(|file| !file.starts_with("macros/") && !file.starts_with("tokio/"));
    let missed: Vec<_> = ours.filter(|file| !of.files.contains_key(&file.replace('\\', "/"))).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Reads a crate with these files: `(file, text)`.
fn made_of(files: &[(&str, &str)]) -> Crate {
    let files: BTreeMap<_, _> = files.iter().copied().collect();
    Crate::read(&|file| files.get(file).map(|text| text.to_string()), false)
}

/// Returns the files that `a.rs` draws an arrow to if it has this text. Beside it stand `c` and `b`, which
/// re-exports an item of `b/x.rs` and, under another name, an item of `b/y.rs`.
fn arrows_of(text: &str) -> Vec<String> {
    let of = made_of(&[
        ("lib.rs", "mod a; mod b; mod c; pub use b::Named;"),
        ("a.rs", text),
        ("b/mod.rs", "mod x; mod y; pub(crate) use x::Named; pub use y::Deep as Other; pub fn own() {}"),
        ("b/x.rs", "pub struct Named; impl Named { fn own_of_type() {} } pub(super) const HIDDEN: u8 = 1;"),
        ("b/y.rs", "pub enum Deep { One }"),
        ("c.rs", "pub(crate) use {mac, std::sync::Arc}; macro_rules! mac { () => {} } pub use crate::b::*;"),
    ]);
    of.arrows().into_keys().filter(|(from, _)| from == "a.rs").map(|(_, to)| to).collect()
}

#[test]
fn names_lead_to_the_file_that_defines_the_item() {
    for (text, files) in [
        ("use crate::b::own;", &["b/mod.rs"][..]),
        ("use super::b::own as other;", &["b/mod.rs"]),
        ("use self::super::b::own;", &["b/mod.rs"]),
        ("use crate::b::Named;", &["b/x.rs"]),
        ("use crate::Named;", &["b/x.rs"]),
        ("use crate::{b::{Named, own}, c::{self}};", &["b/mod.rs", "b/x.rs"]),
        ("use super::{b::{self, Other as O}, c::mac};", &["b/y.rs", "c.rs"]),
        ("use crate::b; fn f() { b::x::HIDDEN; }", &["b/x.rs"]),
        ("use crate::b; fn f(_: b::Other) {}", &["b/y.rs"]),
        ("use super::b as e; fn f() { e::Named::own_of_type(); }", &["b/x.rs"]),
        ("fn f() { use crate::b::Other; }", &["b/y.rs"]),
        ("fn f() -> super::b::Other { crate::b::Other::One }", &["b/y.rs"]),
        ("mod inner { use super::super::b::own; }", &["b/mod.rs"]),
        ("mod inner { fn f() { crate::c::mac!() } } use super::b::own;", &["b/mod.rs", "c.rs"]),
        // `c` re-exports an item of `b`, and one of another crate.
        ("use crate::c::Named;", &["b/x.rs"]),
        ("use crate::c::Arc;", &["c.rs"]),
        ("use crate::b::*;", &["b/mod.rs"]),
        ("pub use crate::b::own; fn f() { own() }", &["b/mod.rs"]),
        ("macro_rules! m { () => { $crate::b::Named } }", &["b/x.rs"]),
        ("fn f<'a>() { let quote = '\"'; } use crate::b::own;", &["b/mod.rs"]),
    ] {
        assert_eq!(arrows_of(text), files, "{text}");
    }
}

#[test]
fn what_is_no_name_of_an_item_draws_no_arrow() {
    for text in [
        "use crate::b;",
        "use std::b::own; use b2::own;",
        "pub use crate::b::own;",
        "pub(crate) use super::b::{own, Named as N};",
        "pub(in crate::b) struct S;",
        "// crate::b::own\n/* crate::b::own /* */ crate::b::own */",
        r##"const S: &str = "crate::b::own \" crate::b::own"; const R: &str = r#"" crate::b::own "#;"##,
        "#[doc(hidden)] fn f() { x.own(); Self::Named; }",
        "#[cfg(test)] mod tests { use crate::b::own; } fn f() {}",
        "#[cfg(all(test, paceline_loom))] #[inline] pub(crate) fn f<A, B>() { crate::b::own() }",
        "struct S { #[cfg(test)] f: crate::b::Named, g: u8 }",
    ] {
        assert_eq!(arrows_of(text), [""; 0], "{text}");
    }
}

#[test]
fn what_follows_a_test_is_read() {
    let tests = "#[cfg(test)] mod tests; #[cfg(all(test, x))] pub(crate) use tests::{a, b};";
    assert_eq!(arrows_of(&format!("{tests} use crate::b::own;")), ["b/mod.rs"]);
}

#[test]
fn a_circle_is_found_and_an_enclosing_module_is_none() {
    let lib = ("lib.rs", "mod a; mod b; mod c;");
    let of = |c| {
        made_of(&[
            lib,
            ("a.rs", "use super::b::B; pub struct A;"),
            ("b.rs", "mod inner; pub struct B(inner::I); pub use inner::I;"),
            ("b/inner.rs", "use super::B; pub struct I; fn f(_: crate::c::C) {}"),
            ("c.rs", c),
        ])
    };
    assert!(of("pub struct C; pub use super::a::A;").circles().is_empty());
    let circles = of("pub struct C(super::b::I);").circles();
    assert_eq!(circles.len(), 1);
    assert_eq!(circles[0].0, BTreeSet::from(["b/inner.rs".into(), "c.rs".into()]));
    assert_eq!(circles[0].1, ["b/inner.rs -> c.rs: crate::c::C", "c.rs -> b/inner.rs: super::b::I"]);
}

#[test]
fn files_for_one_module_are_read_each() {
    let of = made_of(&[
        (
            "lib.rs",
            "#[cfg_attr(x, path = \"a/one.rs\")] #[cfg_attr(not(x), path = \"a/two.rs\")] mod a; mod b;",
        ),
        ("a/one.rs", "use crate::b::B; pub struct A;"),
        ("a/two.rs", "pub struct A; fn f(_: A) {}"),
        ("b.rs", "pub struct B(super::a::A);"),
    ]);
    let arrows: Vec<_> = of.arrows().into_keys().collect();
    let arrow = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    assert_eq!(arrows, [arrow("a/one.rs", "b.rs"), arrow("b.rs", "a/one.rs"), arrow("b.rs", "a/two.rs")]);
}

#[test]
fn a_name_of_a_layer_above_is_found() {
    let layers = ["top".into(), "low".into()];
    let found = |low| {
        let lib = ("lib.rs", "mod top; mod low; pub use top::T;");
        that_go_up(&made_of(&[lib, ("top.rs", "use super::low::L; pub struct T;"), ("low.rs", low)]), &layers)
    };
    for low in [
        "use crate::top::T;",
        "pub(crate) use crate::top::T;",
        "use super::{low::L, top};",
        "mod m { fn f() { super::super::top::f() } }",
    ] {
        assert_eq!(found(low).len(), 1, "{low}");
    }
    // Not on the map.
    assert_eq!(found("use crate::T;"), ["low.rs names crate::T"]);
    assert_eq!(found("pub struct L; use self::L as M; mod m { use super::L; }"), [""; 0]);
}
