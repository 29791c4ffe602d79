// The cursor of the timeline: rows and links move it, the URL follows, the stage is fetched. The server decides everything that is drawn.

const byId = (id) => document.getElementById(id);
const HERE = ["tab", "base", "base_ns", "left", "left_ns", "left_thread", "node"]; // what stays when another row is chosen
const ROW = 40;
let waiting = null; // a move that goes on when a chunk of rows has arrived
let restore = null; // scroll position and focus to give back after the swap
let chosen = null; // the row that was chosen last, while its stage is still on the way

export const cursor = () => byId("cursor");
/** Where the cursor is for the person who moves it: the row chosen last, else the one that the stage shows. */
const current = () => chosen ?? cursor()?.dataset.row;
const rowAt = (href) => (href ? byId("rows")?.querySelector(`.row[href="${href}"]`) : null);

export const selectedRow = () => byId("rows")?.querySelector('.row[aria-selected="true"]');

/** Show another place. `push` false: replace the entry in the history. */
export function go(href, { push = true } = {}) {
  const stage = byId("stage"), url = new URL(href, location.href);
  if (!stage || !STAGES.has(partOf(url)) || fileOf(url) !== fileOf(location) || threadOf(url) !== threadOf(location)) {
    location.assign(url);
    return;
  }
  settle(url);
  if (partOf(url) === "step") chosen = null; // its answer says which row it is: none that was chosen before
  remember(url);
  htmx.ajax("GET", url.pathname + url.search, { source: stage, target: "#stage", swap: "innerHTML", [push ? "push" : "replace"]: "true" });
}

const STAGES = new Set(["", "edit", "messages", "step"]); // parts of a file's address that answer with a stage
const fileOf = (url) => url.pathname.split("/")[2];
const partOf = (url) => url.pathname.split("/").slice(3).join("/");
const paramsOf = (href) => new URLSearchParams(href?.split("?")[1]);
const threadOf = (url) => new URLSearchParams(url.search).get("thread") ?? paramsOf(cursor()?.dataset.row).get("thread");

/** While a chosen row's stage is on the way, the links of the old stage mean the chosen row. */
function settle(url) {
  if (!chosen) return;
  const old = paramsOf(cursor()?.dataset.row), next = paramsOf(chosen), at = url.searchParams.get("at");
  if (at === next.get("at")) return;
  if (at !== old.get("at")) {
    chosen = null;
    return;
  }
  for (const name of ["at", "ns"]) {
    if (next.get(name) === null) url.searchParams.delete(name);
    else url.searchParams.set(name, next.get(name));
  }
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
    if (value !== null) url.searchParams.set(name, value);
  }
  return url.href;
}

/** Mark one row and no other; `row` null marks none. */
function mark(row) {
  for (const old of byId("rows").querySelectorAll('.row[aria-selected="true"]')) {
    if (old === row) continue;
    old.setAttribute("aria-selected", "false");
    old.tabIndex = -1;
  }
  row?.setAttribute("aria-selected", "true");
  if (row) row.tabIndex = 0;
}

function select(row) {
  mark(row);
  row.scrollIntoView({ block: "nearest" });
}

function choose(row, options) {
  select(row);
  row.focus({ preventScroll: true });
  chosen = row.getAttribute("href");
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

/** Bring a value that the address names into view. */
export function showSelected() {
  if (!paramsOf(cursor()?.dataset.url).get("path")) return;
  byId("centre")?.querySelector(".selected")?.scrollIntoView({ block: "nearest" });
}

/** Mark the row that every diff is compared with. */
function markPinned() {
  const pinned = rowAt(cursor()?.dataset.pinned);
  for (const old of byId("rows")?.querySelectorAll(".row.pinned") ?? []) if (old !== pinned) old.classList.remove("pinned");
  pinned?.classList.add("pinned");
}

/** Let the timeline show where the stage is. */
export function follow() {
  const at = cursor(), rows = byId("rows");
  if (!at || !rows) return;
  markPinned();
  if (chosen === at.dataset.row) chosen = null;
  if (chosen) return; // an older answer: the stage of the row that was chosen since is on its way
  const row = rowAt(at.dataset.row);
  if (row) {
    select(row);
    return;
  }
  mark(null);
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
  else go(link.getAttribute("href")); // the link of a drawing has no plain `href`
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
    if (!back?.scroll) showSelected();
    follow();
  } else if (target?.closest?.("#timeline") || event.target.closest?.("#timeline")) {
    markPinned();
    mark(rowAt(current())); // the cursor may have moved while the rows were on their way
    const step = waiting;
    waiting = null;
    if (step) step();
  }
});

for (const failure of ["htmx:error", "htmx:response:error"]) document.addEventListener(failure, () => { chosen = null; });

document.addEventListener("htmx:before:history:restore", (event) => {
  event.preventDefault();
  chosen = null;
  const url = new URL(event.detail.path, location.href);
  if (!byId("stage") || threadOf(url) !== paramsOf(cursor()?.dataset.row).get("thread")) location.reload();
  else htmx.ajax("GET", event.detail.path, { source: byId("stage"), target: "#stage", swap: "innerHTML" });
});

const first = selectedRow();
if (first) first.scrollIntoView({ block: "center" });
else if (cursor()) follow();
markPinned();
showSelected();
