# SPDX-License-Identifier: BSL-1.0
"""What runs inside of the machine: the file system in memory, its programs and scripts.

The working directory is /files. After the command, `finish` removes from it what was taken along
and is unchanged, and writes a tar archive to a port: `run/status`, and the directory `files`.
"""

import gzip
import lzma
import os
import pathlib
import re
import shlex
import shutil
import struct
import subprocess

import disk
import steps
from steps import Failed, NotFound, WrongUsage, say

BUSYBOX = "/bin/busybox"
FOR_DISKS = ["virtio_pci", "virtio_blk", "ext4"]
FOR_PORT = ["virtio_pci", "virtio_console"]

# Mounts what every Linux has, and loads modules: $B is busybox.
INIT = """#!/bin/busybox sh
B=/bin/busybox
$B mkdir -p /proc /sys /dev /tmp /run /root
$B mount -t proc proc /proc
$B mount -t sysfs sys /sys
$B mount -t devtmpfs dev /dev
$B mount -t tmpfs run /run
for one in fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do
    $B ln -s /proc/self/${one#*:} /dev/${one%:*} 2>/dev/null
done
$B mount -t tracefs trace /sys/kernel/tracing 2>/dev/null
echo -1 > /proc/sys/kernel/perf_event_paranoid
echo 0 > /proc/sys/kernel/kptr_restrict
$B hostname machine
$B ifconfig lo up 2>/dev/null
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
fail() {
    echo "machine: $*"
    $B sync
    $B poweroff -f
}
if [ ! -d /sys/bus/event_source ]; then
    echo "machine: this kernel has no performance events: perf cannot record"
elif [ ! -d /sys/bus/event_source/devices/intel_pt ]; then
    echo "machine: this kernel offers no Intel PT (no intel_pt in /sys/bus/event_source/devices)"
fi
"""
IN_MEMORY = """$B --install -s /bin
cd /files
/machine/command
echo $? > /run/status
B=/bin/busybox exec /bin/busybox sh /machine/finish
"""
ON_DISK = """for one in $($B cat /machine/for_disks); do $B insmod /machine/modules/$one; done
try=0
while [ ! -b /dev/vda ] && [ $try -lt 50 ]; do $B sleep 0.1; try=$((try + 1)); done
[ -b /dev/vda ] || fail "this kernel finds no disk: it has no virtio_blk, and no module of it"
$B mkdir /new
$B mount -t ext4 /dev/vda /new || fail "the root cannot be mounted"
for one in proc sys dev run files tmp; do $B mkdir -p /new/$one; done
[ -x /new/bin/sh ] || fail "the root has no /bin/sh"
if [ -b /dev/vdb ]; then
    $B mkdir -p "/new/lib/modules/$($B uname -r)"
    $B mount -t ext4 -o ro /dev/vdb "/new/lib/modules/$($B uname -r)"
fi
$B mkdir -p /dev/pts /dev/shm
$B mount -t devpts pts /dev/pts 2>/dev/null
$B mount -t tmpfs shm /dev/shm 2>/dev/null
$B mount -t tmpfs run /new/run
$B cp -a /machine /new/run/machine
$B cp /bin/busybox /new/run/machine/busybox
$B cp -a /files/. /new/files/ || fail "the files to take along do not fit on the root"
for one in proc sys dev; do $B mount --move /$one /new/$one; done
exec $B switch_root /new /run/machine/busybox sh /run/machine/on_disk
"""
ON_DISK_LATER = """cd /files
/run/machine/command
echo $? > /run/status
B=/run/machine/busybox exec /run/machine/busybox sh /run/machine/finish
"""
FINISH = """$B kill -9 -1 2>/dev/null
cd /files
M=$($B dirname $0)
. $M/taken
for one in $($B cat $M/for_port); do $B insmod $M/modules/$one 2>/dev/null; done
port=/dev/ttyS1
try=0
while $B [ -s $M/for_port ] && [ $try -lt 20 ]; do
    if [ -c /dev/vport0p1 ]; then port=/dev/vport0p1; break; fi
    $B sleep 0.05
    try=$((try + 1))
done
[ $port != /dev/ttyS1 ] || $B stty -F $port raw 2>/dev/null
cd /
$B tar -c -f $port run/status files
$B rm -rf /files
$B sync
$B mount -o remount,ro / 2>/dev/null
$B poweroff -f
"""


def libraries_of(program):
    """The files that the loader takes for a program: empty if it is static, or a script."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    return sorted(set(re.findall(r"(?:=> )?(/\S+) \(0x", listed.stdout)))


def perf_program():
    found = sorted(pathlib.Path("/usr/bin").glob("perf_[0-9]*"))
    return found[-1] if found else pathlib.Path("/usr/bin/perf")


def architecture_of(file):
    """The name of an ELF file's machine if that is not x86, else an empty text."""
    with open(file, "rb") as text:
        head = text.read(20)
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return ""
    number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    names = {8: "MIPS", 20: "PowerPC", 21: "PowerPC64", 22: "S/390", 40: "Arm", 183: "AArch64",
             243: "RISC-V", 258: "LoongArch"}
    return "" if number in (3, 62) else names.get(number, f"ELF machine {number}")


