//! Resolves names and filters the addresses that are allowed.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::Refused;
use crate::network::{self, Network};

/// Connections are made to the addresses that this returns, so a name cannot resolve differently after the check.
pub(crate) struct Resolver {
    pub(crate) allowed: Arc<[Network]>,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.allowed.clone();
        Box::pin(async move {
            let name = name.as_str();
            let found = tokio::net::lookup_host((name, 0)).await;
            let found: Vec<SocketAddr> =
                found.map_err(|error| format!("its host name was not found ({error})"))?.collect();
            let open = found.iter().copied().filter(|at| network::check(at.ip(), &allowed).is_ok());
            let open: Vec<SocketAddr> = open.collect();
            match found.first() {
                None => Err("its host name has no address".into()),
                Some(first) if open.is_empty() => Err(refusal(name, first.ip(), &allowed).into()),
                Some(_) => Ok(Box::new(open.into_iter()) as Addrs),
            }
        })
    }
}

fn refusal(name: &str, address: IpAddr, allowed: &[Network]) -> Refused {
    let why = network::check(address, allowed).err().unwrap_or_default();
    Refused(format!("{name} resolves to {address}, which is not allowed: {why}."))
}
