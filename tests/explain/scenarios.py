"""Threads of every kind that LangGraph can store, each made by a real run; what each returns reads them again."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Overwrite, Send, StateUpdate, interrupt

from tests.explain.graphs import asks, chain, deferred, fails, fan_out, going, graph_of, nested, quarrel, says
from tests.explain.nested import Talk
from tests.explain.test_delta import counting
from tests.factories import config, shop_builder

Scenario = Callable[[Path, SqliteSaver], Any]
SCENARIOS: dict[str, Scenario] = {}
TEA = {"topic": "tea"}


def scenario(make: Scenario) -> Scenario:
    SCENARIOS[make.__name__] = make
    return make


def run(graph: Any, *inputs: Any, thread: str = "t", **options: Any) -> Any:
    """Run a thread turn by turn; a node that fails ends its turn."""
    for given in inputs:
        try:
            graph.invoke(given, config(thread), **options)
        except ValueError:
            pass
    return graph


def at(graph: Any, *nodes: str, thread: str = "t") -> Any:
    """The configuration of the latest checkpoint from which exactly these nodes run."""
    return next(one.config for one in graph.get_state_history(config(thread)) if one.next == nodes)


@scenario
def two_turns(path: Path, saver: SqliteSaver) -> Any:
    return run(chain("a", "b").compile(checkpointer=saver), TEA, {"topic": "milk"})


@scenario
def join_and_sends(path: Path, saver: SqliteSaver) -> Any:
    return run(fan_out().compile(checkpointer=saver), TEA)


@scenario
def a_deferred_node(path: Path, saver: SqliteSaver) -> Any:
    return run(deferred().compile(checkpointer=saver), TEA)


@scenario
def messages_with_tool_calls(path: Path, saver: SqliteSaver) -> Any:
    return run(
        shop_builder().compile(checkpointer=saver), {"messages": [HumanMessage("how much?", id="h")]}, Command(resume=True)
    )


@scenario
def an_async_saver(path: Path, saver: SqliteSaver) -> Any:
    async def a(state: Any) -> dict[str, Any]:
        return {"log": ["a"]}

    graph = chain("a", "ask", "b", a=a, ask=asks("ok?"))

    async def turns() -> None:
        async with AsyncSqliteSaver.from_conn_string(str(path)) as own:
            compiled = graph.compile(checkpointer=own)
            await compiled.ainvoke(TEA, config("waiting"))  # type: ignore[call-overload]
            await compiled.ainvoke(TEA, config("answered"))  # type: ignore[call-overload]
            await compiled.ainvoke(Command(resume="yes"), config("answered"))  # type: ignore[call-overload]

    asyncio.run(turns())
    return graph.compile(checkpointer=saver)


@scenario
def durability(path: Path, saver: SqliteSaver) -> Any:
    graph = chain("a", "b", "ask", ask=asks("ok?")).compile(checkpointer=saver)
    for kind in ("sync", "async", "exit"):
        run(graph, TEA, thread=f"{kind}-asked", durability=kind)
        run(graph, TEA, Command(resume="yes"), {"topic": "milk"}, thread=f"{kind}-answered", durability=kind)
    return graph


@scenario
def durability_of_a_failure(path: Path, saver: SqliteSaver) -> Any:
    graph = quarrel(broken=fails).compile(checkpointer=saver)  # with "exit" nothing is stored to wait for
    for kind in ("sync", "async", "exit"):
        run(graph, TEA, thread=kind, durability=kind)
    return graph


@scenario
def goto_one_node(path: Path, saver: SqliteSaver) -> Any:
    return run(going().compile(checkpointer=saver), TEA)


@scenario
def goto_several_nodes_and_sends(path: Path, saver: SqliteSaver) -> Any:
    def choose(state: Any) -> Command[Any]:
        return Command(goto=["far", Send("near", {"topic": "sent"}), Send("near", {"topic": "too"})], update={"log": ["choose"]})

    builder = graph_of({"choose": choose, "near": says("near"), "far": says("far")}, [(START, "choose")])
    return run(builder.compile(checkpointer=saver), TEA)


@scenario
def goto_from_outside(path: Path, saver: SqliteSaver) -> Any:
    graph = chain("a", "ask", "b", ask=asks("ok?")).compile(checkpointer=saver)
    run(graph, TEA, Command(goto="b"), thread="paused")
    run(graph, TEA, Command(resume="yes", update={"topic": "milk"}, goto="a"), thread="all at once")
    run(graph, TEA, Command(update={"log": ["told"]}), thread="update only")
    run(graph, TEA, Command(resume="yes"), Command(goto="b"), thread="finished")
    return graph


@scenario
def goto_in_the_parent(path: Path, saver: SqliteSaver) -> Any:
    def leave(state: Any) -> Command[Any]:
        return Command(graph=Command.PARENT, goto="far", update={"log": ["left"]})

    inner = chain("open", "leave", leave=leave).compile()
    builder = graph_of({"sub": inner, "near": says("near"), "far": says("far")}, [(START, "sub")])
    return run(builder.compile(checkpointer=saver), TEA)


@scenario
def delta_channels(path: Path, saver: SqliteSaver) -> Any:
    graph = counting(8).compile(checkpointer=saver)
    run(graph, {"n": 0, "lines": ["first"]})
    graph.update_state(at(graph, "step"), {"lines": Overwrite(["anew"])}, as_node="step")
    graph.update_state(config("t"), {"lines": ["by hand"]}, as_node="step")
    run(graph, {"n": 5})
    run(graph, {"n": 0, "lines": ["first"]}, thread="exit", durability="exit")
    return graph


@scenario
def a_failure_retried(path: Path, saver: SqliteSaver) -> Any:
    tries: list[int] = []

    def flaky(state: Any) -> dict[str, Any]:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("it broke")
        return {"log": ["flaky"]}

    builder = graph_of({"flaky": flaky, "work": says("work")}, [(START, "flaky"), (START, "work")])
    return run(builder.compile(checkpointer=saver), TEA, None)


@scenario
def an_error_handler(path: Path, saver: SqliteSaver) -> Any:
    builder = graph_of(
        {"bad": fails, "after": says("after")}, [(START, "bad"), ("bad", "after")], bad={"error_handler": says("saved")}
    )
    return run(builder.compile(checkpointer=saver), TEA)


@scenario
def an_error_handler_that_fails(path: Path, saver: SqliteSaver) -> Any:
    builder = graph_of({"bad": fails}, [(START, "bad")], bad={"error_handler": fails})
    return run(builder.compile(checkpointer=saver), TEA)


@scenario
def a_failure_in_a_subgraph(path: Path, saver: SqliteSaver) -> Any:
    inner = chain("open", "break", **{"break": fails}).compile()
    return run(chain("a", "sub", sub=inner).compile(checkpointer=saver), TEA)


@scenario
def a_function_with_a_memory(path: Path, saver: SqliteSaver) -> Any:
    @task
    def double(n: int) -> int:
        return n * 2

    @entrypoint(checkpointer=saver)
    def basket(n: int, previous: Any = None) -> Any:
        return {"sum": double(n).result() + double(n + 1).result(), "before": previous}

    return run(basket, 3, 4)


@scenario
def a_function_that_asks(path: Path, saver: SqliteSaver) -> Any:
    @task
    def review(n: int) -> Any:
        return interrupt(f"is {n} right?")

    @entrypoint(checkpointer=saver)
    def basket(n: int) -> Any:
        return [review(n).result(), interrupt("and now?")]

    run(basket, 3, thread="asks")
    return run(basket, 3, Command(resume="yes"), Command(resume="no"), thread="answered")


@scenario
def a_function_that_fails(path: Path, saver: SqliteSaver) -> Any:
    @task
    def broken(n: int) -> int:
        raise ValueError("it broke")

    @entrypoint(checkpointer=saver)
    def basket(n: int) -> Any:
        return broken(n).result()

    return run(basket, 3)


@scenario
def several_questions(path: Path, saver: SqliteSaver) -> Any:
    names = ("x", "y", "z")
    graph = graph_of({name: asks(name) for name in names}, [(START, name) for name in names]).compile(checkpointer=saver)
    run(graph, TEA, thread="open")
    run(graph, TEA, thread="partial")
    first, second, third = (one.id for one in graph.get_state(config("partial")).interrupts)
    graph.invoke(Command(resume={second: "two"}), config("partial"))
    run(graph, TEA, thread="in turn")
    first, second, third = (one.id for one in graph.get_state(config("in turn")).interrupts)
    return run(graph, Command(resume={first: 1, third: None}), Command(resume={second: {"deep": [2]}}), thread="in turn")


@scenario
def a_second_question_in_one_node(path: Path, saver: SqliteSaver) -> Any:
    graph = chain("ask", "b", ask=asks("sure?", times=2)).compile(checkpointer=saver)
    run(graph, TEA, Command(resume="one"), thread="half")
    return run(graph, TEA, Command(resume="one"), Command(resume="two"), thread="whole")


@scenario
def sends_that_ask(path: Path, saver: SqliteSaver) -> Any:
    builder = graph_of({"a": says("a"), "ask": lambda item: {"log": [str(interrupt(item["n"]))]}}, [(START, "a")])
    builder.add_conditional_edges("a", lambda state: [Send("ask", {"n": n}) for n in range(3)], ["ask"])
    graph = run(builder.compile(checkpointer=saver), TEA)
    return run(graph, Command(resume={graph.get_state(config("t")).interrupts[1].id: "one"}))


@scenario
def stops_before_and_after(path: Path, saver: SqliteSaver) -> Any:
    graph = chain("a", "b", "c").compile(checkpointer=saver)
    run(graph, TEA, thread="before", interrupt_before=["b"])
    return run(graph, TEA, None, thread="after", interrupt_after=["a"])


@scenario
def metadata(path: Path, saver: SqliteSaver) -> Any:
    graph = chain("a", "ask", ask=asks("ok?")).compile(checkpointer=saver)
    run_config = {
        "configurable": {"thread_id": "nul\0 and \u202e", "user_id": "u-1", "source": "mine"},
        "metadata": {"step": "odd", "tier": ["gold", 1, None]}, "tags": ["x"], "run_name": "evening", "run_id": uuid.uuid4(),
    }  # fmt: skip
    graph.invoke(TEA, run_config)  # type: ignore[call-overload]
    return graph


@scenario
def one_subgraph_within_another(path: Path, saver: SqliteSaver) -> Any:
    graph = nested().compile(checkpointer=saver)
    run(graph, TEA, thread="asks")
    return run(graph, TEA, Command(resume="yes"), {"topic": "milk"}, thread="answered")


@scenario
def a_subgraph_with_its_own_memory(path: Path, saver: SqliteSaver) -> Any:
    memory = chain("recall", "ask", ask=asks("ok?")).compile(checkpointer=True)
    graph = chain("a", "memory", "b", memory=memory).compile(checkpointer=saver)
    return run(graph, TEA, Command(resume="yes"), {"topic": "milk"}, Command(resume="no"), {"topic": "rum"})


@scenario
def a_subgraph_called_in_a_node(path: Path, saver: SqliteSaver) -> Any:
    inner = chain("draft", "ask", ask=asks("good?")).compile()

    def writer(state: Any) -> dict[str, Any]:
        return {"log": inner.invoke(TEA)["log"]}

    graph = chain("plan", "writer", writer=writer).compile(checkpointer=saver)
    return run(graph, TEA, Command(resume="yes"))


@scenario
def a_subgraph_that_langgraph_cannot_find(path: Path, saver: SqliteSaver) -> Any:
    hidden = {"graph": chain("draft", "edit").compile()}
    writer = lambda state: {"log": hidden["graph"].invoke(TEA)["log"]}  # noqa: E731
    return run(chain("plan", "writer", writer=writer).compile(checkpointer=saver), TEA)


@scenario
def several_sends_to_one_subgraph(path: Path, saver: SqliteSaver) -> Any:
    inner = chain("draft", "ask", ask=asks("good?")).compile()
    builder = graph_of({"a": says("a"), "sub": inner}, [(START, "a")])
    builder.add_conditional_edges("a", lambda state: [Send("sub", {"topic": str(n)}) for n in range(2)], ["sub"])
    return run(builder.compile(checkpointer=saver), TEA)


@scenario
def replay_and_input_at_an_old_checkpoint(path: Path, saver: SqliteSaver) -> Any:
    graph = run(chain("a", "b", "c").compile(checkpointer=saver), TEA)
    old = at(graph, "b")
    graph.invoke(None, old)
    graph.invoke({"topic": "again"}, old)
    return graph


@scenario
def finished_siblings_of_a_question(path: Path, saver: SqliteSaver) -> Any:
    builder = graph_of({"ask": asks("go on?"), "work": says("work", total=5)}, [(START, "ask"), (START, "work")])
    graph = builder.compile(checkpointer=saver)
    for thread in ("waiting", "copied", "updated", "replayed"):
        run(graph, TEA, thread=thread)
    graph.update_state(at(graph, "ask", "work", thread="copied"), None, as_node="__copy__")
    graph.update_state(config("updated"), {"log": ["told"]}, as_node="work")
    graph.invoke(None, at(graph, "ask", "work", thread="replayed"))
    return graph


@scenario
def updates_of_every_kind(path: Path, saver: SqliteSaver) -> Any:
    graph = chain("a", "b", "c").compile(checkpointer=saver)
    for thread in ("as node", "copy", "end", "input", "bulk", "omitted"):
        run(graph, TEA, thread=thread)
    graph.update_state(at(graph, "b", thread="as node"), {"topic": "edited"}, as_node="b")
    graph.update_state(config("as node"), {"log": ["at the head"]}, as_node="a")
    run(graph, None, thread="as node")
    graph.update_state(at(graph, "b", thread="copy"), None, as_node="__copy__")
    run(graph, None, thread="copy")
    graph.update_state(config("end"), None, as_node="__end__")
    graph.update_state(config("input"), {"topic": "rum"}, as_node="__input__")
    updates = [StateUpdate({"log": ["one"]}, "a"), StateUpdate({"total": 2}, "b")]
    graph.bulk_update_state(config("bulk"), [updates, [StateUpdate({"topic": "x"}, "c")]])
    graph.update_state(config("omitted"), {"topic": "after c"})
    graph.update_state(config("new"), {"topic": "nothing ran"}, as_node="a")
    return graph


@scenario
def an_update_inside_a_waiting_subgraph(path: Path, saver: SqliteSaver) -> Any:
    inner = chain("draft", "ask", ask=asks("good?")).compile()
    graph = run(chain("plan", "sub", sub=inner).compile(checkpointer=saver), TEA)
    waiting = graph.get_state(config("t"), subgraphs=True).tasks[0].state
    graph.update_state(waiting.config, {"topic": "edited inside"})
    return run(graph, Command(resume="yes"))


@scenario
def an_empty_list_of_messages(path: Path, saver: SqliteSaver) -> Any:
    builder: StateGraph[Any] = graph_of({"say": lambda state: {"messages": [AIMessage("hi", id="m")]}}, [(START, "say")], Talk)
    return run(builder.compile(checkpointer=saver), {"log": []})
