"""What each level of containment stops: one table for the probes of `hostile.py` and for the documentation.

`no` means that the attempt fails, `yes` that it gets through; `as root`, that it may where the server runs as
root, and fails elsewhere; `without cgroups`, that it may where the server cannot make these; `before Linux
6.12`, that it may where Landlock has no scopes; `perhaps`, that the machine decides.

A probe that cannot succeed anywhere shows nothing. So each has a twin: the same code where its wall is off.
It gets through there, or the row says in words why there is no such place.
"""

from typing import Final, NamedTuple

LEVELS: Final = ("auto", "full", "off")
BARE: Final = "without cgroups"
OLD: Final = "before Linux 6.12"

OFF: Final = "at `off`"
OWN: Final = "where the same request leads to files of its own"
PLAIN: Final = "as a program that the operator runs"
LESS: Final = "with less of it, below the limit"
TOKEN: Final = "with a token, as a program that the operator runs"
TWINS: Final = (OFF, OWN, PLAIN, LESS, TOKEN)


class Escape(NamedTuple):
    """One attempt, and whether it gets through at each level."""

    probe: str
    about: str
    auto: str
    full: str
    off: str
    twin: str = OFF

    def through(self, level: str, *, root: bool, groups: bool, scopes: bool) -> bool | None:
        """None where this cannot be foretold."""
        word = str(getattr(self, level))
        known = {"no": False, "yes": True, "perhaps": None}
        known |= {"as root": None if root else False, BARE: False if groups else None}
        known[OLD] = False if scopes else None
        return known[word]


