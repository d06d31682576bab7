"""What each level of containment stops: one table for the probes of `hostile.py` and for the documentation.

`no` means that the attempt fails, `yes` that it gets through; `as root`, that it may where the server runs as
root, and fails elsewhere; `without cgroups`, that it may where the server cannot make these; `perhaps`, that
the machine decides.
"""

from typing import Final, NamedTuple

LEVELS: Final = ("auto", "full", "off")
BARE: Final = "without cgroups"


class Escape(NamedTuple):
    """One attempt, and whether it gets through at each level."""

    probe: str
    about: str
    auto: str
    full: str
    off: str

    def through(self, level: str, *, root: bool, groups: bool) -> bool | None:
        """None where this cannot be foretold."""
        word = str(getattr(self, level))
        known = {"no": False, "yes": True, "perhaps": None}
        known |= {"as root": None if root else False, BARE: False if groups else None}
        return known[word]


GROUPS: Final[dict[str, tuple[Escape, ...]]] = {
    "The data folder and other sessions": (
        Escape("read_database", "read the database", "no", "no", "yes"),
        Escape("write_database", "open the database for writing", "no", "no", "yes"),
        Escape("read_token", "read the token file of `local`", "no", "no", "yes"),
        Escape("list_data_folder", "list the data folder", "no", "no", "yes"),
        Escape("write_data_folder", "put a file into the data folder", "no", "no", "yes"),
        Escape("read_other_home", "read another session's home", "no", "no", "yes"),
        Escape("delete_other_home", "delete in another session's home", "no", "no", "yes"),
        Escape("read_other_workspace", "read another session's workspace of ours", "no", "no", "yes"),
        Escape("read_other_copies", "read the copies of homes", "no", "no", "yes"),
        Escape("read_uploads", "list the uploads of others", "no", "no", "yes"),
        Escape("symlink_to_database", "reach the database through a link in its home", "no", "no", "yes"),
        Escape("hardlink_to_token", "make a hard link to a token file", "no", "no", "yes"),
        Escape("through_the_root_of_process_1", "go through `/proc/1/root`", "no", "no", "as root"),
        Escape("through_the_servers_root", "go through the server's `/proc/…/root`", "no", "no", "as root"),
        Escape("inherited_descriptors", "use a descriptor that the server left open", "no", "no", "no"),
        Escape(
            "descriptors_of_others", "walk up from a folder that another holds open", "no", "no", "as root"
        ),
        Escape("client_reads_a_token", "have us read a token file (`fs/read_text_file`)", "no", "no", "no"),
        Escape("client_reads_a_link", "have us follow a link out of the workspace", "no", "no", "no"),
        Escape("client_writes_outside", "have us write outside the workspace", "no", "no", "no"),
    ),
    "The walls themselves": (
        Escape("unmount", "unmount the empty folder over the data", "no", "no", "yes"),
        Escape("own_user_namespace", "the same in a user namespace of its own", "no", "no", "yes"),
        Escape("bind_mount", "mount something", "no", "no", "as root"),
        Escape("file_by_handle", "open files by handle, past all paths", "no", "no", "as root"),
        Escape("make_a_device", "make a device file", "no", "no", "as root"),
        Escape("read_the_disk", "read the disk itself", "no", "no", "as root"),
        Escape("powers_of_root", "have a power that undoes the above", "no", "no", "as root"),
    ),
    "The server and other agents as processes": (
        Escape("see_the_server", "see the server's process", "no", "no", "yes"),
        Escape("servers_environment", "read the server's environment", "no", "no", "as root"),
        Escape("servers_memory", "read the server's memory", "no", "no", "as root"),
        Escape("servers_descriptors", "list the server's open files", "no", "no", "as root"),
        Escape("steal_a_descriptor", "take an open file from the server", "no", "no", "as root"),
        Escape("trace_the_server", "trace the server (ptrace)", "no", "no", "as root"),
        Escape("signal_the_server", "send the server a signal", "no", "no", "yes"),
        Escape("signal_another_agent", "send another session's agent a signal", "no", "no", "yes"),
        Escape("another_agents_environment", "read another agent's environment", "no", "no", "yes"),
        Escape("another_agents_memory", "read another agent's memory", "no", "no", "perhaps"),
        Escape("trace_another_agent", "trace another agent (ptrace)", "no", "no", "perhaps"),
    ),
    "Ports and sockets": (
        Escape("control_port", "use the server's port without a token", "no", "no", "no"),
        Escape("control_port_of_pages", "use `/api/…` without a token", "no", "no", "no"),
        Escape("operator_routes", "use the operator's routes without a token", "no", "no", "no"),
        Escape("loopback_network", "connect to other programs on loopback", "yes", "yes", "yes"),
        Escape("abstract_socket", "connect to abstract sockets of the machine", "yes", "yes", "yes"),
        Escape("socket_in_tmp", "connect to a socket in `/tmp`", "yes", "no", "yes"),
    ),
    "The rest of the machine": (
        Escape("read_the_users_files", "read files of the server's user elsewhere", "yes", "yes", "yes"),
        Escape("write_the_users_files", "write files of the server's user elsewhere", "yes", "no", "yes"),
        Escape("write_the_system", "write in `/etc`", "as root", "no", "as root"),
        Escape("type_into_the_terminal", "type into the operator's terminal", "no", "no", "no"),
    ),
    "Resources": (
        Escape("more_files_than_allowed", "raise its limit of open files", "no", "no", "as root"),
        Escape("hide_from_the_memory_killer", "hide from the kernel's memory killer", "no", "no", "as root"),
        Escape("core_file", "leave a core file", "no", "no", "no"),
        Escape("many_processes", "start processes without end", BARE, BARE, BARE),
        Escape(
            "many_processes_in_terminals", "the same in commands that it has the server run", BARE, BARE, BARE
        ),
        Escape("much_memory", "take memory without end", BARE, BARE, BARE),
        Escape("leave_its_group", "leave the group that bounds both", "no", "no", "perhaps"),
        Escape("raise_its_limit", "raise the limits of that group", "no", "no", "perhaps"),
        Escape("raise_it_in_namespaces", "the same in namespaces of its own", "no", "no", "no"),
        Escape("fill_the_disk", "make a file of any size", "yes", "yes", "yes"),
    ),
    "Outliving its session": (
        Escape("survive_in_a_new_session", "a child in a session of its own (setsid)", "no", "no", "no"),
        Escape("survive_a_double_fork", "a child forked twice", "no", "no", "no"),
        Escape("survive_without_the_tag", "such a child without its environment", "no", "no", "no"),
        Escape("survive_a_crowd", "two hundred of them", "no", "no", "no"),
        Escape("survive_by_killing_the_parent", "kill what watches it, and stay", "no", "no", "no"),
    ),
}


def document() -> str:
    """The table as it stands in docs/explain/containment.md."""
    lines = []
    for title, rows in GROUPS.items():
        lines += [f"| {title} | `auto` | `full` | `off` |", "|---|---|---|---|"]
        lines += [f"| {row.about} | {row.auto} | {row.full} | {row.off} |" for row in rows]
        lines.append("")
    return "\n".join(lines)
