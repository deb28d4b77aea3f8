//! [`Problem`]: a mistake in an app, with the facts that its author needs to fix it.

use std::fmt;

/// A mistake in an app: where it is, what is wrong and, if known, how to fix it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// The function with the mistake. `None` if it concerns the whole app.
    pub function: Option<String>,
    /// The file, relative to the app's folder.
    pub file: Option<String>,
    /// The member, as a path: `extensions.mcp.serverName`, `mcpToolTrigger.toolName`, `blob[file].path`.
    pub member: Option<String>,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub fix: Option<String>,
}

impl Problem {
    /// Creates a problem with this message.
    pub fn new(message: impl Into<String>) -> Problem {
        Problem { message: message.into(), ..Problem::default() }
    }
    /// Sets the file.
    pub fn in_file(self, file: impl Into<String>) -> Problem {
        Problem { file: Some(file.into()), ..self }
    }
    /// Sets the function.
    pub fn of_function(self, function: impl Into<String>) -> Problem {
        Problem { function: Some(function.into()), ..self }
    }
    /// Sets the member.
    pub fn at(self, member: impl Into<String>) -> Problem {
        Problem { member: Some(member.into()), ..self }
    }
    /// Sets the fix.
    pub fn fix(self, fix: impl Into<String>) -> Problem {
        Problem { fix: Some(fix.into()), ..self }
    }
}

/// Writes `file: function name: member: message`, then `  fix: …` on a separate line.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if let Some(function) = &self.function {
            write!(f, "function {function}: ")?;
        }
        if let Some(member) = &self.member {
            write!(f, "{member}: ")?;
        }
        f.write_str(&self.message)?;
        match &self.fix {
            Some(fix) => write!(f, "\n  fix: {fix}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}

/// The mistakes because of which an app cannot run. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n"))]
pub struct AppError(pub Vec<Problem>);

impl From<Problem> for AppError {
    fn from(problem: Problem) -> AppError {
        AppError(vec![problem])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_file_function_and_member_before_the_message() {
        let problem =
            Problem::new("is not a name").in_file("a/function.json").of_function("a").at("x.y").fix("b");
        assert_eq!(problem.to_string(), "a/function.json: function a: x.y: is not a name\n  fix: b");
        assert_eq!(Problem::new("m").to_string(), "m");
        assert_eq!(AppError(vec![Problem::new("m"), Problem::new("n")]).to_string(), "m\nn");
    }
}
