//! What is wrong with the settings beyond their names and types, in one list: the server would find each at its own moment.

use dns::Dns;
use engine::config::Config;

use crate::upkeep::scheduled::schedule::Schedule;

/// Adds what is wrong with the settings of the server.
pub fn check(config: &Config, wrong: &mut Vec<String>) {
    let before = wrong.len();
    engine::open::check_settings(config, wrong);
    wrong.extend(Schedule::read(config).1);
    wrong.extend(Dns::new(&config.dns_server).err().map(|why| format!("dns_server: {why}")));
    let trace_to = config.trace_to.as_str();
    if !trace_to.is_empty() && !["http://", "https://"].iter().any(|start| trace_to.starts_with(start)) {
        wrong.push(format!("trace_to: '{trace_to}' must be a URL such as http://127.0.0.1:4318"));
    }
    // A value of the wrong type has its own error, and its default here.
    let new = wrong.split_off(before);
    let of = |line: &str| line.split(':').next().unwrap_or_default().to_string();
    let known: Vec<String> = wrong.iter().map(|line| of(line)).collect();
    wrong.extend(new.into_iter().filter(|line| !known.contains(&of(line))));
}
