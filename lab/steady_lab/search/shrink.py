# SPDX-License-Identifier: MIT OR Apache-2.0
"""Smaller cases than one that was found: less of each list, then smaller numbers."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from steady_lab.search.case import Case

LISTS = ("tasks", "writers", "cuts")
CARD_TABLES = ("cache", "queue", "slow", "fault")
CARD_NUMBERS = ("slow_ns", "jump_ns", "jitter_ns", "pause_ns", "per_kib_ns")
# The smallest value of each number of a list's entries, and of a case.
LEAST = {"kib": 4, "blocks": 1, "ios": 1, "jitter_us": 0, "level": 0}
LEAST_OF_RECORDING = {"records": 1, "cut_ms": 0, "segments": 2, "bytes": 256, "segment_kib": 512}


def smaller(case: Case) -> Iterator[Case]:
    """Yield cases that do less; the first are the smallest."""
    for name in LISTS:
        for shorter in _shorter(getattr(case, name)):
            if name != "tasks" or shorter:
                yield _with(case, name, shorter)
            else:
                yield replace(case, tasks=(), background=None, seconds=1)
    if case.seconds > 1:
        yield replace(case, seconds=case.seconds // 2)
    for name in LISTS:
        yield from _numbers(case, name)
    if case.recording:
        for changed in _less(case.recording, LEAST_OF_RECORDING):
            yield replace(case, recording=changed)
    for name, value in case.knobs.items():
        plain = 1 if name == "inflight_max" else 0
        if value != plain:
            yield replace(case, knobs=case.knobs | {name: plain})
    yield from _plainer_card(case)


def _shorter(items: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Nothing, each half, and all without one: ddmin with its extreme granularities."""
    half = len(items) // 2
    ways = [(), items[:half], items[half:]]
    ways += [items[:at] + items[at + 1 :] for at in range(len(items))]
    seen = [items]
    for way in ways:
        if way not in seen:
            seen.append(way)
            yield way


def _numbers(case: Case, name: str) -> Iterator[Case]:
    items = getattr(case, name)
    for at, item in enumerate(items):
        for changed in _less(item, LEAST):
            yield _with(case, name, (*items[:at], changed, *items[at + 1 :]))


def _less(item: dict[str, Any], least_of: dict[str, int]) -> Iterator[dict[str, Any]]:
    for key, least in least_of.items():
        value = item.get(key, least)
        for less in dict.fromkeys((least, max(least, value // 2))):
            if less < value:
                yield item | {key: less}


def _with(case: Case, name: str, items: tuple[dict[str, Any], ...]) -> Case:
    changed: dict[str, Any] = {name: items}
    return replace(case, **changed)


def _plainer_card(case: Case) -> Iterator[Case]:
    for table in CARD_TABLES:
        if table in case.card:
            yield _on_cards(case, functools.partial(_without, table))
    for op in ("read", "write"):
        for number in CARD_NUMBERS:
            if case.card.get(op, {}).get(number):
                yield _on_cards(case, functools.partial(_zero, op, number))


def _on_cards(case: Case, change: Callable[[dict[str, Any]], None]) -> Case:
    """Make the same change to the card and to the card's data for the bound."""
    card, profile = copy.deepcopy(case.card), copy.deepcopy(case.profile)
    for one in filter(None, (card, profile)):
        change(one)
    return replace(case, card=card, profile=profile)


def _without(table: str, card: dict[str, Any]) -> None:
    card.pop(table, None)
    if table == "queue":  # only with a queue several units are of use
        for key in ("units", "stripe_kib"):
            card["card"].pop(key, None)


def _zero(op: str, number: str, card: dict[str, Any]) -> None:
    card[op][number] = 0
