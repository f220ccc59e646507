"""Minimum cut: the cheapest set of edges that separates two nodes of a network."""
from __future__ import annotations

from collections import deque
from typing import Dict, Hashable, List, Set


class Network:
    """Edges with capacities; nodes are anything hashable."""

    def __init__(self) -> None:
        self.edges: Dict[Hashable, List[int]] = {}
        self.ends: List[Hashable] = []                  # edge k goes to ends[k]; edge k ^ 1 is its way back
        self.room: List[float] = []

    def add(self, begin: Hashable, end: Hashable, capacity: float) -> None:
        """One more edge."""
        for a, b, room in ((begin, end, capacity), (end, begin, 0.0)):
            self.edges.setdefault(a, []).append(len(self.ends))
            self.ends.append(b)
            self.room.append(room)

    def sink_side(self, source: Hashable, sink: Hashable) -> Set[Hashable]:
        """The nodes on the sink's side of a minimum cut; of several cuts, of the one nearest to the sink.

        Dinic's algorithm: at most nodes² · edges steps, in practice a few times the edges.
        """
        while True:
            levels = self._levels(source)
            if sink not in levels:
                return self._leading_to(sink)
            at = {node: 0 for node in levels}
            while self._augment(source, sink, levels, at):
                pass

    def _levels(self, source: Hashable) -> Dict[Hashable, int]:
        levels, waiting = {source: 0}, deque([source])
        while waiting:
            node = waiting.popleft()
            for edge in self.edges.get(node, ()):
                if self.room[edge] > 0 and self.ends[edge] not in levels:
                    levels[self.ends[edge]] = levels[node] + 1
                    waiting.append(self.ends[edge])
        return levels

    def _augment(self, source: Hashable, sink: Hashable, levels: Dict[Hashable, int], at: Dict[Hashable, int]) -> bool:
        """Send as much as one more path takes; False if there is no path."""
        path: List[int] = []
        node = source
        while node != sink:
            edges = self.edges.get(node, [])
            while at[node] < len(edges):
                edge = edges[at[node]]
                if self.room[edge] > 0 and levels.get(self.ends[edge]) == levels[node] + 1:
                    break
                at[node] += 1
            if at[node] < len(edges):
                path.append(edges[at[node]])
                node = self.ends[path[-1]]
            elif not path:
                return False
            else:                                       # a dead end: another way from the node before
                node = self.ends[path.pop() ^ 1]
                at[node] += 1
        sent = min(self.room[edge] for edge in path)
        for edge in path:
            self.room[edge] -= sent
            self.room[edge ^ 1] += sent
        return True

    def _leading_to(self, sink: Hashable) -> Set[Hashable]:
        found, waiting = {sink}, [sink]
        while waiting:
            for edge in self.edges.get(waiting.pop(), ()):
                if self.room[edge ^ 1] > 0 and self.ends[edge] not in found:
                    found.add(self.ends[edge])
                    waiting.append(self.ends[edge])
        return found
