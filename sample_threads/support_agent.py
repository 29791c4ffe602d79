"""The support agent: reads a customer's message, looks the order up, plans a refund, asks a colleague, pays, replies.

Every node reads what it needs from the state and from `facts.json`, so a changed value gives a different future.
"""

from __future__ import annotations

import json
import re
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt
from scripted_model import Reply, ScriptedModel, think

TODAY = date(2026, 3, 14)
"""The calendar of the story stands still, so that runs on different days can be compared."""
FACTS = json.loads(Path(__file__).with_name("facts.json").read_text("utf-8"))["shop"]
"""What the tools know: orders, returns policies, earlier tickets."""


class SupportState(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    intent: dict[str, Any]
    order: dict[str, Any] | None
    policy: dict[str, Any]
    history: list[str]
    refund: dict[str, Any] | None
    case_note: str
    notes: list[str]
    approval: dict[str, Any] | None


class ReviewState(TypedDict, total=False):
    order: dict[str, Any]
    policy: dict[str, Any]
    case_note: str
    notes: list[str]


class Review(TypedDict, total=False):
    """What the subgraph hands back."""

    case_note: str
    notes: list[str]


def customer_text(state: SupportState) -> str:
    return str(next(message.content for message in reversed(state["messages"]) if isinstance(message, HumanMessage)))


def parse_total(text: str) -> float:
    """Read a price as the shop's present system writes it: `1,249.00`, the comma between thousands.

    Orders below 5000 come from the old system, which wrote `49,9` for forty-nine ninety. Nobody told this function.
    """
    return float(text.replace(",", ""))


def classify(state: SupportState) -> SupportState:
    answer = MODEL.ask("classify", state["messages"], 0.6, text=customer_text(state))
    forget = {key: None for key in ("order", "refund", "approval") if state.get(key)}
    return {"intent": json.loads(str(answer.content)), **forget}  # type: ignore[typeddict-item]


def look_up_order(state: SupportState) -> SupportState:
    number = state["intent"]["order"]
    asked = MODEL.ask("look_up_order", state["messages"], 0.4, order=number)
    think(1.1)
    record = FACTS["orders"].get(number)
    answer = {"order": number, **record, "currency": "EUR"} if record else {"order": number, "error": "not found"}
    called = asked.tool_calls[0]["id"] or ""
    told = ToolMessage(json.dumps(answer), tool_call_id=called, name="look_up_order", id=f"tool-{len(state['messages']) + 2}")
    if record is None:
        return {"messages": [asked, told], "order": None}
    order = {
        "number": number,
        "item": record["item"],
        "category": record["category"],
        "total": parse_total(record["total"]),
        "currency": "EUR",
        "delivered": date.fromisoformat(record["delivered"]),
    }
    return {"messages": [asked, told], "order": order}


def read_policy(state: SupportState) -> SupportState:
    think(0.3)
    category = (state.get("order") or {}).get("category")
    policies = FACTS["policies"]
    if category not in policies:
        raise LookupError(f"no returns policy for the category {category!r}; there are {', '.join(sorted(policies))}")
    return {"policy": policies[category]}


def read_history(state: SupportState) -> SupportState:
    think(0.8)
    return {"history": FACTS["history"].get((state.get("order") or {}).get("number", ""), [])}


def plan_refund(state: SupportState) -> SupportState:
    order = state["order"] or {}
    refund = {
        "order": order["number"],
        "amount": order["total"],
        "currency": order["currency"],
        "due": TODAY + timedelta(days=5),
        "status": "planned",
    }
    return {"refund": refund, "messages": [MODEL.ask("plan_refund", state["messages"], 2.4, order=order, amount=order["total"])]}


def draft(state: ReviewState) -> ReviewState:
    days = (TODAY - state["order"]["delivered"]).days
    note = MODEL.ask("draft", (), 0.7, days=days, allowed=state["policy"]["days"], rule=state["policy"]["rule"])
    return {"case_note": str(note.content)}


def critique(state: ReviewState) -> ReviewState:
    better = str(MODEL.ask("critique", (), 0.9, text=state["case_note"], item=state["order"]["item"]).content)
    found = "says which product came back" if better == state["case_note"] else "did not say which product came back: added"
    return {"case_note": better, "notes": [f"draft {found}", "draft names the rule and the days"]}


def ask_approval(state: SupportState) -> SupportState:
    refund = state["refund"] or {}
    question = f"Approve the refund of {refund['amount']:.2f} {refund['currency']} for order {refund['order']}?"
    note = state.get("case_note", "")
    answer = interrupt({"question": question, "amount": refund["amount"], "case_note": note, "choices": ["yes", "no"]})
    if isinstance(answer, dict):
        answer = answer.get("approved")
    return {"approval": {"approved": answer is True or str(answer).strip().lower() in ("yes", "y", "true"), "answer": answer}}


def issue_refund(state: SupportState) -> SupportState:
    """Pay: this is the node whose effect leaves the conversation."""
    think(0.9)
    refund = state["refund"] or {}
    cents = round(refund["amount"] * 100)
    print(f"payment service: {refund['amount']:.2f} {refund['currency']} sent for order {refund['order']}")
    receipt = {"receipt": f"PAY-{refund['order']}-{cents}", "amount": refund["amount"], "status": "paid"}
    called = f"call_issue_refund_{refund['order']}"
    told = ToolMessage(json.dumps(receipt), tool_call_id=called, name="issue_refund", id=f"tool-{len(state['messages']) + 1}")
    return {"refund": {**refund, "status": "paid", "receipt": receipt["receipt"]}, "messages": [told]}


def reply(state: SupportState) -> SupportState:
    intent, approval = state["intent"], state.get("approval") or {}
    facts = {
        "wants": intent["wants"],
        "number": intent["order"],
        "text": customer_text(state),
        "order": state.get("order"),
        "refund": state.get("refund"),
        "approved": approval.get("approved"),
    }
    return {"messages": [MODEL.ask("reply", state["messages"], 1.2, **facts)]}


def after_classify(state: SupportState) -> str:
    return "look_up_order" if state["intent"]["order"] else "reply"


def after_look_up(state: SupportState) -> list[str]:
    return ["read_policy", "read_history"] if state["intent"]["wants"] == "refund" and state.get("order") else ["reply"]


def after_approval(state: SupportState) -> str:
    return "issue_refund" if (state.get("approval") or {}).get("approved") else "reply"


def tool_call(name: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": f"call_{name}_{args['order']}"}


def say_intent(facts: dict[str, Any]) -> Reply:
    text = facts["text"].lower()
    wants = "refund" if re.search(r"refund|money back", text) else "question"
    order = re.search(r"\border (\d{4})\b", text)
    return json.dumps({"wants": wants, "order": order[1] if order else None}), []


def say_look_up(facts: dict[str, Any]) -> Reply:
    return "", [tool_call("look_up_order", order=facts["order"])]


def say_plan(facts: dict[str, Any]) -> Reply:
    order, amount = facts["order"], facts["amount"]
    money = f"{amount:.2f} {order['currency']}"
    text = f"I will refund {money} for order {order['number']}. One moment while a colleague approves it."
    return text, [tool_call("issue_refund", order=order["number"], amount=amount)]


def say_draft(facts: dict[str, Any]) -> Reply:
    late = facts["days"] > facts["allowed"]
    when = f"{facts['days']} days after delivery, {'outside' if late else 'within'} the {facts['allowed']} days"
    return f"The customer returned the product {when} of rule {facts['rule']}.", []


def say_critique(facts: dict[str, Any]) -> Reply:
    return facts["text"].replace("the product", f"the {facts['item']}"), []


def say_reply(facts: dict[str, Any]) -> Reply:
    order, refund, approved = facts["order"], facts["refund"], facts["approved"]
    if facts["wants"] == "refund" and refund:
        money = f"{refund['amount']:.2f} {refund['currency']}"
        if approved:
            return f"Good news: I have refunded {money} for your {order['item']}. You will see it by {refund['due']}.", []
        return f"I am sorry: my colleague did not approve the refund of {money} for your {order['item']}.", []
    if order:
        money = f"{order['total']:.2f} {order['currency']}"
        return f"Our records say that order {order['number']} ({order['item']}) cost {money}.", []
    if facts["number"]:
        return f"I cannot find an order {facts['number']}. Could you check the number?", []
    if "monday" in facts["text"].lower():
        return "On Easter Monday the shop is closed; the chat is open as on every day.", []
    return "The shop is open Monday to Saturday from 10 to 19 h, the chat every day.", []


MODEL = ScriptedModel(
    script={
        "classify": say_intent,
        "look_up_order": say_look_up,
        "plan_refund": say_plan,
        "draft": say_draft,
        "critique": say_critique,
        "reply": say_reply,
    }
)


def build_support_agent() -> StateGraph[SupportState]:
    review = StateGraph(ReviewState, output_schema=Review)
    review.add_node("draft", draft)
    review.add_node("critique", critique)
    review.add_edge(START, "draft")
    review.add_edge("draft", "critique")
    review.add_edge("critique", END)

    graph = StateGraph(SupportState)
    for node in (classify, look_up_order, read_policy, read_history, plan_refund, ask_approval, issue_refund, reply):
        graph.add_node(node.__name__, node)
    graph.add_node("review", review.compile())
    graph.add_edge(START, "classify")
    graph.add_conditional_edges("classify", after_classify, ["look_up_order", "reply"])
    graph.add_conditional_edges("look_up_order", after_look_up, ["read_policy", "read_history", "reply"])
    graph.add_edge(["read_policy", "read_history"], "plan_refund")
    graph.add_edge("plan_refund", "review")
    graph.add_edge("review", "ask_approval")
    graph.add_conditional_edges("ask_approval", after_approval, ["issue_refund", "reply"])
    graph.add_edge("issue_refund", "reply")
    graph.add_edge("reply", END)
    return graph


graph = build_support_agent().compile(name="support_agent")
