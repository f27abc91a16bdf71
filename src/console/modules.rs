//! Which modules a module needs, read from its import statements. The page names them, so that a browser loads all of them
//! at once instead of discovering them one after the other.

/// The libraries, by the names under which the modules import them.
pub const LIBRARIES: [(&str, &str); 4] = [
    ("preact", "vendor/preact.js"),
    ("preact/hooks", "vendor/hooks.js"),
    ("@preact/signals", "vendor/signals.js"),
    ("@preact/signals-core", "vendor/signals-core.js"),
];

/// Returns these modules and those that they import, each once. `text` returns the text of a file that exists.
pub fn with_imports<'t>(modules: &[&str], text: impl Fn(&str) -> Option<&'t str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open: Vec<String> = modules.iter().rev().map(ToString::to_string).collect();
    while let Some(module) = open.pop() {
        let Some(source) = text(&module).filter(|_| !found.contains(&module)) else { continue };
        open.extend(imports(source).filter_map(|name| resolve(&module, name)));
        found.push(module);
    }
    found
}

/// Returns these modules and those that they import, each after those that it imports.
pub fn in_order<'t>(modules: &[&str], text: impl Fn(&str) -> Option<&'t str>) -> Vec<String> {
    fn add<'t>(module: &str, text: &impl Fn(&str) -> Option<&'t str>, seen: &mut Vec<String>, found: &mut Vec<String>) {
        let Some(source) = text(module).filter(|_| !seen.iter().any(|own| own == module)) else { return };
        seen.push(module.to_string());
        imports(source).filter_map(|name| resolve(module, name)).for_each(|next| add(&next, text, seen, found));
        found.push(module.to_string());
    }
    let (mut seen, mut found) = (Vec::new(), Vec::new());
    modules.iter().for_each(|module| add(module, &text, &mut seen, &mut found));
    found
}

/// Returns the names in the import statements of a module. Types are imported in comments, as `import("…")`.
fn imports(source: &str) -> impl Iterator<Item = &str> {
    let statements = source.split("from\"").skip(1).chain(source.split("from \"").skip(1));
    let named = statements.filter_map(|rest| rest.split('"').next());
    let bare = source.lines().filter_map(|line| line.strip_prefix("import \"")?.split('"').next());
    named.chain(bare).filter(|name| !name.is_empty() && name.len() < 100 && !name.contains(char::is_whitespace))
}

/// Returns the file that a module imports under a name.
pub fn resolve(module: &str, name: &str) -> Option<String> {
    if let Some((_, file)) = LIBRARIES.iter().find(|(own, _)| *own == name) {
        return Some(file.to_string());
    }
    let folder = module.rsplit_once('/').map_or("", |(folder, _)| folder);
    match (name.strip_prefix("./"), name.strip_prefix("../")) {
        (Some(file), _) if folder.is_empty() => Some(file.to_string()),
        (Some(file), _) => Some(format!("{folder}/{file}")),
        (_, Some(file)) => Some(file.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_by_their_imports() {
        let files = [
            (
                "app.js",
                "import { h } from \"preact\";\nimport {\n  a,\n} from \"./b.js\";\n/** @type {import(\"./types.js\").A} */",
            ),
            ("b.js", "import { c } from \"./screens/c.js\"; const from = \"elsewhere\";"),
            ("screens/c.js", "import { d } from \"../d.js\"; import { a } from \"../app.js\";"),
            ("d.js", "await import(\"./late.js\");"),
            ("late.js", ""),
            ("vendor/preact.js", "export const h = 1;"),
        ];
        let text = |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| *text);
        let mut found = with_imports(&["app.js"], text);
        found.sort();
        assert_eq!(found, ["app.js", "b.js", "d.js", "screens/c.js", "vendor/preact.js"]);
    }
}
