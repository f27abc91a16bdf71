//! docs/security.md names a test for each protection, and the test exists.

use std::path::{Path, PathBuf};

use super::{code, text};

#[test]
fn every_protection_has_its_test() {
    let page = text(Path::new("docs/security.md"));
    let rows: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Protection |")).collect();
    assert!(rows.len() > 30, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for row in rows {
        let proof = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let names: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            wrong.push(format!("no test: {row}"));
        }
        wrong.extend(names.iter().filter(|name| !exists(name)).map(|name| format!("no such test: {name}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether a test exists: `a::b::name` in `tests/it/a/b.rs`, and `name` beside the code.
fn exists(name: &str) -> bool {
    let declares = |path: &PathBuf, test: &str| {
        let text = text(path);
        let (plain, unit) = (format!("#[test]\nfn {test}()"), format!("#[test]\n    fn {test}()"));
        let (own, shared) = (format!("\nfn {test}(db: Db)"), format!("\nfn {test}(server: Shared)"));
        [plain, unit, own, shared].iter().any(|declaration| text.contains(declaration.as_str()))
    };
    match name.rsplit_once("::") {
        Some((module, test)) => {
            let path = PathBuf::from(format!("tests/it/{}.rs", module.replace("::", "/")));
            code().contains(&path) && declares(&path, test)
        }
        None => code().iter().any(|path| declares(path, name)),
    }
}
