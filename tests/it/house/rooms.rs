//! Import rules between modules, read from the source and from the map in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{files, text};

/// The rooms of the business. A room imports the engine and the rooms listed before it.
const ROOMS: [&str; 27] = [
    "files",
    "reading",
    "typesetting",
    "settings",
    "relations",
    "sales",
    "work",
    "mail",
    "people",
    "keys",
    "support",
    "documents",
    "payments",
    "subscriptions",
    "automation",
    "webhooks",
    "overview",
    "transfer",
    "calendar",
    "pages",
    "console",
    "upkeep",
    "demo",
    "registry",
    "opening",
    "cli",
    "main",
];

/// Terms that must not occur in the engine.
const BUSINESS: [&str; 17] = [
    "invoice",
    "workorder",
    "subscription",
    "mandate",
    "supplier",
    "pipeline",
    "ticket",
    "deal",
    "deals",
    "quotation",
    "mollie",
    "payment",
    "payments",
    "webhook",
    "webhooks",
    "flow",
    "flows",
];

#[test]
fn a_room_imports_only_rooms_before_it() {
    let imports = imports("src");
    let place = |room: &str| ROOMS.iter().position(|own| *own == room);
    let mut wrong = BTreeSet::new();
    for (module, known) in &imports {
        let own = first(module);
        let own_place = place(own).unwrap_or_else(|| panic!("the room {own} is not in the order of rooms"));
        for other in known.iter().map(|other| first(other)) {
            if place(other).is_none_or(|place| place > own_place) {
                wrong.insert(format!("{module} knows {other}, which comes later"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_map_lists_the_rooms_in_order() {
    let mut listed: Vec<String> = Vec::new();
    for name in map("| Room |").into_iter().flatten() {
        let room = name.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches('/');
        if !listed.iter().any(|own| own == room) {
            listed.push(room.to_string());
        }
    }
    // The last one only calls `cli`.
    assert_eq!(listed, ROOMS[..ROOMS.len() - 1]);
}

#[test]
fn the_engine_imports_only_layers_above_in_the_map() {
    let rows = map("| Modules |");
    let layer = |module: &str| {
        let parts: Vec<&str> = module.split("::").collect();
        let names = (1..=parts.len()).rev().map(|length| parts[..length].join("/"));
        names
            .into_iter()
            .find_map(|name| rows.iter().position(|row| row.iter().any(|listed| listed.trim_end_matches('/') == name)))
    };
    let mut wrong = Vec::new();
    for (module, known) in imports("crates/engine/src") {
        let Some(own) = layer(&module) else {
            wrong.push(format!("{module} is not in the map of ARCHITECTURE.md"));
            continue;
        };
        let later = known.iter().filter(|other| layer(other).is_none_or(|layer| layer > own));
        wrong.extend(later.map(|other| format!("{module} imports {other} of a later layer")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_file_and_crate_in_the_map_exists() {
    let page = text(Path::new("ARCHITECTURE.md"));
    let folders = ["src", "crates", "tests", "benches", "fuzz", "templates", ".cargo"];
    let there: Vec<PathBuf> = folders.iter().flat_map(|folder| files(folder, "")).collect();
    let names = page.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs") && !name.contains(' '));
    let missing: Vec<&str> = names.filter(|name| !there.iter().any(|path| path.ends_with(name))).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    for lib in files("crates", "/src/lib.rs") {
        let folder = lib.parent().and_then(Path::parent).unwrap().display().to_string();
        assert!(page.contains(&format!("`{folder}")), "{folder} is not in the map");
    }
}

/// Returns the names in the first column of a table of ARCHITECTURE.md, by row.
fn map(head: &str) -> Vec<Vec<String>> {
    let page = text(Path::new("ARCHITECTURE.md"));
    let (_, table) = page.split_once(head).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let names = |row: &str| {
        let column = row.split('|').nth(1).unwrap_or_default();
        column.split('`').skip(1).step_by(2).map(str::to_string).collect()
    };
    rows.map(names).collect()
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let crates = files("crates", "/src/lib.rs").into_iter().filter_map(|lib| Some(lib.parent()?.to_path_buf()));
    let roots = crates.chain(["src", "benches/src", "fuzz/src"].map(PathBuf::from));
    let circles: Vec<String> = roots.flat_map(|root| circle_in(&root.to_string_lossy())).collect();
    assert!(circles.is_empty(), "these import each other in a circle, or something that does: {circles:#?}");
}

/// The modules under `root` that are in a circle, or import one that is.
fn circle_in(root: &str) -> Vec<String> {
    let mut left = imports(root);
    // Modules without remaining imports form the lowest layer.
    loop {
        let lowest: Vec<String> = left
            .iter()
            .filter(|(_, known)| !known.iter().any(|other| left.contains_key(other)))
            .map(|(own, _)| own.clone())
            .collect();
        if lowest.is_empty() {
            return left.into_keys().map(|module| format!("{root}: {module}")).collect();
        }
        lowest.iter().for_each(|own| drop(left.remove(own)));
    }
}

#[test]
fn the_engine_contains_no_business_terms() {
    let mut wrong = Vec::new();
    // All settings are declared in one place, those of the business too.
    for path in files("crates/engine/src", ".rs").into_iter().filter(|path| !path.ends_with("config.rs")) {
        for (number, line) in text(&path).lines().enumerate() {
            let words = line.split(|letter: char| !letter.is_alphabetic()).map(str::to_lowercase);
            if let Some(word) = words.into_iter().find(|word| BUSINESS.contains(&word.as_str())) {
                wrong.push(format!("{}:{}: {word}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn statements_stay_out_of_http() {
    let wrong: Vec<_> = files("crates/engine/src/http", ".rs")
        .into_iter()
        .filter(|path| {
            let text = text(path);
            ["\"SELECT ", "\"INSERT ", "\"UPDATE ", "\"DELETE FROM"].iter().any(|sql| text.contains(sql))
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn rooms_know_no_http_status() {
    let rooms = files("src", ".rs")
        .into_iter()
        .filter(|path| !path.starts_with("src/pages") && !path.starts_with("src/console"));
    let wrong: Vec<_> = rooms.filter(|path| text(path).contains("StatusCode")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn only_the_store_tells_the_databases_apart() {
    let told = |path: &Path| ["Dialect::Sqlite", "Dialect::Postgres"].iter().any(|name| text(path).contains(name));
    let all = files("src", ".rs").into_iter().chain(files("crates/engine/src", ".rs"));
    let wrong: Vec<_> = all.filter(|path| told(path)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_module_has_a_generic_name() {
    let wrong: Vec<_> = files("src", ".rs")
        .into_iter()
        .chain(files("crates", ".rs"))
        .filter(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            ["util", "utils", "helper", "helpers", "service", "manager", "common", "misc"].contains(&name.as_str())
        })
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the first part of a module's path: its room.
fn first(module: &str) -> &str {
    module.split("::").next().unwrap_or_default()
}

/// Returns the imports of each module under `root`, without tests.
fn imports(root: &str) -> BTreeMap<String, BTreeSet<String>> {
    let modules: BTreeMap<String, String> = files(root, ".rs")
        .iter()
        .map(|path| {
            let module = path.strip_prefix(root).unwrap().with_extension("");
            let parts: Vec<String> = module.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            (parts.join("::"), text(path))
        })
        // The second exists only in tests.
        .filter(|(module, _)| !["lib", "declared"].contains(&module.as_str()))
        .collect();
    let known = |module: &str, text: &str| -> BTreeSet<String> {
        let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let code: String =
            code.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect();
        let paths = used(&code).into_iter().chain(inline(&code));
        let whole = paths.filter_map(|path| absolute(module, &path, &modules));
        whole.filter(|other| other != module).collect()
    };
    modules.iter().map(|(module, text)| (module.clone(), known(module, text))).collect()
}

/// Returns the paths of `use` declarations, one for each name.
fn used(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for declaration in code.split("use ").skip(1) {
        let tree: String = declaration.split(';').next().unwrap_or_default().split_whitespace().collect();
        leaves("", &tree, &mut paths);
    }
    paths
}

/// Expands `a::{b, c::{d, e}}`.
fn leaves(before: &str, tree: &str, paths: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        paths.push(format!("{before}{tree}"));
        return;
    };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut start) = (0, 0);
    for (place, letter) in inner.char_indices().chain([(inner.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if start < place {
                    leaves(&format!("{before}{head}"), &inner[start..place], paths);
                }
                start = place + 1;
            }
            _ => {}
        }
    }
}

/// Returns paths in the code that start with `crate::` or `super::`.
fn inline(code: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for start in ["crate::", "super::"] {
        for (place, _) in code.match_indices(start) {
            if code[..place].ends_with(|letter: char| letter.is_alphanumeric() || "$:_".contains(letter)) {
                continue;
            }
            let path = code[place..].split(|letter: char| !letter.is_alphanumeric() && !"_:".contains(letter)).next();
            // With braces behind it, it is a declaration, whose names `used` finds.
            paths.extend(path.filter(|path| !path.ends_with(':')).map(str::to_string));
        }
    }
    paths
}

/// Returns the module of a path, if it is one of ours.
fn absolute(module: &str, path: &str, modules: &BTreeMap<String, String>) -> Option<String> {
    let mut parts: Vec<&str> = path.split("::").collect();
    let mut base: Vec<&str> = match parts.first() {
        Some(&"crate") => Vec::new(),
        Some(&("super" | "self")) => module.split("::").collect(),
        // A child that is declared here.
        _ if modules.contains_key(&format!("{module}::{}", parts[0])) => module.split("::").collect(),
        _ => return None,
    };
    while let Some(&first @ ("crate" | "super" | "self")) = parts.first() {
        if first == "super" {
            base.pop();
        }
        parts.remove(0);
    }
    base.extend(parts);
    (1..=base.len()).rev().map(|length| base[..length].join("::")).find(|module| modules.contains_key(module))
}
