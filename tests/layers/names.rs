//! Reads the files of a crate and finds which file names an item of which other file.
//!
//! The reader understands the necessary parts of Rust: modules and their `path` attributes, `use` with nested
//! groups, paths that begin with `crate`, `self`, `super` or a module in scope, and macros. The reader works
//! on tokens, so comments and literals contain no names. Test-only items are left out.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{end_of_attribute, tokens, without_tests};

/// The path of a module from the root of the crate, or any other path.
pub type Path = Vec<String>;

/// The keywords before the name of an item.
pub const ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// A path that the code of a file contains.
pub struct Name {
    pub file: String,
    /// The module around it.
    pub module: Path,
    pub path: Path,
    /// The kind of place, as far as it decides where the name leads.
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Import,
    Glob,
    /// A re-export may not lead to a layer above, but draws no arrow.
    Export,
    Code,
    Macro,
}

#[derive(Default)]
struct Module {
    files: BTreeSet<String>,
    /// The files that define an item: several, if configurations choose between files for the module.
    items: BTreeMap<String, BTreeSet<String>>,
    macros: BTreeMap<String, String>,
    imports: Vec<Import>,
}

struct Import {
    file: String,
    /// `None` for `*`.
    name: Option<String>,
    path: Path,
    is_public: bool,
}

/// The target of a path.
#[derive(Debug, PartialEq)]
enum Target {
    Module(Path),
    /// The files that define the item.
    Item(BTreeSet<String>),
}

/// The modules of a crate, and the names in them.
pub struct Crate {
    modules: BTreeMap<Path, Module>,
    pub names: Vec<Name>,
    /// The module of each file.
    pub files: BTreeMap<String, Path>,
}

impl Crate {
    /// Reads `lib.rs` and all files that `mod` declarations lead to. `source` returns the text of a file.
    pub fn read(source: &dyn Fn(&str) -> Option<String>, with_tests: bool) -> Self {
        let mut this = Self { modules: BTreeMap::new(), names: Vec::new(), files: BTreeMap::new() };
        let mut left = vec![(String::from("lib.rs"), Path::new(), true)];
        while let Some((file, module, owns_folder)) = left.pop() {
            let Some(text) = source(&file) else { continue };
            this.files.insert(file.clone(), module.clone());
            let mut tokens = tokens(&text);
            if !with_tests {
                tokens = without_tests(&tokens);
            }
            let mut reader =
                Reader { of: &mut this, file: &file, tokens: &tokens, owns_folder, found: Vec::new() };
            reader.read(&module);
            left.append(&mut reader.found);
        }
        this
    }

    /// Returns which files name an item of which other files, and one such name.
    ///
    /// A module consists of the modules inside it, so an item of a module that a file declares draws no
    /// arrow; an item of the enclosing module does. Files between which configurations choose draw no arrows
    /// to each other.
    pub fn arrows(&self) -> BTreeMap<(String, String), String> {
        let mut arrows = BTreeMap::new();
        for name in &self.names {
            let files = self.defined_in(name);
            let others =
                files.iter().filter(|to| !files.contains(&name.file) && !self.is_in_module(to, &name.file));
            for to in others {
                arrows.entry((name.file.clone(), to.clone())).or_insert_with(|| name.path.join("::"));
            }
        }
        arrows
    }

    /// Returns whether a file is the same module as another one, or a module inside of it.
    fn is_in_module(&self, file: &str, other: &str) -> bool {
        self.files[file].starts_with(&self.files[other])
    }

    /// Returns the files that define the target of a name. Empty for other crates, and for an import of a
    /// module: the names that begin with the module draw their own arrows.
    fn defined_in(&self, name: &Name) -> BTreeSet<String> {
        match self.resolve(&name.module, &name.path, 0) {
            _ if name.kind == Kind::Export => BTreeSet::new(),
            Some(Target::Item(files)) => files,
            Some(Target::Module(module)) if name.kind == Kind::Glob => self.modules[&module].files.clone(),
            None if name.kind == Kind::Macro => self.textual_macro(name).into_iter().collect(),
            _ => BTreeSet::new(),
        }
    }

    /// Finds a macro of an enclosing module, which needs no path.
    fn textual_macro(&self, name: &Name) -> Option<String> {
        let around = (0..=name.module.len()).rev().filter_map(|len| self.modules.get(&name.module[..len]));
        around.filter_map(|module| module.macros.get(name.path.last()?)).next().cloned()
    }

    fn resolve(&self, from: &Path, path: &[String], depth: usize) -> Option<Target> {
        if depth > 16 {
            return None;
        }
        let mut module = from.clone();
        for (at, name) in path.iter().enumerate() {
            match name.as_str() {
                "self" => continue,
                "crate" => module.clear(),
                "super" => drop(module.pop()?),
                _ => match self.look_up(&module, name, at + 1 == path.len(), depth) {
                    Some(Target::Module(next)) => module = next,
                    Some(item) => return Some(item),
                    // Another crate, or an item that a macro makes.
                    None if at == 0 => return None,
                    None => return Some(Target::Item(self.modules.get(&module)?.files.clone())),
                },
            }
        }
        Some(Target::Module(module))
    }

