//! Joins the modules of the console into a few files when the program starts: a browser takes several milliseconds for
//! each file, so 20 modules of the first screen cost more than everything in them. The modules stay plain ES modules for
//! whoever writes and checks them.
//!
//! `app.js` has the modules of the first screen, `rest.js` those that other screens share, `small.js` small screens; each other
//! screen stays a file. In a joined file, a module is a function that is called once and returns its exports, under the name of the module:
//! `export const $words = (() => { …; return { t, word }; })();`. Modules have no cycles and no exports that change.
//! Comments, most of which are types, are left out: they are a sixth of what a browser would load.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::modules;

/// The file of the first screen, the one of what other screens share, and the one of small screens.
const FIRST: &str = "app.js";
const SHARED: &str = "rest.js";
const SMALL: &str = "small.js";
/// How many bytes a small screen has at most. Compressed together, these take two thirds of what they take apart.
const MAX_SMALL: usize = 7_000;

/// All modules as they are served.
pub struct Joined {
    /// The texts, by their files.
    pub files: BTreeMap<String, String>,
    /// The joined file of each module that has one.
    places: BTreeMap<String, &'static str>,
}

impl Joined {
    pub fn of(sources: &BTreeMap<&str, &str>) -> Joined {
        let text = |path: &str| sources.get(path).copied();
        let first = modules::in_order(&["list.js", "app.js"], text);
        let own: Vec<&str> = sources.keys().copied().filter(|path| !path.contains('/')).collect();
        let mut shared = modules::in_order(&own, text);
        shared.retain(|path| !first.contains(path));
        let mut places: BTreeMap<String, &'static str> = first.iter().map(|path| (path.clone(), FIRST)).collect();
        places.extend(shared.iter().map(|path| (path.clone(), SHARED)));
        let small = small_screens(sources);
        places.extend(small.iter().map(|path| (path.clone(), SMALL)));
        let join = Join { sources, places: &places };
        let alone = sources.keys().filter(|path| !places.contains_key(**path));
        let mut files: BTreeMap<String, String> = alone.map(|path| (path.to_string(), join.alone(path))).collect();
        files.insert(FIRST.to_string(), join.group(FIRST, &first));
        files.insert(SHARED.to_string(), join.group(SHARED, &shared));
        files.insert(SMALL.to_string(), join.group(SMALL, &small));
        Joined { files, places }
    }

    /// Returns the file in which a module is served.
    pub fn file_of<'p>(&self, module: &'p str) -> &'p str {
        self.places.get(module).copied().unwrap_or(module)
    }
}

/// Returns the small screens, each after those that it imports. One that imports a larger screen is not among them, so that
/// their file imports none: that screen may import it in turn.
fn small_screens(sources: &BTreeMap<&str, &str>) -> Vec<String> {
    let text = |path: &str| sources.get(path).copied();
    let is_screen = |path: &str| path.starts_with("screens/");
    let is_small = |path: &str| is_screen(path) && text(path).is_some_and(|source| source.len() <= MAX_SMALL);
    let small: Vec<&str> = sources
        .keys()
        .copied()
        .filter(|path| modules::with_imports(&[path], text).iter().all(|own| !is_screen(own) || is_small(own)))
        .filter(|path| is_small(path))
        .collect();
    let mut ordered = modules::in_order(&small, text);
    ordered.retain(|path| is_screen(path));
    ordered
}

/// The name of a module in the file that it is joined into. No module declares such a name.
fn name(path: &str) -> String {
    let path = path.trim_end_matches(".js");
    format!("${}", path.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_"))
}

struct Join<'s> {
    sources: &'s BTreeMap<&'s str, &'s str>,
    /// The joined file of each module that has one.
    places: &'s BTreeMap<String, &'static str>,
}

