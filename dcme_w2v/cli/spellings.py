"""Command lines of word2vec.c and word2phrase: ``-train FILE -size 100 -cbow 0 -debug 0``.

Flags that have a value here, such as ``-size``, are declared with the option (`word2vec`).
"""

from typing import Any

import click
from click.core import ParameterSource

from dcme_w2v.declarations import flag_of
from dcme_w2v.errors import UsageError

# Switch -> its values, each with the option that it sets.
SWITCHES: dict[str, dict[str, tuple[str, Any] | None]] = {
    "cbow": {"0": ("model", "skipgram"), "1": ("model", "cbow")},
    "binary": {"0": ("format", "text"), "1": ("format", "binary")},
    "hs": {"0": None, "1": ("objective", "hs")},
    "debug": {"0": ("quiet", True), "1": None, "2": None},
}


def switches(names: set[str | None]) -> list[click.Parameter]:
    """Return the hidden options of a command that has these options."""
    found = ["train"]
    for switch, values in SWITCHES.items():
        found += [switch] if {one[0] for one in values.values() if one} <= names else []
    return [click.Option([f"-{one}", f"word2vec_{one}"], hidden=True) for one in found]


def set_switched(ctx: click.Context) -> None:
    """Replace the switches of word2vec.c by the options that they mean.

    Raises
    ------
    UsageError
        A switch has another value, or an option that is given contradicts it.
    """
    for switch, meanings in SWITCHES.items():
        value = ctx.params.pop(f"word2vec_{switch}", None)
        if value is None or (switch == "binary" and ctx.params.get("classes")):
            continue  # classes are text, in word2vec.c, too
        if value not in meanings:
            raise UsageError(f"-{switch} {value}: must be {' or '.join(meanings)}")
        if (meant := meanings[value]) is not None:
            _set(ctx, f"-{switch} {value}", *meant)
    if ctx.params.get("objective") == "hs" and ctx.params["negative"] == 0:
        ctx.params["negative"] = None
        ctx.set_parameter_source("negative", ParameterSource.DEFAULT)
    if (corpus := ctx.params.pop("word2vec_train", None)) is not None:
        ctx.params["corpus"] = (corpus, *ctx.params["corpus"])
        if "preset" in ctx.params and ctx.params["preset"] is None:
            _set(ctx, "-train", "preset", "word2vec")


def _set(ctx: click.Context, given: str, name: str, value: Any) -> None:
    is_given = ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    if is_given and ctx.params[name] != value:
        raise UsageError(f"{given} and {flag_of(name)}={ctx.params[name]} disagree; give one")
    ctx.params[name] = value
    ctx.set_parameter_source(name, ParameterSource.COMMANDLINE)
