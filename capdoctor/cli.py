"""The Typer app, its lazily loaded commands, and the one error boundary.

A command's module is imported only when that command runs: ``capdoctor --help`` stays fast.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import shlex
import signal
import sys
import threading
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from capdoctor.errors import CapdoctorError

# verb -> (module in capdoctor.commands, the line that --help shows for it)
VERBS: dict[str, tuple[str, str]] = {
    "repro": ("repro", "Start an engine with made-up weights, watch it, say what happened."),
    "classify": ("classify", "Name the root cause of a crash out of its log."),
    "bisect": ("bisect", "Find the commit that introduced a crash."),
    "apply-fix": ("apply_fix", "Put a bundled fix into an installed package or a checkout."),
    "check": ("check", "Find stream-capture bugs without a GPU."),
}
ALIASES = {"apply": "apply-fix"}
FAULT_EXIT_CODE = 4
CANNOT_DO = 3
INTERRUPTED = 130
BROKEN_PIPE = 141  # 128 + SIGPIPE, as a shell reports a command that had no reader
GIT_STOPS = 128
COLLECT_AFTER = 100_000
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class LazyGroup(TyperGroup):
    """List every verb from the table above; import a verb's module only to run it."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Give the verbs in the order of the table, aliases left out."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Give the loaded command, or a stand-in with its help line while --help is drawn."""
        if cmd_name in self.commands or cmd_name not in VERBS:
            return super().get_command(ctx, cmd_name)
        return TyperCommand(cmd_name, help=VERBS[cmd_name][1])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that is about to run."""
        if args and args[0] in ALIASES:
            args = [ALIASES[args[0]], *args[1:]]
        if args and args[0] in VERBS:
            self.commands[args[0]] = _load(args[0])
        else:
            self._offer_all_verbs()
        return super().resolve_command(ctx, args)

    def _offer_all_verbs(self) -> None:
        for verb, (_, line) in VERBS.items():
            self.commands.setdefault(verb, TyperCommand(verb, help=line))


def _load(verb: str) -> Any:
    """Import the verb's module and turn its ``app`` into a command."""
    from importlib import import_module

    module = import_module(f"capdoctor.commands.{VERBS[verb][0]}")
    command = typer.main.get_command(module.app)
    command.name = verb
    return command


def _version(value: bool) -> None:
    if value:
        from capdoctor import __version__

        sys.stdout.write(f"capdoctor {__version__}\n")
        raise typer.Exit


app = typer.Typer(
    cls=LazyGroup,
    name="capdoctor",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Rich's help costs a second start-up's worth of imports: only where someone looks at it.
    rich_markup_mode="rich" if sys.stdout is not None and sys.stdout.isatty() else None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def capdoctor(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Reproduce, name, bisect and repair the start-up crashes of inference engines."""
    del version


def main() -> NoReturn:
    """Run the command line and leave with the exit code of the contract."""
    # Start-up makes many objects that live to the end: searching them for garbage costs a tenth.
    gc.set_threshold(COLLECT_AFTER, 20, 20)
    _prepare_streams()
    try:
        code = _guarded()
    except KeyboardInterrupt:  # one more while another end was being told
        code = INTERRUPTED
    _leave(code)


def _guarded() -> int:
    try:
        code = _run()
        sys.stdout.flush()
    except CapdoctorError as error:
        _show(error.sentence, error.hint)
        return error.exit_code
    except KeyboardInterrupt:
        _show("interrupted", "")
        return INTERRUPTED
    except OSError as error:
        return _of_system_error(error)
    except Exception as fault:  # noqa: BLE001 - the one boundary: what nobody foresaw is our bug
        return _fault(fault)
    return code


def _prepare_streams() -> None:
    """Open what the caller closed, and have no character that the locale lacks end a command.

    A standard stream that is closed leaves its number to the next file or pipe, which then gets
    what was meant for the stream.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # noqa: PLR2004 - stdin, stdout, stderr
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run() -> int:
    before = sys.stdout
    try:
        app(prog_name="capdoctor")
    except SystemExit as leaving:
        if sys.stdout is not before:  # Typer puts a mute one there when its reader went away
            return BROKEN_PIPE
        code = leaving.code if isinstance(leaving.code, int) else 0
        if code == INTERRUPTED:  # Typer's own, for Ctrl-C before a command took it over
            _show("interrupted", shlex.join(["capdoctor", *sys.argv[1:]]))
        return code
    return 0


def _of_system_error(error: OSError) -> int:
    """Say what a system error means that no command expected: most are one of stdout's."""
    if isinstance(error, BrokenPipeError):
        _give_stdout_up()  # the reader went away: nobody is left to tell
        return BROKEN_PIPE
    if error.errno not in _NO_ROOM:
        return _fault(error)
    _give_stdout_up()
    _show(f"the answer cannot be written: {error.strerror}", "free some space, or write elsewhere")
    return CANNOT_DO


def _give_stdout_up() -> None:
    """Send what is still buffered nowhere, lest the interpreter complains while it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _fault(fault: Exception) -> int:
    from capdoctor.report.fault import write_fault_report

    path = write_fault_report(fault, sys.argv[1:])
    _show(f"capdoctor itself failed: {type(fault).__name__}", f"please report it with {path}")
    return FAULT_EXIT_CODE


def _show(sentence: str, hint: str) -> None:
    from capdoctor.report.safe_text import printable

    text = f"capdoctor: {printable(sentence)}\n" + (f"hint: {printable(hint)}\n" if hint else "")
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        return  # there is nowhere else to say it; the exit code does


def _leave(code: int) -> NoReturn:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the answer is given, its code stands
    # A KeyboardInterrupt that passed through exec() of a text, as dataclasses do, makes CPython end
    # by SIGINT however it was handled since; the next exec() of a text takes that back.
    exec("")  # noqa: S102
    sys.exit(_for_git(code) if sys.argv[1:2] == ["bisect"] and "probe" in sys.argv else code)


def _for_git(code: int) -> int:
    """Give a code that ``git bisect run`` cannot mistake: it reads 2, 3 and 4 as "bad"."""
    return code if code in (0, 1, 125) or code >= GIT_STOPS else GIT_STOPS + code
