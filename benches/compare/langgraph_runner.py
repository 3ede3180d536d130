"""LangGraph: a StateGraph of plain functions, invoked synchronously. Same arguments as the Rust runners."""

import sys
import time
from operator import add
from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send


class Count(TypedDict):
    count: int


class Found(TypedDict):
    found: Annotated[list[int], add]
    sum: Annotated[int, add]


class Item(TypedDict):
    item: int


def add_one(state: Count):
    return {"count": state["count"] + 1}


def chain(nodes: int):
    graph = StateGraph(Count)
    before = START
    for at in range(nodes):
        graph.add_node(f"node{at}", add_one)
        graph.add_edge(before, f"node{at}")
        before = f"node{at}"
    graph.add_edge(before, END)
    return graph


def fan_out(tasks: int):
    def items(_: Found):
        return [Send("work", {"item": item}) for item in range(tasks)]

    def work(state: Item):
        return {"found": [state["item"]], "sum": state["item"]}

    graph = StateGraph(Found)
    graph.add_node("split", lambda _: {})
    graph.add_node("work", work)
    graph.add_edge(START, "split")
    graph.add_conditional_edges("split", items, ["work"])
    graph.add_edge("work", END)
    return graph


def main():
    workload, size, milliseconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    saver = InMemorySaver() if workload == "chain-checkpoints" else None
    graph = (fan_out(size) if workload == "fan-out" else chain(size)).compile(checkpointer=saver)
    runs = 0

    def run():
        thread = f"compare{runs}"
        config = {"recursion_limit": 20_000, "configurable": {"thread_id": thread}}
        if workload == "fan-out":
            end = graph.invoke({"found": [], "sum": 0}, config)
            assert end == {"found": list(range(size)), "sum": size * (size - 1) // 2}, end
        else:
            end = graph.invoke({"count": 0}, config)
            assert end == {"count": size}, end
        if saver is not None:
            saver.delete_thread(thread)

    run()
    started = time.process_time_ns()
    while True:
        runs += 1
        run()
        taken = time.process_time_ns() - started
        if taken >= milliseconds * 1_000_000:
            break
    print(f"{taken / runs / size:.1f}")


main()
