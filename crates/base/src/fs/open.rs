//! Opens files and checks folders of a store. A store may come with a cloned repository, so its files are opened
//! without following a symbolic link, and without waiting for the other end of a pipe.
//!
//! Files that only the user writes (`config.json`, `trust.json` and others in the home store, `~/.tanmi/`) may be
//! links, for example into a repository of settings: [`super::read_optional`] and [`super::read_limited`] follow them.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use super::FileSig;
use crate::Bilingual;

/// Why a file, a folder or another part of a store is not used, in both languages. Carried by an [`io::Error`].
#[derive(Debug, thiserror::Error)]
#[error("{}", .text.en)]
struct Refusal {
    text: Bilingual,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Returns the error for a file that is not used as it is, with the reason and what to do.
pub(crate) fn refuse(zh: impl Into<String>, en: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Refusal { text: Bilingual::new(zh, en), source: None })
}

/// Returns an error whose [`refusal`] is this text. `source` is the source of the returned error.
pub fn explain(text: Bilingual, source: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(Refusal { text, source: Some(Box::new(source)) })
}

/// Returns why a file was refused, if the error says so.
pub fn refusal(error: &io::Error) -> Option<&Bilingual> {
    Some(&error.get_ref()?.downcast_ref::<Refusal>()?.text)
}

#[cfg(unix)]
fn refuse_link() -> io::Error {
    refuse(
        "是一个符号链接，Tanmi 不跟随它；请删除该链接",
        "a symbolic link, which Tanmi does not follow; remove the link",
    )
}

fn refuse_other_owner() -> io::Error {
    refuse("属于另一个用户；请删除它", "belongs to another user; remove it")
}

fn refuse_special() -> io::Error {
    refuse("不是普通文件；请删除它", "not a regular file; remove it")
}

/// Opens a regular file of a store and returns it with its metadata. A symbolic link, a pipe, a device or a folder is
/// refused.
pub fn open_regular(path: &Path, options: &mut OpenOptions) -> io::Result<(File, Metadata)> {
    let file = open_unfollowed(path, options)?;
    let meta = file.metadata()?;
    if meta.is_file() { Ok((file, meta)) } else { Err(refuse_special()) }
}

/// Like [`open_regular`], but follows symbolic links.
pub(super) fn open_followed(path: &Path, options: &mut OpenOptions) -> io::Result<(File, Metadata)> {
    #[cfg(unix)]
    let file = open_with(path, options, rustix::fs::OFlags::empty())?;
    #[cfg(not(unix))]
    let file = options.open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() { Ok((file, meta)) } else { Err(refuse_special()) }
}

#[cfg(unix)]
fn open_unfollowed(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    open_with(path, options, rustix::fs::OFlags::NOFOLLOW)
}

/// Opens a file without waiting for the other end of a pipe.
#[cfg(unix)]
fn open_with(path: &Path, options: &mut OpenOptions, flags: rustix::fs::OFlags) -> io::Result<File> {
    use rustix::fs::OFlags;
    use rustix::io::Errno;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits().cast_signed());
    options.open(path).map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => refuse_link(),
        // A pipe without a reader, a socket, a folder.
        Some(Errno::NXIO | Errno::ISDIR) => refuse_special(),
        _ => error,
    })
}

#[cfg(not(unix))]
fn open_unfollowed(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    inspect(path)?;
    options.open(path)
}

/// Like [`open_regular`], for a file that only its owner may open. A new file gets mode 0600, an existing one loses the
/// rights of other users, and one of another user is refused: that user could lock it.
pub fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<(File, Metadata)> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    let (file, meta) = open_regular(path, options)?;
    if !is_own(&meta, path) {
        return Err(refuse_other_owner());
    }
    if is_open_to_others(&meta) && super::link_count(&meta) == 1 {
        let _ = file.set_permissions(private_mode(&meta));
    }
    Ok((file, meta))
}

/// Like [`open_private`], for a file whose content is copied elsewhere. A file with a second name is refused,
/// because it may contain the data of another program.
pub fn open_own(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let (file, meta) = open_private(path, options)?;
    if super::link_count(&meta) > 1 {
        return Err(refuse(
            "有多个名称（硬链接）；请用它的副本替换它",
            "has more than one name (hard link); replace it with a copy of it",
        ));
    }
    Ok(file)
}

/// Returns whether a file belongs to this user. Root also works in folders of other users, whose files belong to the
/// owner of the folder.
#[cfg(unix)]
fn is_own(meta: &Metadata, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid();
    meta.uid() == user.as_raw() || (user.is_root() && has_owner_of_folder(meta, path))
}

#[cfg(unix)]
fn has_owner_of_folder(meta: &Metadata, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let folder = path.parent().and_then(|folder| std::fs::symlink_metadata(folder).ok());
    folder.is_some_and(|folder| folder.uid() == meta.uid())
}

#[cfg(not(unix))]
fn is_own(_: &Metadata, _: &Path) -> bool {
    true
}

#[cfg(not(unix))]
fn has_owner_of_folder(_: &Metadata, _: &Path) -> bool {
    true
}

/// Returns the bytes of a regular file and the signature of the same open file, or `None` if the file is missing. A
/// file longer than `max` is an error.
pub fn read_regular(path: &Path, max: u64) -> io::Result<Option<(Vec<u8>, FileSig)>> {
    let (file, meta) = match open_regular(path, OpenOptions::new().read(true)) {
        Err(error) if super::is_absent(&error) => return Ok(None),
        other => other?,
    };
    Ok(Some((read_up_to(&file, &meta, max)?, FileSig::from_metadata(&meta))))
}

