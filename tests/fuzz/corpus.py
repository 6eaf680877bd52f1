#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The kept corpora of the fuzz targets: an archive corpus/TARGET.tar.xz for each target.

    tests/fuzz/corpus.py --unpack FOLDER [TARGET...]   replaces FOLDER/TARGET/ by the inputs of the
                                                       archive; all targets that have an archive
    tests/fuzz/corpus.py --pack FOLDER TARGET...       writes the archives from FOLDER/TARGET/
    tests/fuzz/corpus.py --self-test

The bytes of an archive depend only on the names and bytes of the inputs.
"""

import io
import lzma
import pathlib
import shutil
import sys
import tarfile
import tempfile

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
ENDING = ".tar.xz"


def archive_of(inputs):
    """The archive of {name: bytes}."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(inputs.items()):
            entry = tarfile.TarInfo(name)  # time 0, owner 0, mode 644
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return lzma.compress(out.getvalue(), preset=9 | lzma.PRESET_EXTREME)


def inputs_of(archive):
    """{name: bytes} of an archive."""
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(archive))) as entries:
        inputs = {entry.name: entries.extractfile(entry).read() for entry in entries}
    assert all(pathlib.PurePath(name).name == name for name in inputs), "an input in a folder"
    return inputs


def unpack(archive, folder):
    """Replaces a folder by the inputs of an archive. Returns their number."""
    inputs = inputs_of(archive.read_bytes())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, data in inputs.items():
        (folder / name).write_bytes(data)
    return len(inputs)


def pack(folder, archive):
    """Writes an archive with the files of a folder. Returns their number."""
    inputs = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(archive_of(inputs))
    return len(inputs)


def self_test():
    inputs = {"b": b"", "a": bytes(range(256)) * 9, "0" * 40: b"\n"}
    with tempfile.TemporaryDirectory() as work:
        folder, archive = pathlib.Path(work, "folder"), pathlib.Path(work, "some", "a.tar.xz")
        folder.mkdir()
        for name, data in inputs.items():
            (folder / name).write_bytes(data)
        assert pack(folder, archive) == 3
        first = archive.read_bytes()
        (folder / "stale").write_bytes(b"of another archive")
        assert unpack(archive, folder) == 3
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == inputs
        (folder / "a").touch()
        pack(folder, archive)
        assert archive.read_bytes() == first
    assert archive_of(dict(reversed(inputs.items()))) == first
    return 0


def main(arguments):
    if arguments == ["--self-test"]:
        return self_test()
    if arguments[:1] not in (["--pack"], ["--unpack"]) or len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    action, folder, *targets = arguments
    if action == "--pack":
        for target in targets:
            count = pack(pathlib.Path(folder, target), CORPUS / (target + ENDING))
            print(f"{target}: {count} inputs")
        return 0
    if not targets:
        targets = [path.name.removesuffix(ENDING) for path in sorted(CORPUS.glob("*" + ENDING))]
    count = sum(unpack(CORPUS / (target + ENDING), pathlib.Path(folder, target))
                for target in targets)
    print(f"{count} inputs of {len(targets)} targets")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
