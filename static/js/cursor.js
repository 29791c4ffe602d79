// The cursor of the timeline: rows and links move it, the URL follows, the stage is fetched. The server decides everything that is drawn.

const byId = (id) => document.getElementById(id);
const HERE = ["tab", "base", "base_ns"]; // what stays when another row is chosen
const ROW = 40;
let waiting = null; // a move that goes on when a chunk of rows has arrived
let restore = null; // scroll position and focus to give back after the swap

export const cursor = () => byId("cursor");
export const selectedRow = () => byId("rows")?.querySelector('.row[aria-selected="true"]');

/** Show another place. `push` false: replace the entry in the history. */
export function go(href, { push = true } = {}) {
  const stage = byId("stage");
  const url = new URL(href, location.href);
  if (!stage || url.pathname !== location.pathname && !url.pathname.startsWith(location.pathname + "/") || threadOf(url) !== threadOf(location)) {
    location.assign(url);
    return;
  }
  remember(url);
  const history = url.pathname !== location.pathname && !url.pathname.endsWith("/edit") && !url.pathname.endsWith("/step") ? {} : push ? { push: "true" } : { replace: "true" };
  htmx.ajax("GET", url.pathname + url.search, { source: stage, target: "#stage", swap: "innerHTML", ...history });
}

function threadOf(url) {
  return new URLSearchParams(url.search).get("thread") ?? threadOfCursor();
}

function threadOfCursor() {
  const url = cursor()?.dataset.url;
  return url ? new URLSearchParams(url.split("?")[1]).get("thread") : null;
}

function remember(url) {
  const now = new URLSearchParams(location.search), next = url.searchParams;
  const same = ["at", "tab", "ns"].every((name) => (now.get(name) ?? "") === (next.get(name) ?? "")) && url.pathname === location.pathname;
  const focused = document.activeElement?.closest?.("#stage a[href], #stage [id]");
  restore = { scroll: same ? byId("centre")?.scrollTop : 0, href: focused?.getAttribute("href"), id: focused?.id, side: same ? byId("side")?.scrollTop : 0 };
}

/** The row's place with the tab and the base that are open now. */
function rowTarget(row) {
  const url = new URL(row.href), here = new URLSearchParams(location.search);
  for (const name of HERE) {
    const value = here.get(name);
    if (value !== null && !(here.get("tab") === "branches")) url.searchParams.set(name, value);
  }
  return url.href;
}

export function select(row, { focus = false } = {}) {
  const old = selectedRow();
  if (old && old !== row) {
    old.setAttribute("aria-selected", "false");
    old.tabIndex = -1;
  }
  row.setAttribute("aria-selected", "true");
  row.tabIndex = 0;
  row.scrollIntoView({ block: "nearest" });
  if (focus) row.focus({ preventScroll: true });
}

function choose(row, options) {
  select(row, { focus: true });
  go(rowTarget(row), options);
}

function neighbour(row, step) {
  const side = step > 0 ? "nextElementSibling" : "previousElementSibling";
  let next = row[side];
  if (next?.classList.contains("row")) return next;
  const chunk = row.parentElement[side];
  if (!chunk?.classList.contains("chunk")) return null;
  if (chunk.classList.contains("waiting")) {
    waiting = () => move(step);
    chunk.scrollIntoView({ block: step > 0 ? "start" : "end" });
    return null;
  }
  return step > 0 ? chunk.querySelector(".row") : chunk.querySelector(".row:last-of-type");
}

export function move(step, options) {
  const row = selectedRow();
  const next = row ? neighbour(row, step) : byId("rows")?.querySelector(".row");
  if (next) choose(next, options);
}

/** To the first or last row; of a long thread its chunk is fetched first. */
export function jump(last) {
  const rows = byId("rows");
  const chunks = rows.querySelectorAll(".chunk");
  const chunk = chunks[last ? chunks.length - 1 : 0];
  if (!chunk) return;
  rows.scrollTop = last ? rows.scrollHeight : 0;
  if (chunk.classList.contains("waiting")) waiting = () => jump(last);
  else choose(chunk.querySelector(last ? ".row:last-of-type" : ".row"));
}

/** Let the timeline show where the stage is. */
export function follow() {
  const at = cursor(), rows = byId("rows");
  if (!at || !rows) return;
  const row = byId(at.dataset.dom);
  if (row) {
    select(row);
    return;
  }
  selectedRow()?.setAttribute("aria-selected", "false");
  const top = Number(at.dataset.index) * ROW;
  if (top < rows.scrollTop || top > rows.scrollTop + rows.clientHeight - ROW) rows.scrollTop = top - rows.clientHeight / 2;
  waiting = follow;
}

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = event.target.closest?.("a.row, a[data-go]");
  if (!link) return;
  event.preventDefault();
  if (link.classList.contains("row")) choose(link);
  else go(link.href);
  if (link.classList.contains("row")) delete document.body.dataset.drawer;
});

document.addEventListener("htmx:after:swap", (event) => {
  const target = event.detail.ctx?.target;
  if (target?.id === "stage") {
    const back = restore;
    restore = null;
    if (back?.scroll && byId("centre")) byId("centre").scrollTop = back.scroll;
    if (back?.side && byId("side")) byId("side").scrollTop = back.side;
    if (back && (back.href || back.id) && !document.activeElement?.closest("#rows, dialog")) {
      const again = (back.id && byId(back.id)) || [...byId("stage").querySelectorAll("a[href]")].find((link) => link.getAttribute("href") === back.href);
      again?.focus({ preventScroll: true });
    }
    follow();
  } else if (target?.closest?.("#timeline") || event.target.closest?.("#timeline")) {
    const step = waiting;
    waiting = null;
    if (step) step();
    else if (!selectedRow()) byId(cursor()?.dataset.dom)?.setAttribute("aria-selected", "true");
  }
});

document.addEventListener("htmx:before:history:restore", (event) => {
  event.preventDefault();
  const url = new URL(event.detail.path, location.href);
  if (!byId("stage") || threadOfCursor() !== (url.searchParams.get("thread") ?? threadOfCursor())) location.reload();
  else htmx.ajax("GET", event.detail.path, { source: byId("stage"), target: "#stage", swap: "innerHTML" });
});

const first = selectedRow();
if (first) first.scrollIntoView({ block: "center" });
else if (cursor()) follow();
