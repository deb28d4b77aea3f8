//! Writes the folders of apps for tests.

use std::fs;
use std::path::Path;

use bindpost_azure_functions::app::App;
use bindpost_azure_functions::problem::AppError;

use crate::scratch::Scratch;

/// A folder that is deleted after the test.
pub(crate) struct Folder(Scratch);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(Scratch::new())
    }

    /// Creates a Python app with these files.
    pub(crate) fn app(files: &[(&str, &str)]) -> Folder {
        let folder = Folder::new().with("host.json", r#"{"version": "2.0"}"#).with("function_app.py", "");
        files.iter().fold(folder, |folder, (name, text)| folder.with(name, text))
    }

    /// Adds a file.
    pub(crate) fn with(self, name: &str, text: &str) -> Folder {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Removes a file.
    pub(crate) fn without(self, name: &str) -> Folder {
        fs::remove_file(self.path().join(name)).unwrap();
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn open(&self, environment: &[(&str, &str)]) -> Result<App, AppError> {
        App::open(
            self.path(),
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        )
    }

    /// Returns the error with which the app does not open.
    pub(crate) fn refusal(&self, environment: &[(&str, &str)]) -> String {
        self.open(environment).unwrap_err().to_string()
    }
}