    /// Returns the meaning of a name in a module. The last name of a path is preferably an item, and not a
    /// module of the same name.
    fn look_up(&self, module: &Path, name: &str, is_last: bool, depth: usize) -> Option<Target> {
        let inside = self.modules.get(module)?;
        let item = || inside.items.get(name).map(|files| Target::Item(files.clone()));
        let child = || {
            let child = [module.as_slice(), &[name.into()]].concat();
            self.modules.contains_key(&child).then_some(Target::Module(child))
        };
        let own = if is_last { item().or_else(child) } else { child().or_else(item) };
        own.or_else(|| {
            let named = inside.imports.iter().filter(|import| import.name.as_deref() == Some(name));
            // For this crate, an item of another crate is defined where it is imported for others.
            let mut found = named.filter_map(|import| {
                let target = self.resolve(module, &import.path, depth + 1);
                let door = || Target::Item(BTreeSet::from([import.file.clone()]));
                target.or_else(|| import.is_public.then(door))
            });
            found.next()
        })
        .or_else(|| {
            let globs = inside.imports.iter().filter(|import| import.name.is_none());
            globs
                .filter_map(|import| match self.resolve(module, &import.path, depth + 1)? {
                    Target::Module(other) if other != *module => {
                        self.look_up(&other, name, is_last, depth + 1)
                    }
                    _ => None,
                })
                .next()
        })
    }

    /// Returns the files that name each other in a circle, with the arrows between them.
    pub fn circles(&self) -> Vec<(BTreeSet<String>, Vec<String>)> {
        let arrows = self.arrows();
        let mut next = BTreeMap::<_, Vec<_>>::new();
        arrows.keys().for_each(|(from, to)| next.entry(from).or_default().push(to));
        let reach = |from| {
            let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
            while let Some(file) = left.pop() {
                left.extend(
                    next.get(file).into_iter().flatten().copied().filter(|to| seen.insert((*to).clone())),
                );
            }
            seen
        };
        let reached: BTreeMap<_, _> = self.files.keys().map(|file| (file, reach(file))).collect();
        let circle_of = |file: &String| -> BTreeSet<String> {
            reached[file].iter().filter(|other| reached[other].contains(file)).cloned().collect()
        };
        let circles: BTreeSet<_> =
            self.files.keys().map(circle_of).filter(|circle| !circle.is_empty()).collect();
        let ties = |circle: &BTreeSet<String>| {
            let inside = arrows.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
            inside.map(|((from, to), name)| format!("{from} -> {to}: {name}")).collect()
        };
        circles
            .into_iter()
            .map(|circle| {
                let ties = ties(&circle);
                (circle, ties)
            })
            .collect()
    }
}

impl Name {
    /// Returns the top-level module in a path that begins with `crate`, `self` or `super`.
    pub fn top(&self) -> Option<String> {
        if !is_anchored(&self.path) {
            return None;
        }
        let mut path = self.module.clone();
        for name in &self.path {
            match name.as_str() {
                "self" => {}
                "crate" => path.clear(),
                "super" => drop(path.pop()),
                _ => path.push(name.clone()),
            }
        }
        path.into_iter().next()
    }
}

/// Reads the tokens of one file.
struct Reader<'a> {
    of: &'a mut Crate,
    file: &'a str,
    tokens: &'a [String],
    /// Whether the file's modules are in its own folder, as for a `mod.rs`.
    owns_folder: bool,
    /// The files that this file declares.
    found: Vec<(String, Path, bool)>,
}

