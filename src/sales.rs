//! Sales: deals in pipelines, and the products that are sold.

pub mod deal;
pub mod deal_source;
pub mod pipeline;
pub mod product;