/// Returns the bytes of an open file. A file longer than `max` is an error, also one that names another
/// length, as files in `/proc` do.
pub(super) fn read_up_to(file: &File, meta: &Metadata, max: u64) -> io::Result<Vec<u8>> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidData, format!("longer than {max} bytes"));
    if meta.len() > max {
        return Err(too_long());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(too_long()) } else { Ok(bytes) }
}

/// Refuses a folder that is a symbolic link. A missing folder passes.
pub fn check_folder(path: &Path) -> io::Result<()> {
    inspect(path).map(|_| ())
}

/// Like [`check_folder`]; a folder of another user than this one and the owner of the folder above is refused, too.
pub fn check_own_folder(path: &Path) -> io::Result<()> {
    match inspect(path)? {
        Some(meta) if !is_own(&meta, path) && !has_owner_of_folder(&meta, path) => Err(refuse_other_owner()),
        _ => Ok(()),
    }
}

/// Like [`check_folder`]; an existing folder loses the rights of other users, and one of another user is refused.
pub fn check_private_folder(path: &Path) -> io::Result<()> {
    match inspect(path)? {
        Some(meta) if !is_own(&meta, path) => Err(refuse_other_owner()),
        Some(meta) if meta.is_dir() && is_open_to_others(&meta) => {
            // Fails for root in a folder of another user on some file systems.
            let _ = open_unfollowed(path, OpenOptions::new().read(true))
                .and_then(|folder| folder.set_permissions(private_mode(&meta)));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Returns the metadata of a path, if it can be read. A symbolic link is refused; the reason names it,
/// because the caller may report the path of a file below it.
fn inspect(path: &Path) -> io::Result<Option<Metadata>> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_symlink() => {
            let path = path.display();
            Err(refuse(
                format!("{path} 是一个符号链接，Tanmi 不跟随它；请删除该链接"),
                format!("{path} is a symbolic link, which Tanmi does not follow; remove the link"),
            ))
        }
        Ok(meta) => Ok(Some(meta)),
        // What cannot be inspected cannot be opened either, and the caller reports that.
        Err(_) => Ok(None),
    }
}

/// Returns whether a path is a regular file with one name, or missing, and takes the rights of other users
/// from it. Does not open the file: closing it would release the locks that SQLite holds on it in this
/// process.
pub fn check_unopened(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_file() || super::link_count(&meta) > 1 => false,
        Ok(meta) => {
            if is_open_to_others(&meta) {
                let _ = std::fs::set_permissions(path, private_mode(&meta));
            }
            true
        }
        Err(error) => super::is_absent(&error),
    }
}

/// Creates an empty file with mode 0600 if there is none. Returns with an error if the file system has no hard links.
pub fn create_private(path: &Path) -> io::Result<()> {
    let temp = super::temp_path(path.parent().unwrap_or(Path::new(".")));
    // The name appears after the file is closed, see `check_unopened`. A hard link never replaces a file.
    let created = super::write_new_private(&temp, b"", super::Durability::Journaled)
        .and_then(|_| std::fs::hard_link(&temp, path));
    let _ = std::fs::remove_file(&temp);
    match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

#[cfg(unix)]
fn is_open_to_others(meta: &Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o077 != 0
}

#[cfg(unix)]
fn private_mode(meta: &Metadata) -> std::fs::Permissions {
    let mode = if meta.is_dir() { 0o700 } else { 0o600 };
    std::os::unix::fs::PermissionsExt::from_mode(mode)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn private_mode(meta: &Metadata) -> std::fs::Permissions {
    meta.permissions()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn read_write(path: &Path) -> io::Result<(File, Metadata)> {
        open_regular(path, OpenOptions::new().read(true).write(true).create(true).truncate(false))
    }

    #[test]
    fn open_regular_refuses_links_pipes_and_folders() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        symlink(at("elsewhere"), at("dangling")).unwrap();
        super::super::write_new(&at("file"), b"x", super::super::Durability::Journaled).unwrap();
        symlink(at("file"), at("link")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status();
        assert!(made.unwrap().success());
        for name in ["dangling", "link", "folder", "pipe"] {
            let append = open_regular(&at(name), OpenOptions::new().append(true));
            let read = open_regular(&at(name), OpenOptions::new().read(true));
            for error in [read_write(&at(name)).unwrap_err(), append.unwrap_err(), read.unwrap_err()] {
                assert!(refusal(&error).is_some(), "{name}: {error}");
            }
        }
        assert!(!at("elsewhere").exists());
        read_write(&at("file")).unwrap();
    }

    #[test]
    fn open_private_takes_rights_of_others_unless_file_has_second_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let open =
            |name: &str| open_private(&at(name), OpenOptions::new().append(true).create(true)).unwrap();
        open("new");
        assert_eq!(mode(&at("new")), 0o600);
        std::fs::set_permissions(at("new"), std::fs::Permissions::from_mode(0o644)).unwrap();
        open("new");
        assert_eq!(mode(&at("new")), 0o600);
        std::fs::set_permissions(at("new"), std::fs::Permissions::from_mode(0o644)).unwrap();
        std::fs::hard_link(at("new"), at("second")).unwrap();
        open("second");
        assert_eq!(mode(&at("new")), 0o644);
        assert!(refusal(&open_own(&at("second"), OpenOptions::new().read(true)).unwrap_err()).is_some());
    }

    #[test]
    fn check_private_folder_takes_rights_of_others_and_refuses_link() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, link) = (dir.path().join("folder"), dir.path().join("link"));
        check_private_folder(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        symlink(&folder, &link).unwrap();
        assert!(refusal(&check_private_folder(&link).unwrap_err()).is_some());
        assert_eq!(mode(&folder), 0o755);
        check_private_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
    }
}
