//! Lists the files of the console, which release builds contain. Debug builds read them from the folder, so that a reload
//! of the page shows an edit.

use std::path::PathBuf;

#[path = "src/console/files.rs"]
mod files;

fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/console/files.rs");
    // The folder of this build: the script may have been compiled in another one.
    let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("console");
    let mut list = String::from("&[\n");
    if std::env::var_os("CARGO_CFG_DEBUG_ASSERTIONS").is_none() {
        println!("cargo::rerun-if-changed=console");
        for path in files::served(&folder)? {
            let whole = folder.join(&path).display().to_string();
            list.push_str(&format!("    ({path:?}, include_bytes!({whole:?})),\n"));
        }
    }
    list.push_str("]\n");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    std::fs::write(out.join("console_files.rs"), list)
}
