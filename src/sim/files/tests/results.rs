//! Results of single calls: the same calls on Linux have them.

use std::io::SeekFrom;
use std::path::Path;

use super::super::disk::Disk;
use super::{NOW, Scene, WRITE};
use crate::sim::net::Errno;
use crate::simulated::files::OpenFlags;

#[test]
fn errors_are_those_of_linux() {
    let mut scene = Scene::new();
    ["/d", "/d/e"].into_iter().for_each(|path| scene.mkdir(path));
    scene.write("/f", b"f");
    let path = Path::new;
    let disk = &mut scene.disk;
    disk.symlink(path("/loop"), path("/loop"), NOW).unwrap();
    assert_eq!(disk.create_dir(path("/d"), 0, NOW), Err(Errno::Exists));
    assert_eq!(disk.create_dir(path("/f/g"), 0, NOW), Err(Errno::NotDirectory));
    assert_eq!(disk.create_dir(path("/g/h"), 0, NOW), Err(Errno::NoEntry));
    assert_eq!(disk.remove_dir(path("/d"), NOW), Err(Errno::NotEmpty));
    assert_eq!(disk.remove_dir(path("/f"), NOW), Err(Errno::NotDirectory));
    assert_eq!(disk.remove_file(path("/d"), NOW), Err(Errno::IsDirectory));
    assert_eq!(disk.rename(path("/d"), path("/d/e/g"), NOW), Err(Errno::Invalid));
    assert_eq!(disk.rename(path("/f"), path("/d"), NOW), Err(Errno::IsDirectory));
    assert_eq!(disk.rename(path("/d/e"), path("/f"), NOW), Err(Errno::NotDirectory));
    assert_eq!(disk.hard_link(path("/d"), path("/g"), NOW), Err(Errno::NotPermitted));
    assert_eq!(disk.walk(path("/loop"), true).unwrap_err(), Errno::TooManyLinks);
    let file = scene.open("/f");
    let disk = &mut scene.disk;
    disk.capacity = 3;
    assert_eq!(disk.write(file, b"four", None, NOW), Err(Errno::NoSpace));
    assert_eq!(disk.set_len(file, 1 << 40, NOW), Err(Errno::TooLarge));
    assert_eq!(disk.write(file, b"xyz", None, NOW), Ok(0));
}

#[test]
fn a_slash_at_the_end_stands_for_a_directory() {
    let mut scene = Scene::new();
    scene.mkdir("/d/");
    ["/f", "/g"].into_iter().for_each(|path| scene.write(path, b"content"));
    let path = Path::new;
    let disk = &mut scene.disk;
    for (original, link) in [("/d", "/to-d"), ("/f", "/to-f"), ("/new/", "/to-new"), ("/d/", "/to-d-slash")] {
        disk.symlink(path(original), path(link), NOW).unwrap();
    }
    let reads = OpenFlags { read: true, ..OpenFlags::default() };
    for (name, flags, expected) in [
        ("/new/", WRITE, Err(Errno::IsDirectory)),
        ("/f/", WRITE, Err(Errno::IsDirectory)),
        ("/to-new", WRITE, Err(Errno::IsDirectory)),
        ("/f/", reads, Err(Errno::NotDirectory)),
        ("/f/.", reads, Err(Errno::NotDirectory)),
        ("/to-f/", reads, Err(Errno::NotDirectory)),
        ("/new/", reads, Err(Errno::NoEntry)),
        ("/d/", reads, Ok(false)),
        ("/to-d/", reads, Ok(false)),
        ("/", reads, Ok(false)),
    ] {
        scene.last += 1;
        assert_eq!(disk.open(scene.last, path(name), flags, NOW), expected, "{name}");
    }
    for name in ["/f/", "/to-d/", "/to-f/"] {
        assert_eq!(disk.remove_file(path(name), NOW), Err(Errno::NotDirectory), "{name}");
        assert_eq!(disk.remove_dir(path(name), NOW), Err(Errno::NotDirectory), "{name}");
        assert_eq!(disk.rename(path(name), path("/new"), NOW), Err(Errno::NotDirectory), "{name}");
        assert_eq!(disk.create_dir(path(name), 0, NOW), Err(Errno::Exists), "{name}");
    }
    assert_eq!(disk.remove_file(path("/d/"), NOW), Err(Errno::IsDirectory));
    for to in ["/new/", "/g/"] {
        assert_eq!(disk.rename(path("/f"), path(to), NOW), Err(Errno::NotDirectory), "{to}");
    }
    assert_eq!(disk.rename(path("/d"), path("/f/"), NOW), Err(Errno::NotDirectory));
    assert_eq!(disk.hard_link(path("/f/"), path("/new"), NOW), Err(Errno::NotDirectory));
    assert_eq!(disk.hard_link(path("/f"), path("/new/"), NOW), Err(Errno::NoEntry));
    assert_eq!(disk.hard_link(path("/f"), path("/g/"), NOW), Err(Errno::Exists));
    assert_eq!(disk.symlink(path("x"), path("/new/"), NOW), Err(Errno::NoEntry));
    assert_eq!(disk.read_link(path("/to-d/")), Err(Errno::Invalid));
    assert_eq!(disk.canonicalize(path("/to-d-slash/")), Ok("/d".into()));
    assert_eq!(disk.rename(path("/d/"), path("/e/"), NOW), Ok(()));
    assert_eq!(disk.remove_dir(path("/e/"), NOW), Ok(()));
}