impl Join<'_> {
    fn group(&self, file: &str, paths: &[String]) -> String {
        let (mut text, mut outside) = (String::new(), BTreeSet::new());
        for path in paths {
            let module = self.module(path, file, &mut outside);
            let exports: Vec<String> = module.exports.iter().map(|(there, here)| member(there, here, ":")).collect();
            let (name, body, exports) = (name(path), module.body.trim_end(), exports.join(", "));
            let _ =
                write!(text, "\n// {path}\nexport const {name} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();\n");
        }
        format!("{}{text}", imports(&outside, "./"))
    }

    /// A module that is a file of its own.
    fn alone(&self, path: &str) -> String {
        let mut outside = BTreeSet::new();
        let module = self.module(path, path, &mut outside);
        let up = if path.contains('/') { "../" } else { "./" };
        let mut text = imports(&outside, up) + &module.body;
        let exports: Vec<String> = module.exports.iter().map(|(there, here)| member(here, there, " as ")).collect();
        let _ = write!(text, "\nexport {{ {} }};\n", exports.join(", "));
        text
    }

    /// Takes a module apart for a file. Adds what that file must import from joined files to `outside`.
    fn module(&self, path: &str, file: &str, outside: &mut BTreeSet<(String, String)>) -> Module {
        let source = self.sources.get(path).copied().unwrap_or_default();
        let source = source.split("//# sourceMappingURL").next().unwrap_or_default();
        let source = if path.starts_with("vendor/") { source.to_string() } else { without_comments(source) };
        let mut module = Module { body: String::new(), exports: Vec::new() };
        let mut rest = source.as_str();
        while let Some(at) = next_statement(rest) {
            module.body.push_str(&rest[..at]);
            let statement = &rest[at..];
            let end = if statement.starts_with("import") {
                self.import(path, file, statement, &mut module, outside)
            } else {
                self.export(path, statement, &mut module)
            };
            rest = &statement[end..];
        }
        module.body.push_str(rest);
        module.body = self.late(path, file, &module.body);
        module
    }

    /// Replaces an import from a joined module; returns the length of the statement.
    fn import(
        &self,
        path: &str,
        file: &str,
        statement: &str,
        module: &mut Module,
        outside: &mut BTreeSet<(String, String)>,
    ) -> usize {
        let end = statement.find(';').map_or(statement.len(), |end| end + 1);
        let from = statement[..end].split('"').nth(1).and_then(|from| modules::resolve(path, from)).unwrap_or_default();
        let Some(place) = self.places.get(from.as_str()) else {
            module.body.push_str(&statement[..end]);
            return end;
        };
        if *place != file {
            outside.insert((place.to_string(), name(&from)));
        }
        let names: Vec<String> = pairs(statement).iter().map(|(there, here)| member(there, here, ":")).collect();
        let _ = write!(module.body, "const {{ {} }} = {};", names.join(", "), name(&from));
        end
    }

    /// Notes what is exported and leaves the declaration; returns the length of what was read.
    fn export(&self, path: &str, statement: &str, module: &mut Module) -> usize {
        let word = "export".len();
        let declared = statement[word..].trim_start();
        if !declared.starts_with('{') {
            let words = declared.split(|letter: char| !(letter.is_ascii_alphanumeric() || "_$".contains(letter)));
            let own = words.filter(|word| !["", "async", "function", "const", "class"].contains(word)).take(1);
            let own = own.map(|name| (name.to_string(), name.to_string())).collect();
            // `export const { a, b } = …`
            let several = declared.starts_with("const {").then(|| pairs(declared));
            module.exports.extend(several.unwrap_or(own));
            return statement.len() - declared.len();
        }
        let end = statement.find(';').map_or(statement.len(), |end| end + 1);
        let from = statement[..end].split('"').nth(1).and_then(|from| modules::resolve(path, from));
        module.exports.extend(pairs(statement).into_iter().map(|(here, there)| match &from {
            Some(from) => (there, format!("{}.{here}", name(from))),
            None => (there, here),
        }));
        end
    }

    /// Replaces the imports that happen later, `import("./clock.js")`, of modules that are joined.
    fn late(&self, path: &str, file: &str, body: &str) -> String {
        let up = if file.contains('/') { "../" } else { "./" };
        let mut text = String::with_capacity(body.len());
        let mut parts = body.split("import(\"");
        text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let (from, rest) = part.split_once("\")").unwrap_or((part, ""));
            let resolved = modules::resolve(path, from).unwrap_or_default();
            let _ = match self.places.get(resolved.as_str()) {
                Some(place) if *place == file => write!(text, "Promise.resolve({})", name(&resolved)),
                Some(place) => write!(text, "import(\"{up}{place}\").then((all) => all.{})", name(&resolved)),
                None => write!(text, "import(\"{up}{resolved}\")"),
            };
            text.push_str(rest);
        }
        text
    }
}

/// Returns a name, and its other name if they differ.
fn member(name: &str, other: &str, between: &str) -> String {
    if name == other { name.to_string() } else { format!("{name}{between}{other}") }
}

