"""No module of the package opens a file for writing, except those for atomic writes."""

import ast
from pathlib import Path

import dcme_w2v

WRITERS = (
    "platform.py",
    "atomic.py",
    "folders.py",
    "temporary.py",
    "checkpoint_folder.py",
    "folder.py",
)


def test_files_are_opened_for_writing_in_one_place():
    found = []
    package = Path(dcme_w2v.__file__).parent
    for path in package.rglob("*.py"):
        if path.name not in WRITERS:
            calls = (
                one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Call)
            )
            found += [f"{path.relative_to(package)}:{one.lineno}" for one in calls if _writes(one)]
    assert not found, "write through files.atomic or files.folders"


def _writes(call):
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    owner = getattr(getattr(call.func, "value", None), "id", "")
    if name == "open" and owner != "archive":  # of a zip file that is open
        if "devnull" in ast.unparse(call):
            return False
        modes = [one.value for one in (*call.args[:2], *(k.value for k in call.keywords))
                 if isinstance(one, ast.Constant) and isinstance(one.value, str)]  # fmt: skip
        flags = {one.attr for one in ast.walk(call) if isinstance(one, ast.Attribute)}
        writing = any(set(mode) <= set("rwxabt+") and set(mode) & set("wxa+") for mode in modes)
        return writing or bool(flags & {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND"})
    if owner == "np" or name in ("tofile", "dump"):
        return name in ("save", "savez", "savez_compressed", "savetxt", "tofile", "dump")
    if name == "replace":  # of a path, not of a text or a dataclass
        return len(call.args) == 1 and not call.keywords
    return name in (
        "write_text", "write_bytes", "touch", "mkstemp", "NamedTemporaryFile", "unlink", "remove",
        "rename", "renames", "rmdir", "rmtree", "symlink_to", "hardlink_to", "copyfile", "move",
    )  # fmt: skip
