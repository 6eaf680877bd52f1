# SPDX-License-Identifier: BSL-1.0
"""Disk images: a Debian root, and the modules of a kernel."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess

import steps
from steps import BUILD, Failed, say

DEFAULT = BUILD / "root.img"
SIZE = "8G"
PACKAGES = ["bash", "binutils", "coreutils", "file", "gawk", "gcc", "kmod", "libc6-dev",
            "linux-perf", "procps", "util-linux"]
TO_MAKE = {"debootstrap": "/usr/sbin/debootstrap", "e2fsprogs": "/sbin/mke2fs"}


def mirror(folder=pathlib.Path("/etc/apt")):
    """The suite and the address of Debian in the package sources of this machine."""
    for file in sorted([*folder.glob("sources.list.d/*"), folder / "sources.list"]):
        if not file.is_file():
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        address = r"(?P<uri>(?:https?|file):(?!\S*security)\S*debian\S*)\s+"
        suite = r"(?P<suite>[\w./]+)"
        found = re.search(rf"^deb\s+(?:\[[^]]*\]\s+)?{address}{suite}\s", text, re.M)
        if not found:
            found = re.search(rf"^URIs:\s*{address}Suites:\s*{suite}\s", text, re.M)
        if found:
            return found["suite"], found["uri"]
    raise Failed("no package source of Debian in /etc/apt")


def make_image(folder, image, size):
    """Makes a file system that holds a folder, without mounting it. The file is sparse."""
    new = image.with_name(image.name + ".new")
    try:
        steps.run("mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E", "root_owner=0:0", "-d",
                  folder, new, size, log=image.with_name(image.name + ".log"))
        new.rename(image)
        image.with_name(image.name + ".log").unlink()
    finally:
        new.unlink(missing_ok=True)


def remove(folder):
    """Removes a root, in which debootstrap may have mounted /proc and /sys."""
    for one in ("proc", "sys"):
        if os.path.ismount(folder / one):
            subprocess.run(["umount", "-l", folder / one], check=False)
    if folder.exists():
        subprocess.run(["rm", "-rf", "--one-file-system", folder], check=True)


def make_root(options):
    """Makes a Debian root."""
    image = pathlib.Path(options.image or DEFAULT).absolute()
    packages = sorted({*PACKAGES, *options.add})
    wrong = [one for one in packages if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+(:[a-z0-9]+)?", one)]
    if wrong:
        raise steps.WrongUsage(f"--add {wrong[0]}: no name of a package")
    if image.exists():
        raise steps.WrongUsage(f"{image} exists: remove it first")
    if not image.parent.is_dir() and image != DEFAULT:
        raise steps.WrongUsage(f"{image.parent}: no such directory")
    suite, address = mirror()
    if os.geteuid() != 0:
        again = [str(steps.HERE / "machine"), "root", str(image)]
        for one in options.add:
            again += ["--add", one]
        raise Failed("debootstrap runs as root only: sudo " + shlex.join(
            [f"PTSPEC_BUILD_DIR={BUILD.parent}", *again]))
    BUILD.mkdir(parents=True, exist_ok=True)
    steps.need_space(BUILD, 800)
    steps.need_space(image.parent, 700)
    steps.install(TO_MAKE)
    say(f"makes {image}: Debian {suite} with {', '.join(packages)}")
    say("downloads 120 MB; the file takes 550 MB, and 700 MB more while it is made; about three "
        "minutes")
    folder, cache = BUILD / "root.new", BUILD / "root.packages"
    remove(folder)
    cache.mkdir(exist_ok=True)
    try:
        steps.run("debootstrap", "--variant=minbase", f"--cache-dir={cache}",
                  f"--include={','.join(packages)}", suite, folder, address,
                  log=BUILD / "debootstrap.log")
        for one in [*folder.glob("var/cache/apt/archives/*.deb"),
                    *folder.glob("var/lib/apt/lists/*_*")]:
            one.unlink()
        (folder / "etc/hostname").write_text("machine\n", encoding="utf-8")
        (folder / "etc/hosts").write_text("127.0.0.1 localhost machine\n", encoding="utf-8")
        make_image(folder, image, SIZE)
    finally:
        remove(folder)
    shutil.rmtree(cache)
    say(f"made {image}: {image.stat().st_blocks >> 11} MB, a sparse file of {SIZE}")
    return 0


def check(image):
    """Refuses what is no disk image with a file system of Linux."""
    file = pathlib.Path(image)
    if not file.exists():
        more = "" if file.resolve() != DEFAULT else ": `machine root` makes it"
        raise steps.WrongUsage(f"--root {image}: no such file{more}")
    if not file.is_file():
        raise steps.WrongUsage(f"--root {image}: not a file")
    with open(file, "rb") as text:
        text.seek(1024 + 56)
        if text.read(2) != b"\x53\xef":
            raise steps.WrongUsage(f"--root {image}: no file system ext4 in it, without partitions")


# ------------------------------------------------------------------------------------ modules

def modules_of(release):
    """The folder of the modules of a kernel, or None."""
    folder = pathlib.Path("/lib/modules") / release
    return folder if (folder / "modules.dep").exists() else None


def needed_modules(release, names):
    """The files of modules of a kernel with all that they need, in the order of loading. Those that
    are built in are not among them."""
    folder = modules_of(release)
    if folder is None:
        return []
    needs = {}
    for line in (folder / "modules.dep").read_text(encoding="utf-8").splitlines():
        file, _, before = line.partition(":")
        needs[file] = before.split()
    name_of = {file: pathlib.Path(file).name.split(".")[0].replace("-", "_") for file in needs}
    order = []

    def add(file):
        for one in needs[file]:
            add(one)
        if file not in order:
            order.append(file)
    for name in names:
        for file in [one for one, its in name_of.items() if its == name]:
            add(file)
    return [folder / file for file in order]


def modules_image(release):
    """An image with all modules of a kernel, made once; None without modules."""
    folder = modules_of(release)
    if folder is None:
        return None
    image = BUILD / f"modules-{release}.img"
    if not image.exists() or image.stat().st_mtime < (folder / "modules.dep").stat().st_mtime:
        size = sum(one.stat().st_size + 8192 for one in folder.rglob("*") if one.is_file())
        size_mb = (size >> 20) * 5 // 4 + 16
        steps.need_space(BUILD, size_mb)
        say(f"packs the modules of kernel {release}: {size_mb} MB")
        make_image(folder, image, f"{size_mb}M")
    return image
