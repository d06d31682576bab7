"""The bugs that are planted: what is changed, and which proof or test must turn red."""

from dataclasses import dataclass

from proofs.kit.source import NORMAL, Change

SRC = "src/clawdforge"
STORE_SUITE = "tests/conformance/test_stores.py"


@dataclass(frozen=True, slots=True)
class Bug:
    """`caught` is `prove NAME …` or the arguments of pytest."""

    name: str
    caught: str
    changes: tuple[Change, ...]
    quick: bool = False


BUGS = (
    Bug(
        "acknowledge before the commit",
        "prove power --short",
        (
            Change(
                f"{SRC}/stores/sqlite/writer.py",
                '            db.connection.execute("COMMIT")\n            self.commits += 1',
                "            self._hand_over(batch)\n            batch = Batch([])\n"
                '            db.connection.execute("COMMIT")\n            self.commits += 1',
            ),
        ),
    ),
    Bug("synchronous = NORMAL", "prove power --short", (NORMAL,)),
    Bug(
        "no unique index on the running turn",
        f"{STORE_SUITE} -k one_active_turn",
        (
            Change(
                f"{SRC}/stores/sqlite/sql/migrations/0001_init.sql",
                "CREATE UNIQUE INDEX turns_one_active",
                "CREATE INDEX turns_one_active",
            ),
        ),
        quick=True,
    ),
    Bug(
        "subscribe after the read",
        "tests/unit/test_tail.py -k right_behind_a_read",
        (
            Change(
                f"{SRC}/core/log.py",
                "        with self.tail(session_id) as tail:\n            while not tail.gone:\n"
                "                added = tail.added\n                batch = tail.read(after, most)\n"
                "                if batch is None:\n"
                "                    batch = await self._read(app, session_id, after, tail)\n",
                "        while batch := await self._read(app, session_id, after, Tail()):\n"
                "            after = batch[-1].last\n            yield batch\n"
                "        await self._turns.slice(app)\n"
                "        with self.tail(session_id) as tail:\n            while not tail.gone:\n"
                "                added = tail.added\n"
                "                batch = [part for part in tail._stretches if part.last > after]\n",
            ),
        ),
    ),
    Bug(
        "an id on heartbeats",
        "tests/api/test_events.py -k quiet_stream_beats",
        (
            Change(
                f"{SRC}/wire/sse.py", r'HEARTBEAT: Final = b": \n\n"', r'HEARTBEAT: Final = b"id: 0\n: \n\n"'
            ),
        ),
    ),
    Bug(
        "only the process group is killed",
        "tests/unit/test_process.py -k hostile_tree",
        (
            Change(
                f"{SRC}/drivers/processes/containment.py",
                '        if level == "off":\n            return "tree"',
                '        if level:\n            return "tree"',
            ),
            Change(f"{SRC}/drivers/processes/launcher.py", "    prctl(PR_SET_CHILD_SUBREAPER, 1)\n", ""),
            Change(
                f"{SRC}/drivers/processes/process.py",
                "        await end_survivors(lambda tag: tag == self._tag)\n",
                "",
            ),
            Change(
                f"{SRC}/drivers/processes/process.py",
                "                kill_below(self._root)\n                if not",
                "                if not",
            ),
        ),
        quick=True,
    ),
    Bug(
        "sweep by the time of creation",
        "tests/api/test_sweep.py -k idle_counts_from_the_last_turn",
        (
            Change(
                f"{SRC}/stores/sqlite/sql/migrations/0030_fewer_pages.sql",
                "'waiting') BEGIN\n    UPDATE sessions SET listed_at = new.updated_at,"
                " idle_since = coalesce(new.last_turn_at, new.created_at),",
                "'waiting') BEGIN\n    UPDATE sessions SET listed_at = new.updated_at,"
                " idle_since = new.created_at,",
            ),
            Change(
                f"{SRC}/core/rules/retention.py",
                "    return row.created_at if row.last_turn_at is None else row.last_turn_at",
                "    return row.created_at",
            ),
        ),
    ),
    Bug(
        "an error of the save is swallowed",
        "prove faults --short",
        (
            Change(
                f"{SRC}/stores/sqlite/writer.py",
                "            self._drop_connection(error)\n        finally:",
                "            self._drop_connection(error)\n            failure = None\n        finally:",
            ),
        ),
    ),
    Bug(
        "copies of homes are hard links",
        "tests/unit/test_homes.py -k writes_in_place",
        (
            Change(
                f"{SRC}/drivers/folders/home_copies.py",
                "        target = os.open(\n",
                "        os.link(found.name, self._files / name, src_dir_fd=found.parent)\n"
                "        return replace(entry_of(found), object=name)\n"
                "        target = os.open(\n",
            ),
        ),
        quick=True,
    ),
    Bug(
        "the Host is checked after routing",
        "tests/api/test_guard.py -k refused_before_routing",
        (
            Change(
                f"{SRC}/http/middleware.py",
                '            refusal = self._guard.refusal(head_of(scope), scope["path"])\n',
                '            routed = scope["path"].startswith(("/sessions", "/admin"))\n'
                "            refusal = None\n"
                "            if routed:\n"
                '                refusal = self._guard.refusal(head_of(scope), scope["path"])\n',
            ),
        ),
    ),
    Bug(
        "the environment is a deny-list",
        "tests/unit/test_containment.py -k allow_list",
        (
            Change(
                f"{SRC}/drivers/processes/environment.py",
                "        allowed = name in PASSED or ",
                '        allowed = ("TOKEN" not in name and "KEY" not in name) or ',
            ),
        ),
        quick=True,
    ),
    Bug(
        "no fence",
        f"{STORE_SUITE} -k risen_fence",
        (
            Change(
                f"{SRC}/stores/sqlite/tx.py",
                "        if fence is not None and fence != current:",
                "        if fence is not None and fence > current:",
            ),
        ),
        quick=True,
    ),
    Bug(
        "keys are forgotten",
        "prove duplicates --short",
        (
            Change(
                f"{SRC}/core/rules/turns.py",
                "    prior = tx.turn_by_key(session_id, key) if key is not None else None\n",
                "    prior, key = None, None\n",
            ),
        ),
    ),
    Bug(
        "a turn started in a commit of unknown outcome has nobody to run it",
        "prove faults --short",
        (
            Change(
                f"{SRC}/core/services/turns.py",
                "                self._supervisor.wake(app, session_id, start_in_doubt=seat is not None)\n",
                "                pass\n",
            ),
        ),
    ),
    Bug(
        "turns that were cut off stay as they are",
        "prove kills --short",
        (
            Change(
                f"{SRC}/parts.py", "interrupted = await recovery.end_interrupted_turns()", "interrupted = 0"
            ),
        ),
    ),
    Bug(
        "an upload that was cut off stays half",
        "prove syscalls --only upload --size 6",
        (Change(f"{SRC}/parts.py", "await services.files.finish_pending()", "pass"),),
    ),
    Bug(
        "an undo leaves the agent's memory alone",
        "prove machine --size 10",
        (
            Change(
                f"{SRC}/core/rules/cuts.py",
                "context_plan=memory.plan_restore(tx.last_spoken_turn(session_id, before=before)),",
                "context_plan=memory.LOAD,",
            ),
            Change(
                f"{SRC}/core/rules/memory.py", "if remembered is None:", "if remembered:"
            ),  # what it replays
        ),
    ),
    Bug(
        "links are followed in agents' folders",
        "prove races --only attach --size 8",
        (
            Change(
                f"{SRC}/drivers/folders/tree_walk.py",
                "mode = os.stat(part, dir_fd=here, follow_symlinks=False).st_mode",
                "mode = os.stat(part, dir_fd=here).st_mode",
            ),
            Change(
                f"{SRC}/drivers/folders/tree_walk.py",
                "FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC",
                "FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC",
            ),
        ),
    ),
    Bug(
        "git has no walls without bubblewrap",
        "prove races --only undo-files --only landlock --size 60",
        (
            Change(
                f"{SRC}/drivers/processes/helpers.py",
                "            return self._wall_in(program, folders, info)\n",
                "            return []\n",
            ),
        ),
    ),
    Bug(
        "what a turn may use is not held",
        "prove budgets --short",
        (
            Change(
                f"{SRC}/core/rules/purses.py",
                "        tx.put_purse(_move(purse, Amount(), amount))\n",
                "        tx.put_purse(purse)\n",
            ),
        ),
    ),
    Bug(
        "a turn that was cut off costs nothing",
        "tests/unit/test_budget_endings.py -k crash_cut_off",
        (
            Change(
                f"{SRC}/core/rules/budgets.py",
                "        cost, cost_estimated = held.cost, True\n",
                "        cost, cost_estimated = 0, True\n",
            ),
        ),
    ),
)
