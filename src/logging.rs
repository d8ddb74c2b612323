//! Where log lines go: nowhere, to standard error, or to the host's callback.
//!
//! Enters: records of crate `log` from anywhere in the library; a warning of one cause comes once. Silent unless `WAKEFMM_LOG` or `wfmm_log_set` says
//! otherwise. One logger for the process, installed when the first session is made.

use std::io::Write;

use log::{LevelFilter, Log, Metadata, Record};
use once_cell::sync::Lazy;
use parking_lot::RwLock;
use simplelog::{ConfigBuilder, WriteLogger};

use crate::options::LogLevel;

/// Takes the level as its `WFMM_LOG_*` number and a line.
pub type Sink = Box<dyn Fn(i32, &str) + Send + Sync>;

struct Switch {
    sink: RwLock<Option<Sink>>,
    standard_error: Box<WriteLogger<std::io::Stderr>>,
}

static SWITCH: Lazy<Switch> = Lazy::new(|| {
    let config = ConfigBuilder::new().set_time_level(LevelFilter::Off).set_thread_level(LevelFilter::Off).build();
    Switch { sink: RwLock::new(None), standard_error: WriteLogger::new(LevelFilter::Trace, config, std::io::stderr()) }
});

/// Whether ours is the process's logger: a Rust program may have its own.
static INSTALLED: Lazy<bool> = Lazy::new(|| {
    let ours = log::set_logger(&*SWITCH).is_ok();
    if ours {
        log::set_max_level(level_of_environment());
    }
    ours
});

impl Log for Switch {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        // A host's callback may make calls that log: hence recursive.
        match &*self.sink.read_recursive() {
            Some(sink) => sink(record.level() as i32, &record.args().to_string()),
            None => self.standard_error.log(record),
        }
    }

    fn flush(&self) {
        self.standard_error.flush();
    }
}

/// Warns, but not again in this process: `warn_once!("…")`. Each call in the source warns once.
macro_rules! warn_once {
    ($($words:tt)*) => {{
        static SAID: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
        if log::log_enabled!(log::Level::Warn) && !SAID.swap(true, std::sync::atomic::Ordering::Relaxed) {
            log::warn!($($words)*);
        }
    }};
}
pub(crate) use warn_once;

/// Installs the logger; done once, free afterwards.
pub fn start() {
    Lazy::force(&INSTALLED);
}

/// Sets level and destination; `false` where the process has another logger.
pub fn set(level: LogLevel, sink: Option<Sink>) -> bool {
    if !*INSTALLED {
        return false;
    }
    *SWITCH.sink.write() = sink;
    log::set_max_level(match level {
        LogLevel::Off => LevelFilter::Off,
        LogLevel::Error => LevelFilter::Error,
        LogLevel::Warn => LevelFilter::Warn,
        LogLevel::Info => LevelFilter::Info,
        LogLevel::Debug => LevelFilter::Debug,
    });
    true
}

const LEVELS: &str = "off, error, warn, info or debug";

fn level_of_environment() -> LevelFilter {
    let level = std::env::var_os("WAKEFMM_LOG").unwrap_or_default();
    let level = level.to_string_lossy();
    level.trim().parse().unwrap_or_else(|_| {
        if !level.trim().is_empty() {
            // There is no log that could say it.
            let _ = writeln!(std::io::stderr(), "[WARN] WAKEFMM_LOG = {level} is ignored; accepted: {LEVELS}");
        }
        LevelFilter::Off
    })
}
