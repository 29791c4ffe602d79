"""The few errors that reach a person.

Each front end catches `StudioError` once and shows its message and hint as one line each; nothing else may leave a
public function of the core on account of what a file holds. What is wrong inside a file is a `Problem` value
(`studio.model`), not an exception.

    StudioError
    ├── OpenError    the location cannot be opened (exit code 3)
    ├── RefError     no such thread, checkpoint or path (exit code 3; 2 when a choice is missing)
    ├── UsageError   arguments that contradict each other or are incomplete (exit code 2)
    ├── PatchError   an edit that cannot be applied, a fork that is refused (exit code 1)
    └── RunError     the graph cannot be found, loaded or run (exit code 1)
"""

from __future__ import annotations


class StudioError(Exception):
    """What went wrong, in one line, and what to do next.

    `message` and `hint` are plain text that may quote stored text: a front end passes both through the output gate.
    `slug` names the kind of error for scripts and documentation. `candidates` lists the choices of an ambiguous name.
    """

    exit_code = 1
    default_slug = "error"

    def __init__(
        self, message: str, hint: str = "", slug: str = "", *, candidates: tuple[str, ...] = (), exit_code: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.slug = slug or self.default_slug
        self.candidates = candidates
        if exit_code is not None:
            self.exit_code = exit_code


class OpenError(StudioError):
    """The location is missing, not readable, not a database, or holds no checkpoint tables."""

    exit_code = 3
    default_slug = "cannot-open"


class RefError(StudioError):
    """A thread, checkpoint, namespace or path that is not there, or a name that fits several."""

    exit_code = 3
    default_slug = "no-such-ref"


class UsageError(StudioError):
    """Arguments that contradict each other, or a choice that only the user can make."""

    exit_code = 2
    default_slug = "usage"


class PatchError(StudioError):
    """An edit that does not fit the stored value, or a fork that would be wrong and is refused."""

    default_slug = "fork-refused"


class RunError(StudioError):
    """The user's graph cannot be found, loaded, or run."""

    default_slug = "cannot-run"
