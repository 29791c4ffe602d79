// What another program writes appears by itself: the stream sends names, the ordinary fragments are fetched again. The cursor stays.

import { cursor, follow } from "./cursor.js";

const live = document.getElementById("live");
const rows = () => document.getElementById("rows");
const ROW = 40;

function grown() {
  const list = rows(), at = cursor();
  if (!list || !at) return;
  const first = Math.max(0, Math.floor(list.scrollTop / ROW)), last = first + Math.ceil(list.clientHeight / ROW);
  const url = new URL(list.dataset.href, location.href), here = new URLSearchParams(at.dataset.url.split("?")[1]);
  for (const name of ["at", "ns"]) if (here.get(name) !== null) url.searchParams.set(name, here.get(name));
  url.searchParams.set("visible", `${first},${last}`);
  htmx.ajax("GET", url.pathname + url.search, { source: document.getElementById("timeline"), target: "#timeline", swap: "innerMorph" });
  if (at.dataset.leaf === "1" && !document.querySelector(".editor-card") && location.pathname === at.dataset.url.split("?")[0]) {
    htmx.ajax("GET", at.dataset.url, { source: document.getElementById("centre"), target: "#centre", swap: "innerMorph" });
  }
}

if (live) {
  document.body.addEventListener("tree", () => {
    live.classList.remove("news");
    requestAnimationFrame(() => live.classList.add("news"));
    grown();
  });
  if (!live._htmx?.triggerSpecs.length) htmx.process(live); // htmx began before its stream extension was there
  if (live._htmx?.sse) state("on", "live");
  live.addEventListener("htmx:sse:after:connection", () => state("on", "live"));
  let seen = live._htmx?.sse ? 1 : 0; // a new stream may have missed what happened before it
  document.body.addEventListener("hello", () => seen++ && grown());
  live.addEventListener("htmx:sse:error", () => state("off", "not live"));
  live.addEventListener("htmx:sse:close", () => state("off", "not live"));
}

function state(name, words) {
  live.classList.remove("on", "off");
  live.classList.add(name);
  live.querySelector("span").textContent = words;
}

export { follow };
