"""A private bare repository that borrows the objects of the user's.

Everything that git may write (worktrees, lazily fetched objects, reverted commits) is written
here. The user's checkout, index, refs, stash and object store stay as they are: ``git worktree``
and lazy fetches of a partial clone would otherwise write into their ``.git``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from capdoctor.bisection.history.gitcall import GitFailed, git, git_or_none
from capdoctor.bisection.journal.disk import writing
from capdoctor.errors import CannotDo

ATTRIBUTES = "".join(
    [
        "*.py diff=python\n",
        *(f"*.{end} diff=cpp\n" for end in ("cu", "cuh", "cpp", "cc", "h", "hip")),
    ]
)


@dataclass(frozen=True, slots=True)
class Mirror:
    """``folder`` is the private repository, ``source`` the user's, ``common`` its git directory.

    ``shallow`` are the commits at which a shallow clone ends; ``partial`` says that blobs may be
    missing and are fetched when needed.
    """

    folder: Path
    source: Path
    common: Path
    shallow: frozenset[str] = frozenset()
    partial: bool = False


def open_mirror(source: Path, folder: Path) -> Mirror:
    """Return the private repository for ``source``, made in ``folder`` unless it is there.

    Raises:
        CannotDo: ``source`` is no git repository, or has no commit.
    """
    objects, common = _locate(source)
    if not (folder / "capdoctor-complete").exists():
        with writing(folder):
            _make(source, folder, objects, common)
    partial = git_or_none(folder, "config", "remote.origin.promisor") is not None
    return Mirror(folder, source, common, _shallow(common), partial)


def _locate(source: Path) -> tuple[Path, Path]:
    import git as gitpython

    try:
        repository = gitpython.Repo(source, search_parent_directories=True, expand_vars=False)
    except (gitpython.InvalidGitRepositoryError, gitpython.NoSuchPathError) as error:
        raise CannotDo(
            f"{source} is not in a git repository",
            "give --repo the folder of a clone, or vllm or aiter",
        ) from error
    with repository:
        common = Path(repository.common_dir).resolve()
    return common / "objects", common


def _make(source: Path, folder: Path, objects: Path, common: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kind = git(source, "rev-parse", "--show-object-format").strip()
    git(folder, "init", "--quiet", "--bare", "--template=", f"--object-format={kind}")
    (folder / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (folder / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    # Hunk headers then name the function, which the prior reads.
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info" / "attributes").write_text(ATTRIBUTES)
    if (common / "shallow").exists():
        (folder / "shallow").write_bytes((common / "shallow").read_bytes())
    _copy_promise(source, folder)
    _copy_refs(source, folder)
    (folder / "capdoctor-complete").touch()


def _copy_promise(source: Path, folder: Path) -> None:
    """Let the private repository fetch what a partial clone lacks, into its own store."""
    listed = git_or_none(source, "config", "--get-regexp", r"^remote\..*\.promisor$") or ""
    for line in listed.splitlines():
        name = line.split()[0].removeprefix("remote.").removesuffix(".promisor")
        url = git(source, "config", f"remote.{name}.url").strip()
        wanted = git_or_none(source, "config", f"remote.{name}.partialclonefilter")
        for key, value in (
            ("core.repositoryFormatVersion", "1"),
            ("extensions.partialClone", "origin"),
            ("remote.origin.url", _absolute(source, url)),
            ("remote.origin.promisor", "true"),
            ("remote.origin.partialclonefilter", (wanted or "blob:none").strip()),
        ):
            git(folder, "config", key, value)
        return


def _absolute(source: Path, url: str) -> str:
    inside = source / url
    return str(inside.resolve()) if "://" not in url and inside.exists() else url


def _copy_refs(source: Path, folder: Path) -> None:
    refs = git(source, "for-each-ref", "--format=%(objectname) %(refname)")
    (folder / "packed-refs").write_text(refs)
    try:
        head = git(source, "rev-parse", "--verify", "HEAD^{commit}").strip()
    except GitFailed as error:
        if not refs:
            raise CannotDo(f"{source} has no commit yet") from error
        return
    (folder / "HEAD").write_text(head + "\n")


def _shallow(common: Path) -> frozenset[str]:
    path = common / "shallow"
    return frozenset(path.read_text().split()) if path.exists() else frozenset()
