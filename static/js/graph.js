// The picture of the graph: its superstep in sight when one steps, larger and smaller, the whole. Only the frame scrolls, never the page.

import { cursor } from "./cursor.js";

const STEP = 1.25, SMALLEST = 0.04, LARGEST = 3, MARGIN = 14;
let zoom = null; // null: as the page draws it; "whole": all of it in the frame; else a factor
let seen = { graph: "", row: "", left: 0, top: 0 }; // what the frame showed last, for the frame that takes its place

const frame = () => document.getElementById("picture");
const drawing = () => frame()?.querySelector(".g-svg");
const full = () => { const box = drawing().viewBox.baseVal; return { width: box.width, height: box.height }; };
const scale = () => drawing().getBoundingClientRect().width / full().width;

/** Where a part of the drawing is, in the frame's scrolled content. */
function place(element) {
  const outer = frame().getBoundingClientRect(), box = element.getBoundingClientRect();
  const left = box.left - outer.left - frame().clientLeft + frame().scrollLeft, top = box.top - outer.top - frame().clientTop + frame().scrollTop;
  return { left, top, right: left + box.width, bottom: top + box.height };
}

const around = (places) => ({
  left: Math.min(...places.map((one) => one.left)), top: Math.min(...places.map((one) => one.top)),
  right: Math.max(...places.map((one) => one.right)), bottom: Math.max(...places.map((one) => one.bottom)),
});
const middle = (box) => ({ x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2 });
const places = (kind) => [...drawing().querySelectorAll(`.g-node.${kind}`)].map(place);
const fits = (box) => box.right - box.left + 2 * MARGIN <= frame().clientWidth && box.bottom - box.top + 2 * MARGIN <= frame().clientHeight;
const sight = () => ({ left: frame().scrollLeft, top: frame().scrollTop, right: frame().scrollLeft + frame().clientWidth, bottom: frame().scrollTop + frame().clientHeight });
const inside = (box, outer) => box.left >= outer.left && box.right <= outer.right && box.top >= outer.top && box.bottom <= outer.bottom;

/** The superstep: what ran with what comes next where both have room, else what ran, else the first of it. */
function lit() {
  const ran = places("ran"), next = places("next");
  const groups = [[...ran, ...next], ran, ran.slice(0, 1), next, next.slice(0, 1), places("inside")].filter((group) => group.length);
  return groups.map(around).find(fits) ?? (groups.length ? around((ran.length ? ran : next).slice(0, 1)) : null);
}

/** Scroll the frame until the superstep is in sight; not at all where it is. */
function show() {
  const box = lit();
  if (box && !inside(box, sight())) centre(middle(box));
}

function centre(point) {
  frame().scrollTo({ left: point.x - frame().clientWidth / 2, top: point.y - frame().clientHeight / 2, behavior: "instant" });
}

/** The factor at which all of it is in the frame. */
function whole() {
  const style = getComputedStyle(frame()), { width, height } = full();
  const wide = frame().clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  const high = parseFloat(style.maxHeight) - parseFloat(style.paddingTop) - parseFloat(style.paddingBottom);
  return Math.min(1, wide / width, (high || frame().clientHeight) / height);
}

/** Draw at the chosen size, and say it. */
function size() {
  const at = frame(), picture = drawing(), factor = zoom === "whole" ? whole() : zoom;
  at.classList.toggle("zoomed", factor !== null);
  picture.style.width = factor === null ? "" : `${factor * full().width}px`;
  const tools = at.closest(".g-card").querySelector(".g-tools"), now = scale();
  const overflows = at.scrollWidth > at.clientWidth + 1 || at.scrollHeight > at.clientHeight + 1;
  tools.hidden = zoom === null && !overflows && now > 0.99;
  tools.querySelector("output").textContent = `${Math.round(now * 100)} %`;
  tools.querySelector('[data-do="zoom_whole"]').setAttribute("aria-pressed", String(zoom === "whole"));
  tools.querySelector('[data-do="zoom_in"]').disabled = now >= LARGEST;
  tools.querySelector('[data-do="zoom_out"]').disabled = now <= SMALLEST;
}

/** Another size; the point `at` of the frame stays where it is: the superstep if it is in sight, else the middle. */
function resize(next, at = null) {
  const box = lit(), before = sight(), old = scale();
  const still = at ?? (box && inside(middleBox(box), before) ? middle(box) : middle(before));
  const style = getComputedStyle(frame()), x = still.x - before.left, y = still.y - before.top;
  const left = parseFloat(style.paddingLeft), top = parseFloat(style.paddingTop);
  zoom = next;
  size();
  const by = scale() / old;
  frame().scrollTo({ left: (still.x - left) * by + left - x, top: (still.y - top) * by + top - y, behavior: "instant" });
}

function middleBox(box) {
  const { x, y } = middle(box);
  return { left: x, right: x, top: y, bottom: y };
}

const larger = (by, at) => resize(Math.min(LARGEST, Math.max(SMALLEST, scale() * by)), at);

/** A new frame, or the same drawn anew. Another superstep or graph is brought into sight; what was only drawn anew stays where it was. */
function draw() {
  if (!frame()) {
    seen = { ...seen, row: "" };
    return;
  }
  const graph = frame().dataset.graph, row = cursor()?.dataset.row ?? "", before = seen;
  size();
  if (graph === before.graph) frame().scrollTo({ left: before.left, top: before.top, behavior: "instant" });
  if (graph !== before.graph || row !== before.row) show();
  seen = { graph, row, left: frame().scrollLeft, top: frame().scrollTop };
  watcher.observe(frame());
}

const watcher = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.isConnected) size();
    else watcher.unobserve(target);
  }
});

document.addEventListener("scroll", (event) => {
  if (event.target === frame()) seen = { ...seen, left: frame().scrollLeft, top: frame().scrollTop };
}, { capture: true, passive: true });

document.addEventListener("click", (event) => {
  const id = event.target.closest?.(".g-tools [data-do]")?.dataset.do;
  if (!id || !drawing()) return;
  if (id === "zoom_in") larger(STEP);
  else if (id === "zoom_out") larger(1 / STEP);
  else if (zoom === "whole") {
    zoom = null;
    size();
    show();
  } else resize("whole");
});

document.addEventListener("wheel", (event) => {
  if (!event.ctrlKey || !event.target.closest?.("#picture")) return;
  event.preventDefault(); // the window's own zoom
  const outer = frame().getBoundingClientRect();
  larger(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 240), { x: event.clientX - outer.left + frame().scrollLeft, y: event.clientY - outer.top + frame().scrollTop });
}, { passive: false });

document.addEventListener("htmx:after:swap", draw);
const stage = document.getElementById("stage");
if (stage) new MutationObserver(draw).observe(stage, { childList: true }); // before it is painted: the swap's own event comes two frames later
draw();
