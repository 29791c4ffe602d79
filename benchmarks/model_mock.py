"""A model's API on this machine, with scripted answers: what the real programs send is kept, and nothing leaves the machine.

Two protocols, as the programs speak them: `/v1/messages` (events of Anthropic's API) and `/v1/responses` (those of OpenAI's).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Doc = dict[str, Any]
Answer = Callable[[Doc], list[Doc]]
"""A request -> the parts of the answer: {"text": …}, {"call": id, "name": …, "input": …}."""


class Mock:
    """Serves until it is closed; `requests` holds (path, body) of each call that asked for an answer."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[tuple[str, Doc]] = []
        self.answer = answer
        self.count = 0
        mock = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words: Any) -> None:
                pass

            def do_GET(self) -> None:
                self._send(b'{"data":[],"models":[],"object":"list"}', "application/json")

            def do_HEAD(self) -> None:
                self._send(b"", "application/json")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                try:
                    document = json.loads(body)
                except ValueError:
                    document = {}
                path = self.path.partition("?")[0]
                if path.endswith("/count_tokens"):
                    self._send(b'{"input_tokens":100}', "application/json")
                elif path.endswith(("/messages", "/responses")):
                    mock.requests.append((path, document))
                    events = mock.events(path, document)
                    self._stream(events) if document.get("stream") else self._send(mock.whole(document), "application/json")
                else:
                    self._send(b"{}", "application/json")

            def _send(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _stream(self, events: Iterator[Doc]) -> None:
                text = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in events)
                self._send(text.encode(), "text/event-stream")

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A program that ends leaves its connections."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def events(self, path: str, document: Doc) -> Iterator[Doc]:
        self.count += 1
        parts = self.answer(document)
        return _messages(parts, self.count) if path.endswith("/messages") else _responses(parts, self.count)

    def whole(self, document: Doc) -> bytes:
        """An answer of one piece, as side requests ask for (titles, topics)."""
        message = {
            "id": f"msg_side{self.count:08}", "type": "message", "role": "assistant", "model": document.get("model", "model"),
            "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        return json.dumps(message).encode()


def _messages(parts: list[Doc], number: int) -> Iterator[Doc]:
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    message = {
        "id": f"msg_{number:020}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    yield {"type": "message_start", "message": message}
    for index, part in enumerate(parts):
        if "text" in part:
            yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
            yield {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": part["text"]}}
        else:
            block = {"type": "tool_use", "id": part["call"], "name": part["name"], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(part["input"])}
            yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if any("call" in part for part in parts) else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 20}}
    yield {"type": "message_stop"}


def _responses(parts: list[Doc], number: int) -> Iterator[Doc]:
    ident = f"resp_{number:020}"
    yield {"type": "response.created", "response": {"id": ident}}
    for index, part in enumerate(parts):
        if "text" in part:
            content = [{"type": "output_text", "text": part["text"], "annotations": []}]
            item = {
                "type": "message",
                "role": "assistant",
                "id": f"msg_{number}_{index}",
                "status": "completed",
                "content": content,
            }
        else:
            item = {
                "type": "function_call", "id": f"fc_{number}_{index}", "call_id": part["call"], "name": part["name"],
                "arguments": json.dumps(part["input"]), "status": "completed",
            }  # fmt: skip
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {
        "input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 110,
    }  # fmt: skip
    yield {"type": "response.completed", "response": {"id": ident, "usage": usage, "output": []}}
