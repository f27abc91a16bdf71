//! The binary: everything is in the library, so that tests can use it too.

fn main() -> std::process::ExitCode {
    kantoor::cli::main()
}
