//! Stands in for the WebAssembly interpreter, which the typesetter needs for plugins of templates. Loading a plugin fails, so
//! nothing behind [`Module::new`] is ever called: [`Module`] and all that follows from it have no values.

use std::convert::Infallible;
use std::fmt::{self, Display, Formatter};
use std::marker::PhantomData;

/// Why nothing can be loaded.
#[derive(Debug)]
pub struct Error;

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("plugins are not supported")
    }
}

/// The settings of an engine.
#[derive(Default)]
pub struct Config;

impl Config {
    /// Has no effect.
    pub fn wasm_relaxed_simd(&mut self, _: bool) -> &mut Self {
        self
    }
}

/// Loads no module.
pub struct Engine;

impl Engine {
    /// An engine that loads no module.
    pub fn new(_: &Config) -> Self {
        Engine
    }
}

/// A loaded module, of which there are none.
pub struct Module(Infallible);

impl Module {
    /// Always fails.
    pub fn new(_: &Engine, _: &[u8]) -> Result<Self, Error> {
        Err(Error)
    }

    /// A member of the module.
    pub fn get_export(&self, _: &str) -> Option<ExternType> {
        match self.0 {}
    }

    /// The members of the module.
    pub fn exports(&self) -> std::vec::IntoIter<ExportType<'_>> {
        match self.0 {}
    }
}

/// A member of a module: its name and its type.
pub struct ExportType<'module>(Infallible, PhantomData<&'module ()>);

impl<'module> ExportType<'module> {
    /// The name of the member.
    pub fn name(&self) -> &'module str {
        match self.0 {}
    }

    /// The type of the member.
    pub fn ty(&self) -> &ExternType {
        match self.0 {}
    }
}

/// The type of a member.
pub enum ExternType {
    /// Of a function.
    Func(FuncType),
    /// Of a memory.
    Memory(Memory),
}

/// The type of a function.
pub struct FuncType(Infallible);

impl FuncType {
    /// The types of the parameters.
    pub fn params(&self) -> &[ValType] {
        match self.0 {}
    }

    /// The types of the results.
    pub fn results(&self) -> &[ValType] {
        match self.0 {}
    }
}

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ValType {
    /// A 32-bit integer.
    I32,
}

/// A value.
pub enum Val {
    /// A 32-bit integer.
    I32(i32),
}

/// Links functions of the host to a module.
pub struct Linker<T>(Engine, PhantomData<fn(T)>);

impl<T> Linker<T> {
    /// A linker without functions.
    pub fn new(_: &Engine) -> Self {
        Linker(Engine, PhantomData)
    }

    /// The function is never called.
    pub fn func_wrap<F>(&mut self, _: &str, _: &str, _: F) -> Result<&mut Self, Error> {
        Ok(self)
    }

    /// The engine of the linker.
    pub fn engine(&self) -> &Engine {
        &self.0
    }

    /// An instance of the module.
    pub fn instantiate_and_start(&self, _: &mut Store<T>, module: &Module) -> Result<Instance, Error> {
        match module.0 {}
    }
}

/// The data of an instance.
pub struct Store<T>(T);

impl<T> Store<T> {
    /// A store with this data.
    pub fn new(_: &Engine, data: T) -> Self {
        Store(data)
    }

    /// The data.
    pub fn data_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// A running module, of which there are none.
pub struct Instance(Infallible);

impl Instance {
    /// A member of the instance.
    pub fn get_export<S>(&self, _: S, _: &str) -> Option<Extern> {
        match self.0 {}
    }
}

/// A member of an instance.
pub struct Extern(Infallible);

impl Extern {
    /// The member as a function.
    pub fn into_func(self) -> Option<Func> {
        match self.0 {}
    }

    /// The member as a memory.
    pub fn into_memory(self) -> Option<Memory> {
        match self.0 {}
    }
}

/// A function of an instance.
pub struct Func(Infallible);

impl Func {
    /// The type of the function.
    pub fn ty<S>(&self, _: S) -> FuncType {
        match self.0 {}
    }

    /// Calls the function.
    pub fn call<S>(&self, _: S, _: &[Val], _: &mut [Val]) -> Result<(), Error> {
        match self.0 {}
    }
}

/// The memory of an instance.
pub struct Memory(Infallible);

impl Memory {
    /// The size in pages.
    pub fn size<S>(&self, _: S) -> u64 {
        match self.0 {}
    }

    /// The content.
    pub fn data<S>(&self, _: S) -> &[u8] {
        match self.0 {}
    }

    /// The content, to be changed.
    pub fn data_mut<'store, S>(&self, _: S) -> &'store mut [u8] {
        match self.0 {}
    }

    /// Adds pages.
    pub fn grow<S>(&self, _: S, _: u64) -> Result<u64, Error> {
        match self.0 {}
    }

    /// Copies from the memory.
    pub fn read<S>(&self, _: S, _: usize, _: &mut [u8]) -> Result<(), Error> {
        match self.0 {}
    }

    /// Copies to the memory.
    pub fn write<S>(&self, _: S, _: usize, _: &[u8]) -> Result<(), Error> {
        match self.0 {}
    }
}

/// Who calls a function of the host.
pub struct Caller<'call, T>(Infallible, PhantomData<&'call mut T>);

impl<T> Caller<'_, T> {
    /// A member of the calling instance.
    pub fn get_export(&self, _: &str) -> Option<Extern> {
        match self.0 {}
    }

    /// The data of the calling instance.
    pub fn data_mut(&mut self) -> &mut T {
        match self.0 {}
    }
}
