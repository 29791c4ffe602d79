"""`studio tables`: what lies in the same file beside the checkpoints, and the entries of one table."""

from __future__ import annotations

from argparse import Namespace

from studio.cli.common import opened, say_problems
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.errors import RefError, UsageError
from studio.neighbours import NOT_VERSIONED, VERSIONED, Item, Items, Namespaces, Neighbours, count_words, rows_in_words
from studio.render import labels, masking
from studio.render.gate import clean, line
from studio.stores.neighbours import SHAPES, Neighbour, Plain

VALUE_WIDTH = 400


def run(options: Namespace, out: Out) -> int:
    if options.name is None and (options.namespace is not None or options.key is not None):
        raise UsageError("--namespace and --key need the NAME of a table", "studio tables FILE store --namespace NS")
    with opened(options, out) as session:
        neighbours = session.neighbours()
        if options.name is None:
            tables = neighbours.tables()
            if out.as_json:
                documents = Documents(out.show_secrets)
                out.document({
                    "location": session.location,
                    "tables": [documents.table(one) for one in tables],
                    "table_sets": [documents.table_set(one) for one in neighbours.sets()],
                })  # fmt: skip
            elif tables:
                _list(tables, out)
            else:
                out.say(f"no tables in this file{f': {line(words, 200)}' if (words := session.view_words) else ''}")
            return 0
        table = neighbours.named(options.name)
        if table.kind not in SHAPES and (options.namespace is not None or options.key is not None):
            raise UsageError(f"table {table.name} has no namespaces and keys", "only those of stores and caches have")
        items = neighbours.items(
            table, namespace=options.namespace, key=options.key, limit=options.limit, whole=options.key is not None
        )
        if not items.items and not items.lost and (options.namespace is not None or options.key is not None):
            raise RefError("no such entry", f"`studio tables FILE {line(table.name, 60)}` lists them", "no-such-entry")
        if out.as_json:
            _json(neighbours, items, out)
        else:
            _entries(neighbours, items, options, out)
    return 0


def _list(tables: list[Neighbour], out: Out) -> None:
    rows = []
    for table in tables:
        if table.kind in ("checkpoints", "writes"):
            what = "shown" if table.shown else "--tables shows them" if table.kind == "checkpoints" else ""
        else:
            what = NOT_VERSIONED
        columns = line(", ".join(table.columns), 60) if table.columns else "cannot be read"
        rows.append([line(table.name, 60), table.kind, count_words(table), columns, what])
    out.table([["table", "kind", "rows", "columns", ""], *rows], [("bold",), ("cyan",), (), ("dim",), ("yellow",)])


def _json(neighbours: Neighbours, items: Items, out: Out) -> None:
    documents = Documents(out.show_secrets)
    namespaces = neighbours.namespaces(items.table)
    out.document({
        "table": documents.table(items.table),
        "versioned": False,
        "namespaces": [{"namespace": name, "rows": rows, "more": more} for name, rows, more in namespaces.found],
        "more_namespaces": namespaces.more,
        "items": [documents.item(item, items.table.kind) for item in items.items],
        "more": items.more,
        "lost": items.lost or None,
        "problems": documents.problems(items.problems),
    })  # fmt: skip


def _entries(neighbours: Neighbours, items: Items, options: Namespace, out: Out) -> None:
    table = items.table
    word = VERSIONED if table.kind in ("checkpoints", "writes") else NOT_VERSIONED
    out.say(out.paint(f"{line(table.name, 60)}: {table.kind}, {rows_in_words(table)}", "bold") + f"  ({word})")
    if table.kind not in SHAPES:
        for item in items.items:
            out.say(_row(item, out))
    elif options.key is not None:
        for item in items.items:
            _whole(item, out)
    else:
        if options.namespace is None:
            _namespaces(neighbours.namespaces(table), out)
        for item in items.items:
            _item(item, out)
    if items.more and not items.lost:
        out.say(out.paint(f"more than these {len(items.items)}: --limit N lists more", "dim"))
    say_problems(out, items.problems)
    if items.lost:
        out.say(out.paint(f"! {line(items.lost, 300)}", "yellow"))


def _namespaces(namespaces: Namespaces, out: Out) -> None:
    for name, rows, more in namespaces.found[:20]:
        out.say(f"  {line(masking.text(name), 80)}  " + out.paint(f"{'more than ' if more else ''}{rows:,}", "dim"))
    if namespaces.more or len(namespaces.found) > 20:
        out.say(out.paint("  … and more namespaces", "dim"))
    out.say()


def _item(item: Item, out: Out) -> None:
    facts = _facts(item, out)
    key = masking.text(item.key, show_secrets=out.show_secrets)
    out.say(f"{out.paint(line(item.namespace, 60), 'cyan')}  {out.paint(line(key, 60), 'bold')}  {out.paint(facts, 'dim')}")
    if item.whole:
        out.say("  " + out.brief(item.value, VALUE_WIDTH, item.key))
    else:
        head = masking.text(item.head, item.key, show_secrets=out.show_secrets)
        out.say(f"  {line(head, 120)} {out.paint(f'({labels.size(item.size_bytes)}; --key KEY reads it whole)', 'dim')}")


def _whole(item: Item, out: Out) -> None:
    from studio.tagged import dumps

    out.say(f"{out.paint(line(item.namespace, 200), 'cyan')}  {out.paint(line(item.key, 200), 'bold')}")
    out.say(out.paint(f"{_facts(item, out)}  {labels.size(item.size_bytes)}", "dim"))
    document = masking.document(item.value, item.key, show_secrets=out.show_secrets)
    out.say(clean(document if isinstance(document, str) else dumps(document, indent=2)))


def _facts(item: Item, out: Out) -> str:
    shown = [(name, value) for name, value in item.facts.items() if value is not None]
    return line("  ".join(f"{name} {_plain(name, value, out)}" for name, value in shown), 160)


def _plain(name: str, value: Plain, out: Out) -> str:
    if isinstance(value, str):
        return line(masking.text(value, name, show_secrets=out.show_secrets), 40)
    return out.brief(value, 40, name)


def _row(item: Item, out: Out) -> str:
    cells = []
    for name, value in item.facts.items():
        size = f" ({labels.size(item.cut[name])})" if name in item.cut else ""
        cells.append(f"{out.paint(line(name, 40), 'dim')} {out.brief(value, 60, name)}{size}")
    return "  ".join(cells)
