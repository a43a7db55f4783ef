"""The program's entry point, which runs a command and reports errors in one line."""

import functools
import importlib
import operator
import sys
import warnings
from collections.abc import Callable
from typing import Any

import click

from dcme_w2v import __version__
from dcme_w2v.errors import DcmeError, DcmeWarning, UsageError, in_shell_terms, without_secrets
from dcme_w2v.files.opening import is_address
from dcme_w2v.hints import option_hint

from .command import Group, shown_name
from .options import flag
from .signals import end_on_signals, number_of, raise_on_signals
from .streams import drop_output, prepare_streams

# Maps each command to its module, which is imported only when the command is used.
COMMANDS = {
    "train": "train",
    "vocab": "corpus",
    "phrases": "corpus",
    "eval": "evaluate",
    "neighbors": "neighbors",
    "compare": "compare",
    "predict-word": "predictions",
    "classes": "vectors",
    "convert": "vectors",
    "check": "vectors",
    "info": "vectors",
    "plot": "vectors",
    "search": "search",
    "encode": "encode",
    "explore": "vectors",
    "classify": "classify",
    "fuse": "fuse",
    "scdv": "scdv",
    "transform": "transform",
    "latent": "latent",
    "demo": "machine",
    "doctor": "machine",
}


class LazyGroup(Group):
    """A command group that imports each command on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or return None if no command has this name."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"dcme_w2v.cli.{COMMANDS[cmd_name]}")
        commands = (one for one in vars(module).values() if isinstance(one, click.Command))
        return next(one for one in commands if one.name == cmd_name)


TO_TRY = """\b
Three commands to try:
  dcme-w2v demo
  dcme-w2v train corpus.txt --output vectors.bin
  dcme-w2v neighbors vectors.bin king paris"""


SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "token_normalize_func": operator.methodcaller("replace", "_", "-"),
}


@click.group(cls=LazyGroup, epilog=TO_TRY, context_settings=SETTINGS)
@click.version_option(__version__, "--version", "-V", prog_name="dcme-w2v")
@flag("--debug", "if an error occurs, print the Python traceback", name="traceback_wanted")
def program(traceback_wanted: bool) -> None:
    """Word vectors, document vectors, and text classification with many classes.

    Results are written to stdout; progress and errors are written to stderr.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the program and exit with 0 (success), 1 (failure), 2 (usage error) or 128 + signal."""
    arguments = sys.argv[1:] if arguments is None else arguments
    prepare_streams()
    try:
        code = run(arguments, raise_on_signals)
    except KeyboardInterrupt as error:  # a signal arrived after the command had ended
        code = _report(error, "interrupted", 128 + number_of(error), arguments)
    end_on_signals()
    if code:  # suppress further output errors, because the exit code already reports a failure
        drop_output()
    sys.exit(code)


def run(arguments: list[str], prepare: Callable[[], None] | None = None) -> int:
    """Call `prepare`, run the command line, and return the exit code."""
    try:
        try:  # this call exits the process if a shell requests completions
            program._main_shell_completion({}, "dcme-w2v")
        except (LookupError, ValueError):
            said = "shell completion: COMP_WORDS or COMP_CWORD is not valid; let the shell set them"
            raise UsageError(said) from None
        with warnings.catch_warnings():
            warnings.showwarning = functools.partial(_show, warnings.showwarning)
            warnings.simplefilter("always", DcmeWarning)
            with program.make_context("dcme-w2v", [*arguments], obj=prepare) as context:
                program.invoke(context)
        return 0
    except click.ClickException as error:
        return _report(error, _in_one_line(error, arguments), error.exit_code, arguments)
    except DcmeError as error:
        return _report(error, in_shell_terms(error.message), error.exit_code, arguments)
    except click.exceptions.Exit as end:
        return end.exit_code
    except KeyboardInterrupt as error:
        return _report(error, "interrupted", 128 + number_of(error), arguments)
    except BrokenPipeError:  # not a failure: a reader such as `head` closed the pipe
        drop_output()
        return 0
    except OSError as error:
        return _report(error, _of_system(error), 1, arguments)
    except MemoryError as error:
        text = f"out of memory ({error})" if str(error) else "out of memory"
        return _report(error, f"{text}; lower --dim or --features, or use less text", 1, arguments)
    except UnicodeEncodeError as error:
        text = error.object[error.start : error.end]
        message = f"standard output: {error.encoding} cannot represent {text!a}"
        return _report(error, f"{message}; set PYTHONIOENCODING=utf-8", 1, arguments)
    except Exception as error:
        text = f"{type(error).__name__}: {error}; this is a bug; please report what --debug prints"
        if "can't start new thread" in text or "failed to map segment" in text:
            text = f"{error}; lower --threads, or raise the limits of memory and threads (ulimit)"
        return _report(error, text, 1, arguments)


def _show(others: Callable[..., None], message: Warning | str, *more: Any, **named: Any) -> None:
    """Print a warning from this package on one line."""
    if isinstance(message, DcmeWarning):
        click.echo(f"warning: {in_shell_terms(message.message)}", err=True)
    else:
        others(message, *more, **named)


def _in_one_line(error: click.ClickException, arguments: list[str]) -> str:
    """Rewrite a click error message about an option or argument in the style of this program."""
    if isinstance(error, click.NoSuchOption) and error.ctx:
        name = error.option_name  # for the option -sizee, click reports only -s
        name = next((one for one in arguments if one.startswith(name)), name).partition("=")[0]
        params = error.ctx.command.get_params(error.ctx)
        known = [flag for one in params for flag in (*one.opts, *one.secondary_opts)]
        said = in_shell_terms(option_hint(name, known)) or _see(error.ctx)
        return f"unknown option {name}{said}"
    if not isinstance(error, click.BadParameter) or error.param is None:
        return error.format_message()
    name = shown_name(error.param)
    if isinstance(error, click.MissingParameter):
        return f"no {name} is given{_see(error.ctx) if error.ctx else ''}"
    return f"{name}: {error.message}"


def _see(ctx: click.Context) -> str:
    return f"; see {ctx.command_path} --help"


def _of_system(error: OSError) -> str:
    """Convert an OSError about a file to an error message that says what to do."""
    text = f"{error.filename}: " if error.filename else ""
    if isinstance(error, IsADirectoryError):
        return f"{error.filename or 'a file'} is a folder; use a file"
    if not isinstance(error, FileNotFoundError):
        return f"{text}{error.strerror or error}"
    if is_address(text.replace("\\", "/").replace(":/", "://", 1)):
        return f"{text}only text can be read from URLs; download the file first"
    return f"{text}there is no such file or folder; check the name and the order of the arguments"


def _report(error: BaseException, message: str, code: int, arguments: list[str]) -> int:
    if "--debug" in arguments[:1]:
        import traceback

        traceback.print_exception(error)
    click.echo(f"error: {without_secrets(' '.join(message.split()))}", err=True)
    return code
