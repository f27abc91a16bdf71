//! The files of the console in the repository; the build script lists them with this module too.

use std::io;
use std::path::Path;

/// Returns the media type of a file of the console, and none if it is not served: the files of the checks are not.
pub fn media_type(path: &str) -> Option<&'static str> {
    let (name, ending) = path.rsplit_once('.')?;
    match ending {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "json" if name.starts_with("words/") => Some("application/json"),
        "png" => Some("image/png"),
        "svg" => Some("image/svg+xml"),
        "LICENSE" => Some("text/plain; charset=utf-8"),
        _ => None,
    }
}

/// Returns the paths of the files below a folder that are served, in order.
pub fn served(folder: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(inside) = folders.pop() {
        for entry in std::fs::read_dir(folder.join(&inside))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{inside}{name}");
            if entry.file_type()?.is_dir() {
                // The packages and types of the checks.
                if !["node_modules", "types"].contains(&name.as_str()) {
                    folders.push(format!("{path}/"));
                }
            } else if media_type(&path).is_some() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
