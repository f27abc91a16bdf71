//! How deliveries stand.

use engine::choice;

choice! {
    /// How a delivery stands.
    pub enum DeliveryStatus {
        /// It waits for its first try.
        #[default]
        Queued = "queued",
        /// It is under way.
        Sending = "sending",
        /// A try failed; another follows.
        Retrying = "retrying",
        /// The receiver took it.
        Delivered = "delivered",
        /// It was given up.
        Failed = "failed",
    }
}

/// How a delivery stands that has not ended.
pub const OPEN: &[DeliveryStatus] = &[DeliveryStatus::Queued, DeliveryStatus::Sending, DeliveryStatus::Retrying];
