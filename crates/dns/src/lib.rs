//! Looks up the TXT records of a domain.

use std::net::SocketAddr;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::RData;

/// How long a name server may take to respond.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The configured name server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dns {
    server: Option<SocketAddr>,
}

impl Dns {
    /// Uses the name server at an address and port, or those of the system if it is empty.
    pub fn new(server: &str) -> Result<Dns, String> {
        if server.is_empty() {
            return Ok(Dns::default());
        }
        let wrong = |_| format!("'{server}' is not an address with a port, such as 192.0.2.1:53");
        Ok(Dns { server: Some(server.parse().map_err(wrong)?) })
    }

    /// Returns the TXT records of a name, each as one text; none if the name does not exist. The answer is not cached, and
    /// the name servers of the system are read each time. An error is a reason, for people.
    pub async fn txt(&self, name: &str) -> Result<Vec<String>, String> {
        let looked = tokio::time::timeout(2 * TIMEOUT, self.look_up(name)).await;
        looked.map_err(|_| "the name server did not respond in time".to_string())?
    }

    async fn look_up(&self, name: &str) -> Result<Vec<String>, String> {
        let mut builder = match self.server {
            None => TokioResolver::builder_tokio().map_err(|error| error.to_string())?,
            Some(address) => {
                let mut server = NameServerConfig::udp_and_tcp(address.ip());
                server.connections.iter_mut().for_each(|connection| connection.port = address.port());
                let config = ResolverConfig::from_name_servers(vec![server]);
                TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            }
        };
        let options = builder.options_mut();
        options.timeout = TIMEOUT;
        options.attempts = 1;
        options.cache_size = 0;
        let resolver = builder.build().map_err(|error| error.to_string())?;
        // The dot at the end keeps search domains of the system out.
        let found = match resolver.txt_lookup(format!("{name}.")).await {
            Ok(found) => found,
            Err(error) if error.is_no_records_found() => return Ok(Vec::new()),
            Err(error) => return Err(error.to_string()),
        };
        let texts = found.answers().iter().filter_map(|record| match &record.data {
            RData::TXT(txt) => Some(String::from_utf8_lossy(&txt.txt_data.concat()).into_owned()),
            _ => None,
        });
        Ok(texts.collect())
    }
}
