// What another program writes appears by itself: the stream sends names, the ordinary fragments are fetched again. The cursor stays.

import { cursor } from "./cursor.js";

const live = document.getElementById("live");
const rows = () => document.getElementById("rows");
const ROW = 40;

async function grown() {
  const list = rows(), at = cursor();
  if (!list || !at) return;
  const total = Number(list.dataset.total);
  const first = Math.max(0, Math.floor(list.scrollTop / ROW)), last = first + Math.ceil(list.clientHeight / ROW);
  const url = new URL(list.dataset.href, location.href), here = new URLSearchParams(at.dataset.url.split("?")[1]);
  for (const name of ["at", "ns"]) if (here.get(name) !== null) url.searchParams.set(name, here.get(name));
  url.searchParams.set("visible", `${first},${last}`);
  const known = new Set([...list.querySelectorAll(".row")].map((row) => row.id));
  const drawn = htmx.ajax("GET", url.pathname + url.search, { source: document.getElementById("timeline"), target: "#timeline", swap: "innerMorph" });
  if (at.dataset.leaf === "1" && !document.querySelector(".editor-card") && location.pathname === at.dataset.url.split("?")[0]) {
    htmx.ajax("GET", at.dataset.url, { source: document.getElementById("centre"), target: "#centre", swap: "innerMorph" });
  }
  await drawn;
  for (const row of known.size ? document.querySelectorAll("#rows .chunk:not(.waiting) .row") : []) {
    if (!known.has(row.id) && Number(row.ariaPosInSet) > total) row.classList.add("fresh");
  }
}

if (live) {
  let there = true; // while the file is away nothing can be fetched, and what was read stays
  document.body.addEventListener("tree", () => {
    if (!there) return;
    live.classList.remove("news");
    requestAnimationFrame(() => live.classList.add("news"));
    grown();
  });
  if (!live._htmx?.triggerSpecs.length) htmx.process(live); // htmx began before its stream extension was there
  if (live._htmx?.sse) state("on", "live");
  live.addEventListener("htmx:sse:after:connection", () => state("on", "live"));
  let seen = live._htmx?.sse ? 1 : 0; // a new stream may have missed what happened before it
  document.body.addEventListener("hello", () => seen++ && grown());
  document.body.addEventListener("lost", () => {
    there = false;
    state("off", "not live: no file", "The file is gone or cannot be read: what is shown may be old.");
  });
  document.body.addEventListener("followed", () => {
    there = true;
    state("on", "live");
  });
  live.addEventListener("htmx:sse:error", () => state("off", "not live"));
  live.addEventListener("htmx:sse:close", () => state("off", "not live"));
}

function state(name, words, why = "") {
  live.classList.remove("on", "off");
  live.classList.add(name);
  live.querySelector("span").textContent = words;
  live.title = why;
}
