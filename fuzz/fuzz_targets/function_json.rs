//! Bindings, one on each line, as a worker sends them → `Function`: a function, a reason to leave it out, or
//! problems that each say something; never a panic.

#![no_main]

use bindpost_azure_functions::function::{Function, Refused, Source, Trigger, check_unique};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let bindings: Vec<&str> = text.lines().take(8).collect();
    let setting = |name: &str| (name == "SET").then(|| "value".to_owned());
    match Function::from_raw_bindings("f", "f", Source::default(), &bindings, &setting) {
        Ok(function) => {
            assert_eq!(function.source.bindings.len(), bindings.len());
            if let Trigger::Tool(trigger) = &function.trigger {
                assert_eq!(trigger.tool.input_schema["type"], "object");
            }
            // A function is no rival of its own; the same one once more is.
            assert!(check_unique([&function]).is_empty());
            assert_eq!(check_unique([&function, &function]).len(), 1);
        }
        Err(Refused::Skipped(skipped)) => assert!(!skipped.reason.is_empty()),
        Err(Refused::Problems(problems)) => {
            assert!(!problems.is_empty());
            assert!(problems.iter().all(|problem| !problem.message.is_empty()));
        }
    }
});
