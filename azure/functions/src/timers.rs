//! Timer triggers: schedules and when they are due. `schedule.rs` parses a schedule, `plan.rs` decides when it runs.
//!
//! Files, in reading order: `schedule.rs` (NCRONTAB or an interval), `ncrontab.rs`, `zone.rs` and `zone_file.rs` (time
//! zones), `plan.rs` (the next run), `status.rs` (what is remembered across restarts), `scheduler.rs` (the tasks that run timers).

pub mod ncrontab;
pub(crate) mod plan;
pub mod schedule;
pub(crate) mod scheduler;
pub(crate) mod status;
pub(crate) mod zone;
mod zone_file;
