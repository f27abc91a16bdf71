//! The engine of a records server: an HTTP JSON API with accounts, lists, events and background jobs on SQLite or
//! PostgreSQL, which knows nothing about the business that runs on it.
//!
//! A program declares each kind of record once, with [`record!`]: every line becomes a struct field, a column, a member
//! of request and response bodies, a validation rule, a list filter, and a property in the OpenAPI document. A
//! [`Resource`](resource::Resource) lists the routes of a record and the migrations of its table. A
//! [`Registry`](registry::Registry) holds all resources, and whatever else the program adds: job kinds, background loops,
//! pages, metrics. The program [installs](registry::install) the registry once, [opens](open::open) an
//! [`App`](app::App) from its [`Config`](config::Config), and [serves](http::server) it.
//!
//! # Example
//!
//! A library of books, without the HTTP server: [`perform`](mod@perform) runs a request through the same routes, validation
//! and events inside a transaction of the caller.
//!
//! ```
//! use std::sync::LazyLock;
//!
//! use engine::accounts::{Account, SHARED};
//! use engine::config::Config;
//! use engine::error::Code;
//! use engine::perform::perform;
//! use engine::record;
//! use engine::record::{INPUT, Model, REQUIRED};
//! use engine::registry::{self, Registry};
//! use engine::resource::Resource;
//! use serde_json::json;
//! use store::Migration;
//!
//! record! {
//!     /// A book in the library.
//!     pub struct Book = "book" in "books";
//!
//!     /// Title on the cover.
//!     title: String = REQUIRED.search().sort();
//!     /// Number of pages.
//!     pages: i64 = INPUT.between(1, 10_000).default("1");
//! }
//!
//! // Rules that involve several fields or other records go here.
//! impl Model for Book {}
//!
//! fn books() -> Resource {
//!     Resource::of::<Book>("Books", "library", MIGRATIONS)
//!         .list::<Book>()
//!         .create::<Book>()
//!         .get::<Book>()
//!         .patch::<Book>()
//!         .delete::<Book>()
//! }
//!
//! // The first five columns are the same for every record. One text serves both databases.
//! const MIGRATIONS: &[Migration] = &[Migration {
//!     number: 1000,
//!     name: "books",
//!     sql: "
//! CREATE TABLE books (
//!     account_id BIGINT NOT NULL REFERENCES accounts (id),
//!     id TEXT NOT NULL,
//!     created_at BIGINT NOT NULL,
//!     updated_at BIGINT NOT NULL,
//!     version BIGINT NOT NULL,
//!     title TEXT NOT NULL,
//!     pages BIGINT NOT NULL,
//!     PRIMARY KEY (account_id, id)
//! ) STRICT;
//! CREATE INDEX books_created ON books (account_id, created_at, id);
//! CREATE INDEX books_title ON books (account_id, title, id);
//! ",
//! }];
//!
//! // The area becomes the scopes of API keys: `library.read` and `library.write`.
//! static REGISTRY: LazyLock<Registry> = LazyLock::new(|| Registry {
//!     resources: vec![books()],
//!     areas: &["library"],
//!     ..Registry::default()
//! });
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! registry::install(&REGISTRY);
//! let folder = tempfile::tempdir()?;
//! let mut config = Config::load(None, std::iter::empty(), &[])?;
//! config.data = folder.path().to_path_buf();
//! let app = engine::open::open(config)?;
//!
//! // Every record belongs to an account.
//! let (now, ids) = (app.clock.now(), app.ids);
//! let account = app
//!     .store
//!     .write_now(SHARED, move |tx| Account::create(tx, "City library", "Europe/Amsterdam", None, now, &ids))?;
//! let number = account.number;
//! let caller = app.acting(account, "example");
//!
//! let librarian = caller.clone();
//! let created = app.store.write_now(number, move |tx| {
//!     let ctx = librarian.writing(tx)?;
//!     perform(tx, &ctx, "POST", "/v1/books", Some(&json!({"title": "Max Havelaar", "pages": 320})))
//! })?;
//! let path = format!("/v1/books/{}", created["id"].as_str().unwrap_or_default());
//!
//! let read = app.store.read_now(|tx| {
//!     let ctx = caller.reading(tx)?;
//!     perform(tx, &ctx, "GET", &path, None)
//! })?;
//! assert_eq!(read["title"], "Max Havelaar");
//! assert_eq!(read["pages"], 320);
//! assert_eq!(read["meta"]["version"], 1);
//!
//! // The declaration validates the body: `title` is missing, and `pages` is out of range.
//! let refused = app.store.write_now(number, move |tx| {
//!     let ctx = caller.writing(tx)?;
//!     perform(tx, &ctx, "POST", "/v1/books", Some(&json!({"pages": 0})))
//! });
//! let error = refused.unwrap_err();
//! assert_eq!(error.code, Code::ValidationFailed);
//! assert_eq!(error.faults.len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! - Declarations: [`mod@record`], [`resource`], [`registry`], [`migrations`], [`tables`].
//! - Requests: [`http`], [`call`], [`mod@input`], [`mod@list`], [`records`], [`mod@perform`], [`error`], [`idempotency`],
//!   [`limits`].
//! - Accounts and time: [`accounts`], [`authors`], [`context`], [`who`], [`clock`], [`random`], [`quotas`],
//!   [`site`].
//! - Events and what follows from them: [`log`], [`heads`], [`shown`], [`history`], [`listeners`], [`wakeup`], [`once`], [`timers`], [`due`].
//! - Background work: [`jobs`], [`leases`], [`backoff`], [`loops`], [`nodes`], [`takeover`], [`slice`](mod@slice),
//!   [`turns`].
//! - The process: [`config`], [`mod@open`], [`app`], [`services`], [`inspect`].

pub mod accounts;
pub mod ahead;
pub mod app;
pub mod authors;
pub mod backoff;
pub mod call;
pub mod clock;
pub mod config;
pub mod contents;
pub mod context;
pub mod counters;
pub mod due;
pub mod error;
pub mod faults;
pub mod heads;
pub mod history;
pub mod http;
pub mod idempotency;
pub mod input;
pub mod inspect;
pub mod jobs;
pub mod json;
pub mod known;
pub mod leases;
pub mod limits;
pub mod list;
pub mod listeners;
pub mod log;
pub mod loops;
pub mod migrations;
pub mod nodes;
pub mod once;
pub mod open;
pub mod perform;
pub mod precaution;
pub mod presence;
pub mod private;
pub mod query;
pub mod quotas;
pub mod random;
pub mod record;
pub mod records;
pub mod registry;
pub mod resource;
pub mod search;
pub mod secrets;
pub mod services;
pub mod shown;
pub mod site;
pub mod slice;
pub mod tables;
pub mod takeover;
pub mod text;
pub mod timers;
pub mod turns;
pub mod wakeup;
pub mod who;
