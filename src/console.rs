//! The console: the business in a browser. Its screens are the ES modules in `console/`, which call the API under
//! `/console/v1` with the session of the user. This room serves them, and the page that starts them.

mod assets;
mod files;
mod first;
mod frame;
mod join;
mod modules;
mod schema;

pub use assets::version;
use engine::registry::Page;

/// The pages of the console. All addresses that nobody else has are its own.
pub const PAGES: &[Page] = &[
    Page {
        prefix: assets::PREFIX,
        route: assets::route,
        answer: |app, request| Box::pin(assets::answer(app, request)),
    },
    Page { prefix: assets::ICON, route: assets::route, answer: |app, request| Box::pin(assets::answer(app, request)) },
    Page { prefix: "/", route: frame::route, answer: |app, request| Box::pin(frame::answer(app, request)) },
];
