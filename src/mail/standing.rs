//! The status of a delivery.

use engine::choice;

choice! {
    /// The status of the delivery of a mail to one recipient.
    pub enum Standing {
        /// Waiting for the first attempt.
        #[default]
        Queued = "queued",
        /// An attempt is in progress, or was interrupted.
        Sending = "sending",
        /// An attempt failed; another follows.
        Retrying = "retrying",
        /// Accepted by the mail server.
        Sent = "sent",
        /// Written to a folder, because the server has no mail settings.
        Stored = "stored",
        /// Given up.
        Failed = "failed",
        /// Not sent, because the account has a test clock.
        Recorded = "recorded",
        /// Not sent, because what it asks for happened before it left.
        Canceled = "canceled",
    }
}

impl Standing {
    /// The statuses of deliveries that are over.
    pub(super) const OVER: &[Standing] =
        &[Standing::Sent, Standing::Stored, Standing::Failed, Standing::Recorded, Standing::Canceled];
}