GROUPS: Final[dict[str, tuple[Escape, ...]]] = {
    "The data folder and other sessions": (
        Escape("read_database", "read the database", "no", "no", "yes"),
        Escape("write_database", "open the database for writing", "no", "no", "yes"),
        Escape("look_at_the_database", "see that it is there, and its size", "no", "no", "yes"),
        Escape("read_token", "read the token file of `local`", "no", "no", "yes"),
        Escape("read_the_lock", "read the server's lock file", "no", "no", "yes"),
        Escape("list_data_folder", "list the data folder", "no", "no", "yes"),
        Escape("watch_the_data_folder", "watch it for changes (inotify)", "no", "no", "yes"),
        Escape("write_data_folder", "put a file into the data folder", "no", "no", "yes"),
        Escape("socket_in_the_data_folder", "a socket", "no", "no", "yes"),
        Escape("pipe_in_the_data_folder", "a named pipe", "no", "no", "yes"),
        Escape("read_other_home", "read another session's home", "no", "no", "yes"),
        Escape("delete_other_home", "delete in another session's home", "no", "no", "yes"),
        Escape("move_anothers_file", "move a file out of it", "no", "no", "yes"),
        Escape("swap_files_with_another", "exchange a file in it for one of its own", "no", "no", "yes"),
        Escape("swap_anothers_home_for_a_link", "put a link in the place of a folder", "no", "no", "yes"),
        Escape("shorten_anothers_file", "shorten a file in it", "no", "no", "yes"),
        Escape("change_the_mode_of_anothers_file", "change its mode", "no", "no", "yes"),
        Escape("change_the_times_of_anothers_file", "change its times", "no", "no", "yes"),
        Escape("hardlink_to_anothers_file", "make a hard link to it", "no", "no", "yes"),
        Escape("read_other_workspace", "read another session's workspace of ours", "no", "no", "yes"),
        Escape("read_other_copies", "read the copies of homes", "no", "no", "yes"),
        Escape("read_snapshots_of_others", "list the snapshots of workspaces", "no", "no", "yes"),
        Escape("read_uploads", "list the uploads of others", "no", "no", "yes"),
    ),
    "Other ways to the same files": (
        Escape("symlink_to_database", "a link in its home", "no", "no", "yes"),
        Escape("through_a_chain_of_links", "a chain of links", "no", "no", "yes"),
        Escape("through_a_linked_folder", "a link to the folder", "no", "no", "yes"),
        Escape("hardlink_to_token", "a hard link to a token file", "no", "no", "yes"),
        Escape("up_from_the_workspace", "`..` from the workspace", "no", "no", "yes"),
        Escape("up_from_the_home", "`..` from the home", "no", "no", "yes"),
        Escape("up_from_its_tmp", "`..` from `$TMPDIR`", "no", "no", "yes"),
        Escape("from_a_descriptor_of_the_root", "a descriptor of `/`", "no", "no", "yes"),
        Escape("through_its_own_root", "`/proc/self/root`", "no", "no", "yes"),
        Escape("through_its_working_folder", "`/proc/self/cwd`", "no", "no", "yes"),
        Escape("through_a_thread", "the same of a thread", "no", "no", "yes"),
        Escape("through_the_root_of_process_1", "`/proc/1/root`", "no", "no", "as root"),
        Escape("through_the_servers_root", "the server's `/proc/…/root`", "no", "no", "as root"),
        Escape("inherited_descriptors", "a descriptor that the server left open", "no", "no", "no", PLAIN),
        Escape("descriptors_of_others", "up from a folder that another holds open", "no", "no", "as root"),
    ),
    "What it has the server do": (
        Escape("client_reads_a_token", "read a token file (`fs/read_text_file`)", "no", "no", "no", OWN),
        Escape("client_reads_a_link", "follow a link out of the workspace", "no", "no", "no", OWN),
        Escape("client_reads_a_linked_folder", "follow a linked folder", "no", "no", "no", OWN),
        Escape("client_reads_a_chain", "follow a link to a link", "no", "no", "no", OWN),
        Escape("client_reads_up", "read through `..`", "no", "no", "no", OWN),
        Escape("client_reads_by_a_process", "read through `/proc/self/root`", "no", "no", "no", OWN),
        Escape("client_reads_its_own_environment", "read the server's environment", "no", "no", "no", OWN),
        Escape("client_reads_its_own_descriptor", "read what the server has open", "no", "no", "no", OWN),
        Escape("client_reads_a_pipe", "wait for a named pipe", "no", "no", "no", OWN),
        Escape("client_reads_without_end", "read `/dev/zero`", "no", "no", "no", OWN),
        Escape("client_writes_outside", "write outside the workspace", "no", "no", "no", OWN),
        Escape("client_writes_up", "write through `..`", "no", "no", "no", OWN),
        Escape("client_writes_through_a_link", "write through a link", "no", "no", "no", OWN),
        Escape("client_writes_through_a_linked_folder", "into a linked folder", "no", "no", "no", OWN),
        Escape("client_writes_by_a_process", "through `/proc/self/root`", "no", "no", "no", OWN),
        Escape("terminal_reads_a_token", "run a command that reads a token file", "no", "no", "yes"),
        Escape("terminal_reads_anothers_home", "one that reads another's home", "no", "no", "yes"),
        Escape("terminal_signals_the_server", "one that sends the server a signal", "no", "no", "yes"),
        Escape("terminal_in_the_data_folder", "run one in the data folder", "no", "no", "no", OWN),
        Escape("terminal_in_a_linked_folder", "run one in a link to it", "no", "no", "no", OWN),
        Escape("terminal_finds_secrets", "run one that sees the server's variables", "no", "no", "no", OWN),
        Escape("terminal_preloads_a_library", "load code into what wraps it", "no", "no", "no", OWN),
    ),
    "The walls themselves": (
        Escape("unmount", "unmount the empty folder over the data", "no", "no", "yes"),
        Escape("own_user_namespace", "the same in a user namespace of its own", "no", "no", "yes"),
        Escape("bind_mount", "mount something", "no", "no", "as root"),
        Escape("mount_by_the_new_calls", "the same by `fsopen`", "no", "no", "as root"),
        Escape("copy_a_mount", "copy a mount (`open_tree`)", "no", "no", "as root"),
        Escape("change_its_root", "change its root (`chroot`)", "no", "no", "as root"),
        Escape("enter_a_namespace", "enter a namespace (`setns`)", "no", "no", "as root"),
        Escape("enter_the_servers_namespaces", "open one of the server's", "no", "no", "as root"),
        Escape("file_by_handle", "open files by handle, past all paths", "no", "no", "as root"),
        Escape("make_a_device", "make a device file", "no", "no", "as root"),
        Escape("make_a_character_device", "one that stands for nothing", "no", "no", "perhaps"),
        Escape("read_the_disk", "read the disk itself", "no", "no", "as root"),
        Escape("powers_of_root", "have a power that undoes the above", "no", "no", "as root"),
        Escape("gain_rights", "gain rights by a program like `sudo`", "no", "no", "no", PLAIN),
    ),
    "System calls": (
        Escape("make_a_user_namespace", "make a user namespace", "no", "no", "yes"),
        Escape("make_a_network_namespace", "one with a network", "no", "no", "yes"),
        Escape("make_a_time_namespace", "one with a clock", "no", "no", "perhaps"),
        Escape("clone_into_a_namespace", "clone a process into one", "no", "no", "yes"),
        Escape("clone3_into_a_namespace", "the same with flags that no filter sees", "no", "no", "yes"),
        Escape("namespace_in_a_terminal", "make one in a command that we run for it", "no", "no", "yes"),
        Escape("trace_a_child", "trace a process of its own", "no", "no", "yes"),
        Escape("descriptor_of_a_child", "take an open file from one", "no", "no", "yes"),
        Escape("memory_of_a_child", "read the memory of one", "no", "no", "yes"),
        Escape("write_the_memory_of_a_child", "write it", "no", "no", "yes"),
        Escape("compare_processes", "compare processes (`kcmp`)", "no", "no", "perhaps"),
        Escape("kernel_keys", "use the kernel's keys", "no", "no", "perhaps"),
        Escape("keep_a_key", "keep a key there", "no", "no", "perhaps"),
        Escape("ring_of_calls", "make calls through io_uring", "no", "no", "perhaps"),
        Escape("load_a_program_into_the_kernel", "use BPF", "no", "no", "perhaps"),
        Escape("load_a_module", "load a kernel module", "no", "no", "perhaps"),
        Escape("count_events_of_the_machine", "use performance counters", "no", "no", "perhaps"),
        Escape("handle_faults_of_memory", "handle its own page faults", "no", "no", "perhaps"),
        Escape("take_a_swap_away", "switch swap space off", "no", "no", "as root"),
        Escape("name_the_machine", "name the machine", "no", "no", "as root"),
        Escape("steer_the_clock", "ask for the tuning of the clock", "no", "no", "yes"),
        Escape("read_the_kernels_log", "look at the kernel's log", "no", "no", "perhaps"),
        Escape("talk_to_the_kernel", "talk to the kernel's modules by netlink", "no", "no", "yes"),
        Escape("listen_to_all_packets", "listen to all packets", "no", "no", "as root"),
        Escape("make_packets_by_hand", "make packets by hand", "no", "no", "as root"),
        Escape("talk_to_the_machine_below", "talk to a hypervisor (vsock)", "no", "no", "perhaps"),
        Escape("use_the_kernels_ciphers", "use the kernel's ciphers", "no", "no", "perhaps"),
        Escape("calls_of_another_machine", "make calls as a 32-bit program", "no", "no", "perhaps"),
    ),
    "The server and other agents as processes": (
        Escape("see_the_server", "see the server's process", "no", "no", "yes"),
        Escape("see_another_agent", "see another agent's", "no", "no", "yes"),
        Escape("servers_environment", "read the server's environment", "no", "no", "as root"),
        Escape("secrets_in_its_environment", "find its secrets in its own", "no", "no", "no", PLAIN),
        Escape("secrets_in_its_ancestors", "or in that of its ancestors", "no", "no", "as root"),
        Escape("servers_memory", "read the server's memory", "no", "no", "as root"),
        Escape("servers_descriptors", "list the server's open files", "no", "no", "as root"),
        Escape("steal_a_descriptor", "take an open file from the server", "no", "no", "as root"),
        Escape("trace_the_server", "trace the server (ptrace)", "no", "no", "as root"),
        Escape("signal_the_server", "send the server a signal", "no", "no", "yes"),
        Escape("hold_the_server", "hold it by a descriptor", "no", "no", "yes"),
        Escape("slow_the_server", "change its priority", "no", "no", "yes"),
        Escape("pin_the_server", "choose its processors", "no", "no", "yes"),
        Escape("limit_the_server", "set its limits", "no", "no", "yes"),
        Escape("signal_another_agent", "send another session's agent a signal", "no", "no", "yes"),
        Escape("another_agents_environment", "read another agent's environment", "no", "no", "yes"),
        Escape("another_agents_memory", "read another agent's memory", "no", "no", "perhaps"),
        Escape("trace_another_agent", "trace another agent (ptrace)", "no", "no", "perhaps"),
    ),
    "Memory that processes share": (
        Escape("file_in_shared_memory", "read a file in `/dev/shm`", "no", "no", "yes"),
        Escape("segment_of_system_v", "attach a shared segment (`shmat`)", "no", "no", "yes"),
        Escape("queue_of_system_v", "take a message from a queue (`msgrcv`)", "no", "no", "yes"),
        Escape("semaphores_of_system_v", "use semaphores (`semget`)", "no", "no", "yes"),
        Escape("queue_of_posix", "open a queue (`mq_open`)", "no", "no", "perhaps"),
    ),
    "Ports and sockets": (
        Escape("control_port", "use the server's port without a token", "no", "no", "no", TOKEN),
        Escape("control_port_of_pages", "use `/api/…`, with `--trust-loopback`", "no", "no", "no", PLAIN),
        Escape("operator_routes", "use the operator's routes without a token", "no", "no", "no", TOKEN),
        Escape("operators_socket", "use the operator's socket", "no", "no", "no", PLAIN),
        Escape("loopback_network", "connect to other programs on loopback", "yes", "yes", "yes"),
        Escape("abstract_socket", "connect to abstract sockets of the machine", OLD, OLD, "yes"),
        Escape("socket_in_tmp", "connect to a socket in `/tmp`", "no", "no", "yes"),
    ),
    "The rest of the machine": (
        Escape("read_the_users_files", "read files of the server's user elsewhere", "no", "no", "yes"),
        Escape("write_the_users_files", "write files of the server's user elsewhere", "no", "no", "yes"),
        Escape("read_the_operators_keys", "read a key in the operator's `.ssh`", "no", "no", "yes"),
        Escape("write_the_operators_start_script", "write the operator's `.profile`", "no", "no", "yes"),
        Escape("write_the_system", "write in `/etc`", "no", "no", "as root"),
        Escape("change_a_setting_of_the_kernel", "change a setting in `/proc/sys`", "no", "no", "as root"),
        Escape("move_interrupts", "move interrupts in `/proc/irq`", "no", "no", "perhaps"),
        Escape("press_a_system_key", "use `/proc/sysrq-trigger`", "no", "no", "as root"),
        Escape("memory_of_the_kernel", "read `/proc/kcore`", "no", "no", "perhaps"),
        Escape("devices_of_the_machine", "list the devices in `/sys`", "no", "no", "yes"),
        Escape("groups_of_the_machine", "list the control groups", "no", "no", "perhaps"),
        Escape("type_into_the_terminal", "type into the operator's terminal", "no", "no", "no", PLAIN),
    ),
    "Resources": (
        Escape("more_files_than_allowed", "raise its limit of open files", "no", "no", "as root"),
        Escape("hide_from_the_memory_killer", "hide from the kernel's memory killer", "no", "no", "as root"),
        Escape("core_file", "leave a core file", "no", "no", "no", PLAIN),
        Escape("many_processes", "start processes without end", BARE, BARE, BARE, LESS),
        Escape(
            "many_processes_in_terminals",
            "the same in commands that it has the server run",
            *(BARE, BARE, BARE, LESS),
        ),
        Escape("much_memory", "take memory without end", BARE, BARE, BARE, LESS),
        Escape("leave_its_group", "leave the group that bounds both", "no", "no", "perhaps"),
        Escape("raise_its_limit", "raise the limits of that group", "no", "no", "perhaps"),
        Escape(
            "raise_it_in_namespaces",
            "the same in namespaces of its own",
            *("no", "no", "no"),
            "none: the kernel itself refuses it, whoever asks; the row says that it stays so",
        ),
        Escape("fill_the_disk", "make a file of any size", "yes", "yes", "yes"),
    ),
    "Outliving its session": (
        Escape("survive_in_a_new_session", "a child in a session of its own", "no", "no", "no", PLAIN),
        Escape("survive_a_double_fork", "a child forked twice", "no", "no", "no", PLAIN),
        Escape("survive_without_the_tag", "such a child without its environment", "no", "no", "no", PLAIN),
        Escape("survive_a_crowd", "two hundred of them", "no", "no", "no", PLAIN),
        Escape("survive_by_killing_the_parent", "kill what watches it, and stay", "no", "no", "no", PLAIN),
    ),
}