/// Leaves out the lines that are comments, all `/** … */`, also within a line, and the indentation. A test of the console's
/// rules refuses texts that look like a comment or have several lines.
fn without_comments(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut parts = source.split("/**");
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (_, rest) = part.split_once("*/").unwrap_or((part, ""));
        text.push_str(rest.strip_prefix(' ').unwrap_or(rest));
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

struct Module {
    body: String,
    /// The name of each export, and its value.
    exports: Vec<(String, String)>,
}

/// What a file imports from joined files.
fn imports(outside: &BTreeSet<(String, String)>, up: &str) -> String {
    let mut text = String::new();
    for place in [FIRST, SHARED, SMALL] {
        let names: Vec<&str> = outside.iter().filter(|(own, _)| own == place).map(|(_, name)| name.as_str()).collect();
        if !names.is_empty() {
            let _ = writeln!(text, "import {{ {} }} from \"{up}{place}\";", names.join(", "));
        }
    }
    text
}

/// Returns where the next statement begins that imports or exports something.
fn next_statement(text: &str) -> Option<usize> {
    let begins = |at: usize| at == 0 || text[..at].ends_with(['\n', ';', '}']);
    let found = |word: &'static str, after: &'static [&'static str]| {
        let matches = text.match_indices(word).map(|(at, _)| at);
        matches
            .into_iter()
            .find(|at| begins(*at) && after.iter().any(|after| text[at + word.len()..].starts_with(after)))
    };
    let import = found("import", &[" {", "{", " \""]);
    let export = found("export", &[" ", "{"]);
    import.into_iter().chain(export).min()
}

/// Reads the names between the first braces: `{ a, b as c }`, or `{ a, b: c }`.
fn pairs(statement: &str) -> Vec<(String, String)> {
    let list = statement.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(list, _)| list);
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| {
            let (first, second) = name.split_once(" as ").or_else(|| name.split_once(':')).unwrap_or((name, name));
            (first.trim().to_string(), second.trim().to_string())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_become_functions_in_a_few_files() {
        let home = format!(
            "// {}\nimport {{ Clock }} from \"../clock.js\";\nimport {{ t }} from \"../words.js\";\nimport {{ x }} from \"./other.js\";\nexport class Home {{}}\nvoid import(\"../clock.js\");\n",
            "A large screen.".repeat(MAX_SMALL / 15)
        );
        let sources = BTreeMap::from([
            (
                "app.js",
                "// The start.\n/** @typedef {\"x\"} X\n * @typedef {\"y\"} Y */\nimport { h as make } from \"preact\";\nimport { t } from \"./words.js\";\nexport const { a, b } = /** @type {X} */ (make);\n\n  // Later.\nvoid import(\"./list.js\"); void import(\"./clock.js\"); void import(\"./screens/home.js\");\n",
            ),
            ("clock.js", "import { t } from \"./words.js\";\nexport function Clock() {}\n"),
            ("list.js", "import { t } from \"./words.js\";\nexport async function list() {}\n"),
            ("screens/home.js", home.as_str()),
            ("screens/other.js", "export const x = 1;\nvoid import(\"./home.js\"); void import(\"../clock.js\");\n"),
            ("vendor/preact.js", "const k=1;function n(){}export{k as h,n};//# sourceMappingURL=preact.mjs.map"),
            ("words.js", "export const t = 1;\nlet rest;\nexport { rest as more };\n"),
        ]);
        let joined = Joined::of(&sources);
        let text = |file: &str| joined.files[file].as_str();
        assert_eq!(joined.files.keys().collect::<Vec<_>>(), ["app.js", "rest.js", "screens/home.js", "small.js"]);
        for part in [
            "export const $vendor_preact = (() => {\nconst k=1;function n(){}\nreturn { h:k, n };\n})();",
            "return { t, more:rest };",
            "const { h:make } = $vendor_preact;\nconst { t } = $words;\nconst { a, b } = (make);\nvoid",
            "void Promise.resolve($list); void import(\"./rest.js\").then((all) => all.$clock); void import(\"./screens/home.js\");",
        ] {
            assert!(text("app.js").contains(part), "{}", text("app.js"));
        }
        // The start comes last: what it calls is there.
        assert!(text("app.js").find("$list =") < text("app.js").find("$app ="));
        assert!(text("rest.js").starts_with("import { $words } from \"./app.js\";\n"), "{}", text("rest.js"));
        let served = "import { $words } from \"../app.js\";\nimport { $clock } from \"../rest.js\";\nimport { $screens_other } from \"../small.js\";\nconst { Clock } = $clock;\nconst { t } = $words;\nconst { x } = $screens_other;\nclass Home {}\nvoid import(\"../rest.js\").then((all) => all.$clock);\n\nexport { Home };\n";
        assert_eq!(text("screens/home.js"), served);
        // They are found from where the file is.
        let late = "void import(\"./screens/home.js\"); void import(\"./rest.js\").then((all) => all.$clock);";
        assert!(text("small.js").contains(late), "{}", text("small.js"));
        assert_eq!(joined.file_of("list.js"), "app.js");
        assert_eq!(joined.file_of("clock.js"), "rest.js");
        assert_eq!(joined.file_of("screens/other.js"), "small.js");
        assert_eq!(joined.file_of("screens/home.js"), "screens/home.js");
    }
}
