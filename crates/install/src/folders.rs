//! The folders and files of clients: resolves the places in a recipe to paths.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use tanmi_platform::{CLIENTS, ClientSpec, GuideLocation, Location, Scope};

/// The folders in which clients keep their files.
#[derive(Clone, Debug)]
pub struct Folders {
    /// The home folder of the user.
    pub user: PathBuf,
    pub project: PathBuf,
    /// Client folders set by environment variables, with the name of the variable.
    pub named: Vec<(&'static str, PathBuf)>,
}

/// The file in which a client looks for a guide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuideFile {
    /// A file that contains only our guide.
    OwnFile(PathBuf),
    /// A marked block in a shared file.
    Block(PathBuf),
}

impl Folders {
    pub fn new(user: PathBuf, project: PathBuf, variable: impl Fn(&str) -> Option<PathBuf>) -> Folders {
        let named = CLIENTS.iter().filter_map(|client| {
            let name = client.recipe.folder_variable?;
            Some((name, variable(name)?))
        });
        Folders { named: named.collect(), user, project }
    }

    /// Returns whether the project is the home folder. Only the user scope exists then.
    pub fn is_home(&self) -> bool {
        self.user.canonicalize().ok() == self.project.canonicalize().ok()
    }

    pub fn scopes(&self) -> &'static [Scope] {
        if self.is_home() { &Scope::ALL[..1] } else { &Scope::ALL }
    }

    fn named(&self, client: &ClientSpec) -> Option<&Path> {
        let name = client.recipe.folder_variable?;
        self.named.iter().find(|(known, _)| *known == name).map(|(_, path)| path.as_path())
    }

    /// Returns the folder of a client.
    pub fn of(&self, client: &ClientSpec, scope: Scope) -> PathBuf {
        let folder = client.recipe.folder;
        match scope {
            Scope::User => self.named(client).map_or_else(|| self.user.join(folder), Path::to_owned),
            Scope::Project => self.project.join(folder),
        }
    }

    fn resolve(&self, client: &ClientSpec, scope: Scope, location: Location) -> PathBuf {
        match location {
            Location::Folder(path) => self.of(client, scope).join(path),
            Location::Project(path) => self.project.join(path),
            Location::Home(path) => self.named(client).unwrap_or(&self.user).join(path),
        }
    }

    pub fn hook_file(&self, client: &ClientSpec, scope: Scope) -> PathBuf {
        self.resolve(client, scope, client.recipe.hook_file.of(scope))
    }

    /// Returns the file with MCP servers, if the client has one in this scope.
    pub fn server_file(&self, client: &ClientSpec, scope: Scope) -> Option<PathBuf> {
        Some(self.resolve(client, scope, client.recipe.server_file.of(scope)?))
    }

    /// Returns the file for the guide, if the client has one in this scope.
    pub fn guide_file(&self, client: &ClientSpec, scope: Scope) -> Option<GuideFile> {
        Some(match client.recipe.guide.of(scope)? {
            GuideLocation::OwnFile(location) => GuideFile::OwnFile(self.resolve(client, scope, location)),
            GuideLocation::Block(location) => GuideFile::Block(self.resolve(client, scope, location)),
        })
    }

    /// Returns whether a client seems to be installed: its folder exists or its program is on the search path.
    pub fn has_client(&self, client: &ClientSpec, path: Option<&OsStr>) -> bool {
        self.of(client, Scope::User).is_dir() || is_on_path(client.recipe.program, path)
    }
}

fn is_on_path(program: &str, path: Option<&OsStr>) -> bool {
    let names = [program.to_owned(), format!("{program}.exe"), format!("{program}.cmd")];
    path.is_some_and(|path| {
        std::env::split_paths(path).any(|dir| names.iter().any(|name| dir.join(name).is_file()))
    })
}
