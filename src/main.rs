//! The binary. Everything is in the library, so that tests can use it.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    kantoor::cli::main()
}
