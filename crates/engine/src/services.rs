//! Services that the program adds to the [`App`](crate::app::App), looked up by type: a mail sender, a typesetter; and the pools
//! that they use.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::sync::Arc;

use store::Places;

/// One service of each type.
#[derive(Default)]
pub struct Services {
    by_type: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    pools: Vec<Arc<Places>>,
}

impl Services {
    /// Adds a service.
    pub fn add<T: Any + Send + Sync>(&mut self, service: T) {
        self.by_type.insert(TypeId::of::<T>(), Box::new(service));
    }

    /// Adds a pool whose places the accounts share, to the list of them; returns it.
    pub fn pool(&mut self, pool: Arc<Places>) -> Arc<Places> {
        self.pools.push(pool.clone());
        pool
    }

    /// Returns the pools.
    pub fn pools(&self) -> &[Arc<Places>] {
        &self.pools
    }

    /// Returns the service of this type. All are opened at the start, so a missing one is an error in the registry.
    pub fn get<T: Any>(&self) -> &T {
        let found = self.by_type.get(&TypeId::of::<T>()).and_then(|service| service.downcast_ref());
        found.unwrap_or_else(|| unreachable!("the registry opens no {}", type_name::<T>()))
    }
}