class WayOut(NamedTuple):
    """One attempt by the network, and whether it gets through in each mode of it."""

    probe: str
    about: str
    open: str
    none: str
    proxy: str


NETWORKS: Final = ("open", "none", "proxy")
WAYS_OUT: Final = (
    WayOut("loopback_network", "connect to other programs on loopback", "yes", "no", "no"),
    WayOut("loopback_from_a_terminal", "the same in a command that we run for it", "yes", "no", "no"),
    WayOut("loopback_by_datagrams", "send them datagrams", "yes", "no", "no"),
    WayOut("addresses_of_the_machine", "see the machine's interfaces", "perhaps", "no", "no"),
    WayOut("tunnel_to_a_listed_place", "reach a listed host through the proxy", "no", "no", "yes"),
    WayOut("tunnel_through_the_proxy", "reach one that is not listed", "no", "no", "no"),
    WayOut("tunnel_by_another_name", "the same under six other names", "no", "no", "no"),
    WayOut("ask_the_proxy_for_a_page", "ask the proxy for a page there", "no", "no", "no"),
    WayOut("name_a_listed_host_and_mean_another", "with a listed host in the header", "no", "no", "no"),
    WayOut("reach_the_server_through_the_proxy", "reach the server through the proxy", "no", "no", "no"),
)
"""In the last five the same request to a listed place gets through."""


def document() -> str:
    """The table as it stands in docs/explain/containment.md."""
    lines = []
    for title, rows in GROUPS.items():
        lines += [f"| {title} | `auto` | `full` | `off` |", "|---|---|---|---|"]
        lines += [f"| {row.about} | {row.auto} | {row.full} | {row.off} |" for row in rows]
        lines.append("")
    lines += ["| [The network](#the-network) | `open` | `none` | `proxy` |", "|---|---|---|---|"]
    lines += [f"| {way.about} | {way.open} | {way.none} | {way.proxy} |" for way in WAYS_OUT]
    lines.append("")
    return "\n".join(lines)
