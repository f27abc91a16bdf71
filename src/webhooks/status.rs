//! The statuses of deliveries.

use engine::choice;

choice! {
    /// The status of a delivery.
    pub enum DeliveryStatus {
        /// Waiting for the first attempt.
        #[default]
        Queued = "queued",
        /// In progress.
        Sending = "sending",
        /// An attempt failed and will be retried.
        Retrying = "retrying",
        /// Accepted by the receiver.
        Delivered = "delivered",
        /// All attempts failed.
        Failed = "failed",
    }
}