/// Fails if a `.` at the end of a path is left out. Errors of what is before it come first.
#[test]
fn a_dot_at_the_end_is_no_name() {
    let mut scene = Scene::new();
    scene.mkdir("/d");
    scene.write("/f", b"content");
    let path = Path::new;
    let disk = &mut scene.disk;
    disk.symlink(path("d"), path("/to-d"), NOW).unwrap();
    for (name, expected) in
        [("/new/.", Errno::NoEntry), ("/f/.", Errno::NotDirectory), ("/d/./", Errno::Exists)]
    {
        assert_eq!(disk.create_dir(path(name), 0, NOW), Err(expected), "{name}");
        assert_eq!(disk.symlink(path("x"), path(name), NOW), Err(expected), "{name}");
        assert_eq!(disk.hard_link(path("/f"), path(name), NOW), Err(expected), "{name}");
        let opened = disk.open(100, path(name), OpenFlags { create_new: true, ..WRITE }, NOW);
        assert_eq!(opened, Err(expected), "{name}");
    }
    for (name, expected) in [
        ("/d/.", Errno::Invalid),
        ("/to-d/.", Errno::Invalid),
        ("/to-d/..", Errno::NotEmpty),
        ("/f/..", Errno::NotDirectory),
        ("/", Errno::Busy),
    ] {
        assert_eq!(disk.remove_dir(path(name), NOW), Err(expected), "{name}");
    }
    for (from, to) in [("/d/.", "/new"), ("/d", "/d/."), ("/to-d/..", "/to-d/.."), ("/none", "/")] {
        assert_eq!(disk.rename(path(from), path(to), NOW), Err(Errno::Busy), "{from} {to}");
    }
    assert_eq!(disk.remove_file(path("/d/."), NOW), Err(Errno::IsDirectory));
    assert_eq!(disk.open(100, path("/d/."), WRITE, NOW), Err(Errno::IsDirectory));
    assert_eq!(disk.find_itself(path("/to-d/.")), disk.find_itself(path("/d")));
}

#[test]
fn errors_come_in_the_order_of_linux() {
    let mut scene = Scene::new();
    ["/d", "/d/e"].into_iter().for_each(|path| scene.mkdir(path));
    ["/f", "/d/e/f"].into_iter().for_each(|path| scene.write(path, b"content"));
    let path = Path::new;
    let disk = &mut scene.disk;
    disk.symlink(path("/loop"), path("/loop"), NOW).unwrap();
    // The place of a hard link is checked before what it is to lead to.
    for (link, expected) in [
        ("/f", Errno::Exists),
        ("/none/f", Errno::NoEntry),
        ("/f/f", Errno::NotDirectory),
        ("/loop/f", Errno::TooManyLinks),
        ("/new", Errno::NotPermitted),
    ] {
        assert_eq!(disk.hard_link(path("/d"), path(link), NOW), Err(expected), "{link}");
    }
    // A directory above the source has entries, whatever the source is.
    assert_eq!(disk.rename(path("/d/e/f"), path("/d"), NOW), Err(Errno::NotEmpty));
    assert_eq!(disk.rename(path("/d/e"), path("/d"), NOW), Err(Errno::NotEmpty));
    assert_eq!(disk.rename(path("/f"), path("/d/e"), NOW), Err(Errno::IsDirectory));
    assert_eq!(disk.rename(path("/f"), path("/d/e/"), NOW), Err(Errno::NotDirectory));
    // A slash excludes a new file before the link is followed.
    assert_eq!(disk.open(100, path("/loop/"), WRITE, NOW), Err(Errno::IsDirectory));
}

#[test]
fn a_path_has_limits() {
    let mut disk = Scene::new().disk;
    let create = |disk: &mut Disk, path: &str| disk.create_dir(Path::new(path), 0, NOW);
    let (longest, longer) = ("n".repeat(255), "n".repeat(256));
    assert_eq!(create(&mut disk, &longest), Ok(()));
    assert_eq!(create(&mut disk, &longer), Err(Errno::NameTooLong));
    assert_eq!(create(&mut disk, &format!("{longer}/a")), Err(Errno::NameTooLong));
    assert_eq!(create(&mut disk, &"./".repeat(2048)), Err(Errno::NameTooLong));
    assert_eq!(create(&mut disk, "a\0b"), Err(Errno::Invalid));
    assert_eq!(disk.rename(Path::new(&longest), Path::new(&longer), NOW), Err(Errno::NameTooLong));
    for (original, expected) in [("", Errno::NoEntry), ("a\0b", Errno::Invalid)] {
        assert_eq!(disk.symlink(Path::new(original), Path::new("/link"), NOW), Err(expected));
    }
}

#[test]
fn a_directory_has_no_end_to_seek_from() {
    let mut scene = Scene::new();
    let disk = &mut scene.disk;
    disk.open(1, Path::new("/"), OpenFlags { read: true, ..OpenFlags::default() }, NOW).unwrap();
    assert_eq!(disk.seek(1, SeekFrom::Start(5)), Ok(5));
    assert_eq!(disk.seek(1, SeekFrom::End(0)), Err(Errno::Invalid));
    assert_eq!(disk.seek(1, SeekFrom::Current(1)), Ok(6));
}

#[test]
fn a_write_of_nothing_moves_no_cursor() {
    let mut scene = Scene::new();
    scene.write("/a", b"content");
    let disk = &mut scene.disk;
    disk.open(100, Path::new("/a"), OpenFlags { append: true, ..WRITE }, NOW).unwrap();
    disk.write(100, b"", None, NOW).unwrap();
    assert_eq!(disk.seek(100, SeekFrom::Current(0)), Ok(0));
    disk.write(100, b"!", None, NOW).unwrap();
    assert_eq!(disk.seek(100, SeekFrom::Current(0)), Ok(8));
}