def interpreter_of(file):
    """The words of the #! line of a script."""
    with open(file, "rb") as text:
        line = text.readline(256)
    if not line.startswith(b"#!"):
        return []
    words = line[2:].decode(errors="replace").split()
    if words and words[0].endswith("/env"):
        words = words[1:]
    return words[:1]


def is_of_busybox(word):
    """True for a program of busybox and for a builtin command of its shell."""
    return subprocess.run([BUSYBOX, "sh", "-c", 'type "$0"', word], env={"PATH": ""}, check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


class system:
    """The file system in memory: a folder, and what was taken along into the working directory."""

    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.taken = []
        for one in ("bin", "files", "machine/modules", "usr/bin"):
            (folder / one).mkdir(parents=True)

    def write(self, name, text, mode=0o644):
        (self.folder / name).write_text(text, encoding="utf-8")
        (self.folder / name).chmod(mode)

    def copy(self, file, to=None):
        target = self.folder / os.path.normpath(str(to or file)).lstrip("/")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        return target

    def link_busybox(self, path):
        """A path that scripts name, such as /usr/bin/awk: busybox is installed in /bin."""
        target = self.folder / path.lstrip("/")
        if "/" in path and target.parent != self.folder / "bin" and not target.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(BUSYBOX)

    def add_program(self, file, to=None):
        """A program with its libraries, or a script with its interpreter."""
        self.copy(file, to)
        if self.options.root:
            return
        for one in interpreter_of(file):
            program = shutil.which(one)
            name = pathlib.Path(one).name
            if is_of_busybox(name):
                self.link_busybox(one)
            elif not program:
                raise Failed(f"{file}: its interpreter {one} is not on this machine")
            else:
                if name.startswith(("perl", "python", "ruby")):
                    say(f"{file}: {name} needs more files; --root IMAGE can have them")
                self.add_program(program, one if one.startswith("/") else program)
        for one in libraries_of(file):
            self.copy(one)

    def take_along(self, file, name):
        """A file in the working directory. Its time of change is its number: thus `finish` finds
        whether it was written."""
        self.taken.append(name)
        self.add_program(file, f"/files/{name}")
        os.utime(self.folder / "files" / name, (0, len(self.taken)))

    def add_command(self, command):
        """The programs that a command names. Those with a path from here are taken along."""
        for word in command:
            file = pathlib.Path(word)
            found = shutil.which(word)
            is_path_from_here = "/" in word and not file.is_absolute()
            if found and is_path_from_here and ".." not in file.parts:
                if os.path.normpath(word) not in self.taken:
                    self.take_along(file, os.path.normpath(word))
            elif found and not is_path_from_here and not self.options.root:
                self.add_program(perf_program() if word == "perf" else found,
                                 "/usr/bin/perf" if word == "perf" else found)

    def finish_script(self):
        """Removes what was taken along and is unchanged."""
        lines = []
        for number, name in enumerate(self.taken, 1):
            file = shlex.quote(f"./{name}")
            lines.append(f'[ "$($B stat -c %Y {file} 2>/dev/null)" != {number} ] || '
                         f"$B rm -f {file}")
            for parent in list(pathlib.PurePath(name).parents)[:-1]:
                lines.append(f"$B rmdir {shlex.quote(f'./{parent}')} 2>/dev/null")
        return "".join(f"{line}\n" for line in lines)

    def add_modules(self, release):
        for name, wanted in (("for_disks", FOR_DISKS if self.options.root else []),
                             ("for_port", FOR_PORT)):
            files = disk.needed_modules(release, wanted)
            for file in files:
                to = self.folder / "machine/modules" / (file.name.split(".")[0] + ".ko")
                to.write_bytes(uncompressed(file))
            self.write(f"machine/{name}", " ".join(
                f"{file.name.split('.')[0]}.ko" for file in files))

    def pack(self):
        packed = self.folder.with_suffix(".cpio")
        names = subprocess.run(["find", ".", "-print0"], cwd=self.folder, capture_output=True,
                               check=True).stdout
        with open(packed, "wb") as to:
            done = subprocess.run(["cpio", "--quiet", "-0", "-o", "-H", "newc"], cwd=self.folder,
                                  input=names, stdout=to, check=False)
        if done.returncode != 0:
            steps.need_space(self.folder, 1)
            raise Failed("the file system in memory cannot be packed")
        return packed


def uncompressed(module):
    data = module.read_bytes()
    if module.suffix == ".xz":
        return lzma.decompress(data)
    if module.suffix == ".gz":
        return gzip.decompress(data)
    if module.suffix == ".zst":
        return subprocess.run(["zstd", "-dcq", module], stdout=subprocess.PIPE, check=True).stdout
    return data


def command_text(options):
    """The script that runs the command."""
    busybox = "/run/machine/busybox" if options.root else BUSYBOX
    if options.script:
        text = pathlib.Path(options.script).read_text(encoding="utf-8", errors="surrogateescape")
        return text if text.startswith("#!") else f"#!/bin/sh\n{text}\n"
    if options.command:
        return f"#!/bin/sh\n{shlex.join(options.command)}\n"
    shell = "[ ! -x /bin/bash ] || set -- /bin/bash -l\n" if options.root else ""
    return f"#!/bin/sh\nset -- /bin/sh\n{shell}exec {busybox} setsid {busybox} cttyhack \"$@\"\n"


def make(folder, options, release):
    """Makes the file system in memory: returns its file."""
    made = system(folder, options)
    made.copy(BUSYBOX)
    if not options.root:
        made.add_program(perf_program(), "/usr/bin/perf")
        made.link_busybox("/usr/bin/env")
    for name in options.file:
        made.take_along(name, pathlib.Path(name).name)
    made.add_command(options.command)
    if options.script and not options.root:
        made.add_program(options.script, "/machine/command")
    with open(folder / "machine/command", "w", encoding="utf-8", errors="surrogateescape") as to:
        to.write(command_text(options))
    (folder / "machine/command").chmod(0o755)
    made.write("machine/taken", made.finish_script())
    made.write("machine/finish", FINISH)
    made.write("machine/on_disk", ON_DISK_LATER)
    made.write("init", INIT + (ON_DISK if options.root else IN_MEMORY), 0o755)
    made.add_modules(release)
    return made.pack()


# ------------------------------------------------------------------------------------ checks

def release_of(kernel):
    """The release of a kernel in the format that boots, such as 6.1.0-56-cloud-amd64."""
    with open(kernel, "rb") as text:
        head = text.read(0x4000)
        if len(head) < 0x264 or head[0x1FE:0x200] != b"\x55\xaa" or head[0x202:0x206] != b"HdrS":
            raise WrongUsage(f"{kernel}: no kernel of Linux for x86 (bzImage)")
        (flags,) = struct.unpack_from("<H", head, 0x236)
        if not flags & 1:
            raise WrongUsage(f"{kernel}: a kernel for 32 bits; the processors have 64")
        (place,) = struct.unpack_from("<H", head, 0x20E)
        text.seek(place + 0x200)
        return text.read(128).split(b"\0")[0].decode(errors="replace").split(" ")[0]


def check_command(options):
    """Refuses what cannot run: before the emulator is built."""
    names = []
    for name in options.file:
        file = pathlib.Path(name)
        if not file.exists():
            raise WrongUsage(f"--file {name}: no such file")
        if not file.is_file():
            raise WrongUsage(f"--file {name}: not a file")
        if not os.access(file, os.R_OK):
            raise WrongUsage(f"--file {name}: not readable")
        names.append(file.name)
    for name in {one for one in names if names.count(one) > 1}:
        raise WrongUsage(f"two files of --file have the name {name}")
    if options.script:
        file = pathlib.Path(options.script)
        if options.command:
            raise WrongUsage(f"--script and the command {options.command[0]}: one of them")
        if not file.is_file() or not os.access(file, os.R_OK):
            raise WrongUsage(f"--script {options.script}: no such file")
    if not options.command:
        return
    first = options.command[0]
    is_here = os.path.normpath(first) in names and "/" in first
    file = next((pathlib.Path(one) for one in options.file
                 if pathlib.Path(one).name == os.path.normpath(first)), None) if is_here else None
    file = file or (pathlib.Path(shutil.which(first)) if shutil.which(first) else None)
    if options.root and "/" not in first:
        return  # looked for on the root
    if file is None and pathlib.Path(first).is_file() and "/" in first:
        raise NotFound(f"{first}: not executable")
    if file is None and not is_of_busybox_here(first) and not options.root:
        raise NotFound(f"{first}: command not found, neither here nor in --file")
    if file is not None and architecture_of(file):
        raise WrongUsage(f"{file}: a program for {architecture_of(file)}; the machine is x86-64")
    if ".." in pathlib.PurePath(first).parts:
        raise WrongUsage(f"{first}: outside of this directory; take it along by --file")


def is_of_busybox_here(word):
    return not os.path.exists(BUSYBOX) or is_of_busybox(word)  # it is installed later


def check_memory(options, packed):
    """Refuses less memory than the kernel and its files need."""
    found = re.fullmatch(r"(\d+)([MG]?)", options.memory)
    if not found:
        raise WrongUsage(f"--memory {options.memory}: not a size such as 512M or 2G")
    megabytes = int(found[1]) << (10 if found[2] == "G" else 0)
    needed = 160 + (2 * packed >> 20)
    if megabytes < needed:
        raise WrongUsage(f"--memory {options.memory}: at least {needed}M are needed here")
    if packed == 0 and megabytes > 1 << 20:
        raise WrongUsage(f"--memory {options.memory}: more than 1024G")
