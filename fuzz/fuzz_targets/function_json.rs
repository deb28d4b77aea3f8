//! Parses bindings, one on each line, as a worker sends them. The result is a `Function`, a reason to skip
//! it, or problems with non-empty messages. It never panics.

#![cfg_attr(fuzzing, no_main)]

use bindpost_azure_functions::function::{
    Function, FunctionRejection, FunctionSource, Trigger, check_unique,
};

bindpost_fuzz::target!(run);

fn run(data: &[u8]) {
    let text = bindpost_fuzz::text(data);
    let bindings: Vec<&str> = text.lines().take(8).collect();
    let setting = |name: &str| (name == "SET").then(|| "value".to_owned());
    let parse = || Function::from_raw_bindings("f", "f", FunctionSource::default(), &bindings, &setting);
    match parse() {
        Ok(function) => {
            assert_eq!(function.source.bindings.len(), bindings.len());
            if let Trigger::Tool(trigger) = &function.trigger {
                assert_eq!(trigger.tool.input_schema["type"], "object");
            }
            // A function does not conflict with itself, but with another one that has the same bindings.
            assert!(check_unique([&function]).is_empty());
            let Ok(other) = parse() else { panic!("the same bindings are rejected the second time") };
            // Routes are compared later, and schedules may be equal.
            let is_mcp = !matches!(function.trigger, Trigger::Http(_) | Trigger::Timer(_));
            assert_eq!(check_unique([&function, &other]).len(), usize::from(is_mcp));
        }
        Err(FunctionRejection::Skipped(skipped)) => assert!(!skipped.reason.is_empty()),
        Err(FunctionRejection::Problems(problems)) => {
            assert!(!problems.is_empty());
            assert!(problems.iter().all(|problem| !problem.message.is_empty()));
        }
    }
}
