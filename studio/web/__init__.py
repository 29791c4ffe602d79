"""The browser view: FastAPI and Jinja2 draw fragments, htmx swaps them, the URL is the state.

create_app(sessions)    the application, for tests and for other servers
serve(session, …)       a local server with a start-up token
"""

from studio.web.app import create_app
from studio.web.server import serve

__all__ = ["create_app", "serve"]
