//! [`HttpTrigger`]: the trigger of a function that answers HTTP requests.

use http::Method;

use crate::json::ConfigReader;

/// An `httpTrigger`.
#[derive(Debug)]
pub struct HttpTrigger {
    pub parameter: String,
    /// The route template below the prefix, without slashes at its ends. `None` means the name of the function.
    pub route: Option<String>,
    /// The methods that the function answers. Empty means all.
    pub methods: Vec<Method>,
    pub level: AuthorizationLevel,
}

/// Who may call an HTTP function: `authLevel`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthorizationLevel {
    /// No key is required.
    Anonymous,
    /// A key of the function or of the app.
    #[default]
    Function,
    /// The master key.
    Admin,
}

impl HttpTrigger {
    /// Reads the members of the binding. `setting` looks up app settings, which `%NAME%` in the route names.
    pub(super) fn read(
        parameter: String,
        members: &ConfigReader<'_>,
        setting: &dyn Fn(&str) -> Option<String>,
    ) -> HttpTrigger {
        let route = members.text("route");
        let route = route.and_then(|route| super::fill_settings(&route, "route", members, setting));
        let route =
            route.map(|route| route.trim().trim_matches('/').to_owned()).filter(|route| !route.is_empty());
        HttpTrigger {
            parameter,
            route,
            methods: methods(members),
            level: AuthorizationLevel::read(members, "authLevel").unwrap_or_default(),
        }
    }

    /// Returns the route template.
    pub fn template<'a>(&'a self, function: &'a str) -> &'a str {
        self.route.as_deref().unwrap_or(function)
    }
}

impl AuthorizationLevel {
    /// Reads the level from a member. Returns `None` if it is missing or empty, or reported as a problem.
    pub(crate) fn read(members: &ConfigReader<'_>, name: &str) -> Option<AuthorizationLevel> {
        let text = members.text(name)?;
        match text.trim().to_ascii_lowercase().as_str() {
            "" => None,
            "function" => Some(AuthorizationLevel::Function),
            "anonymous" => Some(AuthorizationLevel::Anonymous),
            "admin" => Some(AuthorizationLevel::Admin),
            _ => {
                let message = format!("{text:?} is not an authorization level");
                members.report_problem(name, message, Some("write anonymous, function or admin"));
                None
            }
        }
    }

    /// Returns the level as `function.json` spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            AuthorizationLevel::Anonymous => "anonymous",
            AuthorizationLevel::Function => "function",
            AuthorizationLevel::Admin => "admin",
        }
    }
}

fn methods(members: &ConfigReader<'_>) -> Vec<Method> {
    let mut methods = Vec::new();
    for name in members.texts("methods") {
        match Method::from_bytes(name.trim().to_ascii_uppercase().as_bytes()) {
            Ok(method) if methods.contains(&method) => {}
            Ok(method) => methods.push(method),
            Err(_) => {
                let message = format!("{name:?} is not an HTTP method");
                members.report_problem("methods", message, Some("write methods like [\"get\", \"post\"]"));
            }
        }
    }
    methods
}
