"""What core asks of a store that several nodes may share: who lives, who does what, and what is wished."""

from collections.abc import Callable
from typing import Protocol

from clawdforge.core.models.nodes import CodeRow, NodeRow, WishRow
from clawdforge.wire.base import Json, Micros


class LeaseView(Protocol):
    """For one app."""

    def is_alive(self, node: str) -> bool:
        """Whether a node was not declared dead. One that nobody knows is dead too."""
        ...

    def node_with(self, folder: str) -> str | None:
        """The node that has a data folder, if it lives and begins turns."""
        ...

    def folder_of(self, node: str) -> str | None:
        """The data folder of a node."""
        ...


class LeaseTx(LeaseView, Protocol):
    def add_wish(self, row: WishRow) -> None: ...


class NodeView(Protocol):
    """For everybody."""

    def nodes(self) -> list[NodeRow]:
        """Those that live, and dead ones that nobody has cleared away, the first to start first."""
        ...

    def cut_off_sessions(self) -> list[tuple[str, str]]:
        """(app, session_id) of every session with a turn that is running or waiting at no living node."""
        ...

    def held_sessions(self, node: str) -> list[tuple[str, str]]:
        """(app, session_id) of the sessions that a node holds and in which no turn runs or waits."""
        ...

    def sessions_to_leave(self, node: str) -> list[tuple[str, str]]:
        """(app, session_id) of the sessions that a node holds and in which no turn runs; some may wait."""
        ...

    def has_other_folders(self, folder: str) -> bool:
        """Whether nodes that live, or sessions, have another data folder than this."""
        ...

    def sessions_to_run(self, node: str) -> list[tuple[str, str]]:
        """(app, session_id) of those with queued turns that this node is to run, or has to leave to another.

        None that another holds or has the workspace of, and none that is paused.
        """
        ...

    def held_counts(self) -> dict[str, int]:
        """How many sessions each node holds."""
        ...

    def running_counts(self) -> dict[str, int]:
        """How many turns run at each node, or wait there for a permission."""
        ...

    def who_does(self, duty: str) -> str | None:
        """The node that has a duty, living or not."""
        ...

    def has_wishes(self, node: str) -> bool: ...
    def login_code(self, digest: bytes) -> CodeRow | None: ...
    def login_codes_of(self, token_id: str) -> list[bytes]:
        """The hashes of codes that a token has made, the oldest first."""
        ...


class NodeTx(NodeView, Protocol):
    def add_node(self, row: NodeRow) -> None:
        """A server that starts. Whoever had the same data folder before is dead."""
        ...

    def beat(self, node: str, tells: Json | None = None) -> bool:
        """Tell that a node lives, and what it tells of itself. False when it was declared dead."""
        ...

    def declare_dead(self, node: str, beat: int) -> bool:
        """Unless it has beaten since. Whether it was this call that did so."""
        ...

    def drain(self, node: str, *, is_over: bool = False) -> bool:
        """Have a node begin no more turns; when it `is_over`, it does again. False when it does not live."""
        ...

    def remove_node(self, node: str) -> None:
        """It has ended, or is dead and holds nothing."""
        ...

    def take_duty(self, name: str, node: str) -> bool:
        """Have a duty that no other living node has. Whether it is this node's now."""
        ...

    def add_wish(self, row: WishRow) -> None:
        """Also about a session that is gone, or none."""
        ...

    def take_wishes(self, node: str) -> list[WishRow]:
        """What a node is wished to do, in the order of the wishes. They are gone then."""
        ...

    def add_login_code(self, row: CodeRow) -> None: ...
    def take_login_code(self, digest: bytes) -> CodeRow | None:
        """It is gone then."""
        ...

    def forget_login_codes(self, before: Micros) -> None:
        """Those whose time was over then."""
        ...


class Peers(Protocol):
    """The other nodes. What is told is a hint: it may be lost, and whoever needs it looks again by itself."""

    def tell(self, node: str, app: str, session_id: str) -> None:
        """Something is to be done for a session: a turn waits in it, or somebody has a wish. Without a
        session, somebody has a wish."""
        ...

    def listen(self, listener: Callable[[str, str], None]) -> None:
        """Called in the event loop with the app and the session that this node was told of."""
        ...

    def announce(self, word: str) -> None:
        """Tell all of them a word, such as the name of a token that counts no longer."""
        ...

    def heed(self, listener: Callable[[str], None]) -> None:
        """Called in the event loop with words that other nodes have announced; with an empty one when some
        may have been lost."""
        ...

    def look_everywhere(self) -> None:
        """Tell this node's own listeners that somebody may have committed something without saying so."""
        ...

    def start(self, node: str) -> None:
        """From here on, this node has this name."""
        ...
