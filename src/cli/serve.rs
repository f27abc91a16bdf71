use std::io::IsTerminal as _;
use std::sync::Arc;

use clap::Args;
use engine::accounts::Account;
use engine::app::App;
use engine::config::{Config, LogFormat};
use engine::http::{key_use, server};
use engine::jobs::worker;
use engine::site::to_open;
use engine::{heads, loops, nodes, takeover};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use store::Unsound;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::{error_line, logging, notify, say};
use crate::people::operator;
use crate::typesetting::memory::Memory;
use crate::upkeep::integrity::schema;
use crate::{demo, opening};

#[derive(Args)]
pub struct Serve {
    /// Address and port to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Fill the first account with demo data
    #[arg(long)]
    demo: bool,
}

impl Serve {
    pub fn flags(&self) -> Vec<(String, String)> {
        self.listen.iter().map(|listen| ("listen".to_string(), listen.clone())).collect()
    }

    pub fn run(&self, config: Config) -> Result<(), String> {
        // Kept until the end, when it flushes the log.
        let _log = logging::start(&config)?;
        allow_many_files();
        // Before the database is opened, which may migrate it. Held until the process ends.
        let alone = takeover::claim(&config).map_err(error_line)?;
        let app = super::open(config)?;
        alone.take_over(&app).map_err(error_line)?;
        // Two threads per core, so that a slow read does not block others.
        let threads = match app.config.threads {
            0 => std::thread::available_parallelism().map_or(4, |cores| cores.get() * 2),
            threads => threads,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start threads: {error}"))?;
        let done = runtime.block_on(serve(app, self.demo));
        runtime.shutdown_background();
        drop(alone);
        done
    }
}

async fn serve(app: Arc<App>, demo: bool) -> Result<(), String> {
    let listener = bind(&app.config.listen).await?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let opened = to_open(&address.to_string());
    app.site.serves_at(&opened);
    if !app.config.metrics_listen.is_empty() {
        let metrics = Arc::new(bind(&app.config.metrics_listen).await?);
        loops::keep(&app, "metrics", loops::STALL_TIMEOUT, move |app, pulse| {
            server::serve_metrics(app, metrics.clone(), pulse)
        });
    }
    let (first, own) = (app.clone(), app.clone());
    let made = tokio::task::spawn_blocking(move || {
        let Some((account, key)) = opening::create_first_account(&first, demo)? else { return Ok(None) };
        let link = if demo { String::new() } else { operator::set_up(&first, account.clone())? };
        Ok::<_, engine::error::Error>(Some((account, key, link)))
    });
    let made = made.await.map_err(|error| error.to_string())?.map_err(error_line)?;
    match made {
        Some((account, key, link)) => {
            let enter = if demo { demo_sign_in(&app, account.clone()).await? } else { set_up_words(&app, &link) };
            if let Err(cause) = welcome(&app.config, &account.name, &key, &enter, &opened) {
                tracing::warn!(cause, "The first key could not be printed; create another with `kantoor key create`.");
            }
        }
        None if demo => tracing::info!("An account already exists; `kantoor demo` creates another one with demo data."),
        None => {}
    }
    tokio::task::spawn_blocking(move || worker::start(&own))
        .await
        .map_err(|error| error.to_string())?
        .map_err(error_line)?;
    tracing::info!(%address, database = ?app.store.dialect(), "Kantoor is ready at http://{opened} (docs at /docs).");
    if let Some((found, remedy)) = Memory::of(&app.config).trouble() {
        tracing::warn!("{found} {remedy}");
    }
    if app.config.smtp_host.is_empty() {
        let folder = app.config.data.join("mail");
        tracing::warn!(
            folder = %folder.display(),
            "No mail is sent, because smtp_host is not set: mail is stored as .eml files."
        );
    }
    if app.config.files.starts_with("s3://") {
        tokio::spawn(check_files(app.clone()));
    }
    tokio::task::spawn_blocking(after_start(&app));
    notify::notify("READY=1");
    tokio::spawn(notify::watch());
    server::serve(app.clone(), listener, told_to_stop()).await;
    nodes::leave(&app).await;
    if let Err(cause) = key_use::record(&app).await {
        tracing::warn!(%cause, "The last use of keys and sessions was not recorded.");
    }
    let own = app.clone();
    let signed = tokio::task::spawn_blocking(move || heads::sign(&own.store, &own.site.vault)).await;
    if let Ok(Err(error)) = signed {
        tracing::warn!(cause = %error, "The heads of the logs were not signed; the next start does it.");
    }
    tracing::info!("Kantoor has stopped.");
    Ok(())
}

/// Returns what nobody has to wait for: reading certificates, and comparing the schema.
fn after_start(app: &Arc<App>) -> impl FnOnce() + Send + 'static {
    let app = app.clone();
    move || {
        app.web.prepare();
        for Unsound { table, what } in schema::differences(&app.store) {
            tracing::warn!(table, "The schema is not that of Kantoor: {what}. `kantoor verify` checks everything.");
        }
    }
}

