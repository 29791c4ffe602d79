// One listener for all keys. Which key means what stands in the help dialog, which the server prints from its table of actions.

import { jump, move, showSelected } from "./cursor.js";

const table = new Map();
for (const entry of document.querySelectorAll("[data-keys]")) {
  for (const key of entry.dataset.keys.split(" ")) table.set(key, entry.dataset.action);
}
const FOCUS = new Set(["run", "copy_fork", "answer", "search"]); // what a key points at instead of pressing it: nothing runs by accident

function visible(element) {
  return element.getClientRects().length > 0 || element.matches("a[hidden], span[hidden] a");
}

/** In a narrow window a column that has no place of its own is opened; what it explains stays in sight. */
export function openSide(name) {
  document.body.dataset.drawer = name;
  showSelected();
}

function reveal(element) {
  if (element.closest("#side")) openSide("side");
  element.closest("details")?.setAttribute("open", "");
}

/** Every dialog is opened here: what it kept from the last time goes before it is seen, not when an event of its closing comes. */
export function openDialog(dialog) {
  if (!dialog || dialog.open) return;
  dialog.dispatchEvent(new Event("studio:opening"));
  dialog.showModal();
}

export function act(id, event) {
  switch (id) {
    case "down": return move(1, { push: !event?.repeat });
    case "up": return move(-1, { push: !event?.repeat });
    case "first": return jump(false);
    case "last": return jump(true);
    case "why": return show(document.querySelector(".why a, .why h2"));
    case "fork": return show(document.querySelector("#fork-form textarea, #fork-form [data-do=edit], #fork-form button"));
  }
  const found = [...document.querySelectorAll(`[data-do="${CSS.escape(id)}"]`)].filter((element) => element.isConnected);
  const element = found.find(visible) ?? found[0];
  if (!element) return;
  if (FOCUS.has(id)) show(element);
  else element.click();
}

function show(element) {
  if (!element) return;
  reveal(element);
  if (!element.matches("a, button, input, textarea, [tabindex]")) element.tabIndex = -1;
  element.focus();
  element.scrollIntoView({ block: "nearest" });
  if (element.matches("textarea, input")) element.select?.();
}

function typing(event) {
  const element = event.composedPath()[0];
  return element instanceof Element && (element.matches("input:not([type=checkbox], [type=range]), textarea, select") || element.isContentEditable || element.closest("[contenteditable]"));
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey) return;
  if (event.ctrlKey || event.metaKey) {
    if (event.key === "p" && !event.shiftKey) {
      event.preventDefault();
      openDialog(document.getElementById("help"));
    }
    return;
  }
  if (event.key === "Escape") {
    const dialog = document.querySelector("dialog[open]");
    if (dialog) {
      if (event.target.matches("[data-clears]") && event.target.value) return; // the browser empties a search field
      event.preventDefault(); // a search field would only empty itself
      document.activeElement?.blur(); // a closed dialog keeps the focus until the next frame
      dialog.close();
      return;
    }
    if (typing(event)) document.activeElement?.blur();
    else delete document.body.dataset.drawer;
    return;
  }
  if (typing(event) || document.querySelector("dialog[open]")) return;
  if (event.target.matches?.("[role=slider], input[type=range]") && event.key.startsWith("Arrow")) return;
  const scrolls = (event.target.closest?.("pre, .log") || event.target.matches?.(".g-frame")) && /^(Arrow|Home|End)/.test(event.key);
  const id = scrolls ? null : table.get(event.key);
  if (!id) return;
  event.preventDefault();
  act(id, event);
});
