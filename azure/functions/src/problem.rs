//! [`Problem`]: a mistake in an app, said so that its author can mend it.

use std::fmt;

/// A mistake in an app: where it is, what is wrong and, if it can be said, what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// The function it belongs to, unless it is about the whole app.
    pub function: Option<String>,
    /// The file, as seen from the app's folder.
    pub file: Option<String>,
    /// The member, as a path: `extensions.mcp.serverName`, `mcpToolTrigger.toolName`, `blob[file].path`.
    pub member: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What mends it.
    pub fix: Option<String>,
}

impl Problem {
    /// Something is wrong.
    pub fn new(message: impl Into<String>) -> Problem {
        Problem { message: message.into(), ..Problem::default() }
    }
    /// The same, in a file.
    pub fn in_file(self, file: impl Into<String>) -> Problem {
        Problem { file: Some(file.into()), ..self }
    }
    /// The same, about a function.
    pub fn of_function(self, function: impl Into<String>) -> Problem {
        Problem { function: Some(function.into()), ..self }
    }
    /// The same, at a member.
    pub fn at(self, member: impl Into<String>) -> Problem {
        Problem { member: Some(member.into()), ..self }
    }
    /// The same, with what mends it.
    pub fn fix(self, fix: impl Into<String>) -> Problem {
        Problem { fix: Some(fix.into()), ..self }
    }
}

/// `file: function name: member: message`, then on a line of its own `  fix: …`.
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

/// Why an app cannot run at all: every mistake that was found, never none.
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
            Problem::new("is no name").in_file("a/function.json").of_function("a").at("x.y").fix("b");
        assert_eq!(problem.to_string(), "a/function.json: function a: x.y: is no name\n  fix: b");
        assert_eq!(Problem::new("m").to_string(), "m");
        assert_eq!(AppError(vec![Problem::new("m"), Problem::new("n")]).to_string(), "m\nn");
    }
}