/// Logs that contents of files cannot be stored. The start does not wait for it: a store may come back at any time.
async fn check_files(app: Arc<App>) {
    if let Err(cause) = app.blobs.check().await {
        tracing::error!(files = app.config.files, %cause, "Files cannot be stored or read; `kantoor doctor` says more.");
    }
}

/// Creates the owner of the demo; returns how to sign in.
async fn demo_sign_in(app: &App, account: Account) -> Result<String, String> {
    let (email, name) = demo::OWNER;
    let password = operator::create_owner(app, account, email, name).await.map_err(error_line)?;
    let address = app.site.address("/");
    Ok(format!(
        "Open {address} in a browser and sign in:

      E-mail     {email}
      Password   {password}"
    ))
}

fn set_up_words(app: &App, link: &str) -> String {
    let words = format!("To sign in as its owner, open this link within a day. It works once:\n\n      {link}");
    match app.config.public_url.as_str() {
        // The link has the address that the server listens on, which others may not reach.
        "" => {
            format!(
                "{words}\n\n  After you have set public_url, `kantoor user create --owner` prints a link with that address."
            )
        }
        _ => words,
    }
}

fn welcome(config: &Config, account: &str, key: &str, enter: &str, address: &str) -> Result<(), String> {
    let kept_in = match config.log_format {
        _ if prints_to_journal() => "journal",
        // Lines of JSON are for a program that collects and keeps them, as those of a container.
        LogFormat::Json if !std::io::stdout().is_terminal() => "log",
        LogFormat::Json | LogFormat::Text => "",
    };
    if !kept_in.is_empty() {
        return say(&format!(
            "
  Welcome to Kantoor. Your account is called \"{account}\". {enter}

  No API key is printed to the {kept_in}: create one in the console or with `kantoor key create`.
"
        ));
    }
    say(&format!(
        "
  Welcome to Kantoor. Your account is called \"{account}\". {enter}

  Its API key is shown only once:

      {key}

  Try it:

      curl -H \"Authorization: Bearer {key}\" http://{address}/v1/products
"
    ))
}

/// Whether the output goes to the journal of systemd, which keeps it and lets others read it. A key has no place there. The
/// variable is inherited by processes whose output goes elsewhere, so it names the file.
fn prints_to_journal() -> bool {
    let Ok(journal) = std::env::var("JOURNAL_STREAM") else { return false };
    rustix::fs::fstat(std::io::stdout()).is_ok_and(|file| journal == format!("{}:{}", file.st_dev, file.st_ino))
}

async fn bind(address: &str) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))
}

/// Waits for SIGTERM or Ctrl-C.
async fn told_to_stop() {
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
    notify::notify("STOPPING=1");
    tracing::info!("Kantoor is shutting down: work in progress finishes, no new work is accepted.");
}

/// Raises the limit on open files to the maximum: many systems start programs with 1024.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