impl Reader<'_> {
    fn token(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", String::as_str)
    }

    fn read(&mut self, root: &Path) {
        self.of.modules.entry(root.clone()).or_default().files.insert(self.file.into());
        // The enclosing modules, and the number of open braces where each begins.
        let (mut around, mut open, mut paths, mut at) = (vec![(root.clone(), 0)], 0, Vec::new(), 0);
        while at < self.tokens.len() {
            let (module, begin) = around.last().cloned().unwrap();
            let next = self.token(at + 1).to_owned();
            match self.token(at) {
                "#" if next == "[" || next == "!" => {
                    let end = end_of_attribute(self.tokens, at);
                    let attribute = &self.tokens[at..end];
                    let values = attribute.windows(3).filter(|part| part[0] == "path" && part[1] == "=");
                    paths.extend(values.map(|part| part[2].trim_matches('"').to_owned()));
                    at = end;
                    continue;
                }
                "{" => open += 1,
                "}" => {
                    open -= 1;
                    if open == begin && around.len() > 1 {
                        around.pop();
                    }
                }
                "use" if next != "<" => {
                    let is_public = is_public(self.tokens, at);
                    let mut leaves = Vec::new();
                    at = self.import(at + 1, &Path::new(), &mut leaves);
                    leaves
                        .into_iter()
                        .for_each(|(path, name)| self.add_import(&module, path, name, is_public));
                    continue;
                }
                "mod" if self.token(at + 2) == "{" => {
                    let child = [module.as_slice(), &[next]].concat();
                    self.of.modules.entry(child.clone()).or_default().files.insert(self.file.into());
                    around.push((child, open));
                }
                "mod" if self.token(at + 2) == ";" => {
                    self.declare(&module, &next, &std::mem::take(&mut paths))
                }
                "macro_rules" => {
                    let name = self.token(at + 2).to_owned();
                    let inside = self.of.modules.get_mut(&module).unwrap();
                    inside.macros.insert(name.clone(), self.file.into());
                    inside.items.entry(name).or_default().insert(self.file.into());
                }
                keyword if ITEMS.contains(&keyword) => {
                    paths.clear();
                    let name = if next == "mut" { self.token(at + 2).to_owned() } else { next };
                    if open == begin && is_identifier(&name) {
                        let inside = self.of.modules.get_mut(&module).unwrap();
                        inside.items.entry(name).or_default().insert(self.file.into());
                    }
                }
                word if is_identifier(word) && !["::", "."].contains(&self.token(at.wrapping_sub(1))) => {
                    at = self.path(at, &module);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Reads a path in the code, which may be one name.
    fn path(&mut self, begin: usize, module: &Path) -> usize {
        let (mut path, mut at) = (vec![self.token(begin).to_owned()], begin + 1);
        while self.token(at) == "::" && is_identifier(self.token(at + 1)) {
            path.push(self.token(at + 1).into());
            at += 2;
        }
        let is_macro = self.token(at) == "!" && self.token(at + 1) != "=";
        let kind = if is_macro { Kind::Macro } else { Kind::Code };
        if path.len() > 1 || !is_anchored(&path) && path[0] != "Self" {
            self.of.names.push(Name { file: self.file.into(), module: module.clone(), path, kind });
        }
        at
    }

    /// Collects the leaves of a `use`, each with its local name.
    fn import(&self, mut at: usize, before: &Path, leaves: &mut Vec<(Path, Option<String>)>) -> usize {
        let mut path = before.clone();
        loop {
            match self.token(at) {
                "{" => {
                    at += 1;
                    while self.token(at) != "}" {
                        at = self.import(at, &path, leaves);
                        at += usize::from(self.token(at) == ",");
                    }
                    return at + 1;
                }
                "*" => {
                    leaves.push((path, None));
                    return at + 1;
                }
                "::" => at += 1,
                "as" => {
                    let name = self.token(at + 1).to_owned();
                    leaves.push((path, Some(name)));
                    return at + 2;
                }
                word if is_identifier(word) => {
                    path.push(word.into());
                    at += 1;
                }
                _ => {
                    let name = path.iter().rfind(|name| *name != "self").cloned();
                    leaves.push((path, Some(name.unwrap_or_default())));
                    return at;
                }
            }
        }
    }

    fn add_import(&mut self, module: &Path, path: Path, name: Option<String>, is_public: bool) {
        let kind = match name {
            _ if is_public => Kind::Export,
            None => Kind::Glob,
            Some(_) => Kind::Import,
        };
        self.of.names.push(Name { file: self.file.into(), module: module.clone(), path: path.clone(), kind });
        let import = Import { file: self.file.into(), name, path, is_public };
        self.of.modules.get_mut(module).unwrap().imports.push(import);
    }

    /// Handles `mod name;`, with the values of its `path` attributes.
    fn declare(&mut self, module: &Path, name: &str, paths: &[String]) {
        let child = [module.as_slice(), &[name.into()]].concat();
        let folder = self.file.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        let stem = self.file.trim_end_matches(".rs");
        let own = if self.owns_folder { folder.clone() } else { format!("{stem}/") };
        self.found.push((format!("{own}{name}/mod.rs"), child.clone(), true));
        self.found.push((format!("{own}{name}.rs"), child.clone(), false));
        // From the folder of the crate, whose modules have folders right below it.
        let file =
            |path: &String| path.strip_prefix("../").map_or_else(|| format!("{folder}{path}"), Into::into);
        self.found.extend(paths.iter().map(|path| (file(path), child.clone(), true)));
    }
}

fn is_anchored(path: &[String]) -> bool {
    ["crate", "self", "super"].contains(&path[0].as_str())
}

fn is_identifier(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_') && token != "_"
}

/// Returns whether the item that begins at a token has a `pub` before it.
fn is_public(tokens: &[String], at: usize) -> bool {
    match at.checked_sub(1).map(|before| tokens[before].as_str()) {
        Some("pub") => true,
        Some(")") => {
            let open = tokens[..at].iter().rposition(|token| token == "(");
            open.is_some_and(|open| open > 0 && tokens[open - 1] == "pub")
        }
        _ => false,
    }
}
