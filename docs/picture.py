"""Takes the README's picture: the refund story in the browser view, at the step that planned the wrong refund.

python docs/picture.py [OUT.png]      needs playwright and a Chromium (`CHROMIUM` names its program)
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
THREAD = {"thread": "refund-4711"}


def main(out: Path) -> None:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "studio", "demo", "--no-browser", "--port", "0"]
        env = {**os.environ, "XDG_DATA_HOME": data, "PYTHONPATH": str(HERE.parent)}
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        try:
            assert server.stdout is not None
            link = re.search(r"http://\S+", server.stdout.readline())
            assert link, "studio demo printed no link"
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                page = browser.new_page(viewport={"width": 1440, "height": 740}, color_scheme="light")
                page.goto(link[0])
                view = f"{link[0].split('?')[0]}f/support_agent.sqlite"
                page.goto(f"{view}?{urlencode(THREAD)}")
                page.get_by_text("plan_refund", exact=True).first.click()
                page.wait_for_url("**at=**")
                page.goto(f"{page.url}&{urlencode({'path': '/refund'})}")
                page.wait_for_timeout(1500)
                page.screenshot(path=out)
                browser.close()
        finally:
            server.terminate()
            server.wait(10)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "browser.png")
