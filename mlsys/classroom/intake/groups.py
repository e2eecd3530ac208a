"""Groups: what one member hands in is an attempt of every member."""

from collections.abc import Mapping
from dataclasses import dataclass

from mlsys.classroom.intake.layouts import Ignored
from mlsys.classroom.store.store import Store
from mlsys.classroom.students.history import History, shared
from mlsys.classroom.students.roster import Roster


@dataclass(frozen=True)
class Group:
    """Students who hand in once."""

    name: str
    members: tuple[str, ...]


def groups_of(roster: Roster | None, lab: str) -> list[Group]:
    """Return the groups of a lab with more than one member, in the order of the roster."""
    found: dict[str, Group] = {}
    for student in roster.students.values() if roster else ():
        if name := student.groups.get(lab):
            found.setdefault(name, Group(name, roster.members(student.id, lab) if roster else ()))
    return [group for group in found.values() if len(group.members) > 1]


def share(
    store: Store, lab: str, group: Group, before: Mapping[str, History], now: Mapping[str, History]
) -> tuple[History, list[Ignored]]:
    """Give every member of a group the attempts of all, and return them with what is in doubt.

    Args:
        store: where attempts are kept.
        lab: the lab.
        group: the group.
        before: the attempts that each member had before.
        now: the attempts of each member who handed in now.
    """
    arrived = {member: now[member] for member in group.members if member in now}
    history = shared(before.values(), arrived.values())
    owners = {one.digest: member for member, had in (*before.items(), *now.items()) for one in had.attempts}
    for member in group.members:
        for digest in {one.digest for one in history.attempts if one.digest}:
            store.save_content(lab, member, digest, store.content(lab, owners[digest], digest))
        if store.history(lab, member) != history:
            store.save_history(lab, member, history)
    newest = {member: had.attempts[-1] for member, had in arrived.items() if had.attempts}
    ordered = all(one.time for one in newest.values()) or all(one.number is not None for one in newest.values())
    if len({one.digest for one in newest.values()}) < 2 or ordered:
        return history, []
    last = history.attempts[-1].name
    reason = (
        f"its members ({', '.join(newest)}) handed in different notebooks, and nothing says which is newer: {last} "
        "counts; name the times with --times, or remove the others"
    )
    return history, [Ignored(f"group {group.name}", reason)]
