"""May a commit's Python be laid over the installed engine? Only if the binaries are the same."""

from __future__ import annotations

from capdoctor.bisection.history.gitcall import git_or_none
from capdoctor.bisection.history.layout import Layout, layout_of
from capdoctor.bisection.history.mirror import Mirror
from capdoctor.bisection.history.tree_keys import tree_key
from capdoctor.model import EngineSpec

NONE = "none"


def overlay_verdict(
    mirror: Mirror, sha: str, spec: EngineSpec, installed_commit: str | None = None
) -> str | None:
    """Return why the commit cannot run over the installed engine, None if it can.

    ``installed_commit`` is what the installed binaries were built from; by default what the
    package says itself.
    """
    layout = layout_of(mirror, sha)
    if layout is None:
        return "the commit holds no package that could be laid over the installed one"
    wanted = native_key(mirror, sha, layout, host_only=True)
    if wanted == NONE:
        return None  # a repository of Python alone: nothing could have been built from it
    built_from, version = (installed_commit, None) if installed_commit else _installed(spec)
    base = built_commit(mirror, built_from, version)
    if base is None:
        return (
            f"the installed engine was built from {built_from or 'an unknown commit'}, which the "
            "repository does not have: its native sources cannot be compared"
        )
    on_cpu = spec.device == "cpu" and version is not None and "+cpu" in version
    keys = [native_key(mirror, commit, layout, host_only=on_cpu) for commit in (sha, base)]
    if keys[0] == keys[1]:
        return None
    return f"its native sources differ from those of the installed engine ({base[:12]})"


def native_key(mirror: Mirror, sha: str, layout: Layout, *, host_only: bool) -> str:
    """Return the key of the native sources; those for a CPU alone count only if asked for."""
    return tree_key(mirror, sha, layout.native, () if host_only else layout.host_only)


def built_commit(mirror: Mirror, commit: str | None, version: str | None) -> str | None:
    """Return the full id of what was built: the commit, else the tag of the version."""
    names = [commit.removeprefix("g")] if commit else []
    names += [f"refs/tags/v{version.partition('+')[0]}"] if version else []
    for name in names:
        found = git_or_none(mirror.folder, "rev-parse", "--verify", "-q", f"{name}^{{commit}}")
        if found:
            return found.strip()
    return None


def _installed(spec: EngineSpec) -> tuple[str | None, str | None]:
    from capdoctor.engines.pythons import find_python

    target = find_python(spec.python)
    return (target.vllm.commit, target.vllm.version) if target.vllm else (None, None)
