//! Services that the program adds to the [`App`](crate::app::App), looked up by type: a mail sender, a typesetter.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;

/// One service of each type.
#[derive(Default)]
pub struct Services(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl Services {
    /// Adds a service.
    pub fn add<T: Any + Send + Sync>(&mut self, service: T) {
        self.0.insert(TypeId::of::<T>(), Box::new(service));
    }

    /// Returns the service of this type. All are opened at the start, so a missing one is an error in the registry.
    pub fn get<T: Any>(&self) -> &T {
        let found = self.0.get(&TypeId::of::<T>()).and_then(|service| service.downcast_ref());
        found.unwrap_or_else(|| unreachable!("the registry opens no {}", type_name::<T>()))
    }
}
