// Dialogs, the two drawers of narrow windows, notices, the scrubber, and the log that stays at its end.

import { go } from "./cursor.js";
import { openDialog, openSide } from "./keys.js";

const drawer = document.getElementById("drawer");

document.addEventListener("click", (event) => {
  const opener = event.target.closest?.("[data-opens]");
  if (opener) openDialog(document.getElementById(opener.dataset.opens));
  const side = event.target.closest?.("[data-drawer]:not(body)");
  if (side) {
    const open = document.body.dataset.drawer === side.dataset.drawer;
    if (open) delete document.body.dataset.drawer;
    else openSide(side.dataset.drawer);
  } else if (document.body.dataset.drawer === "timeline" && event.target.closest("#centre")) {
    delete document.body.dataset.drawer;
  }
  event.target.closest?.("[data-dismiss]")?.closest(".notice-box")?.remove();
  if (event.target instanceof HTMLDialogElement && outside(event.target, event)) event.target.close();
});

function outside(dialog, event) {
  const box = dialog.getBoundingClientRect();
  return event.clientX < box.left || event.clientX > box.right || event.clientY < box.top || event.clientY > box.bottom;
}

document.addEventListener("htmx:after:swap", (event) => {
  const target = event.detail.ctx?.target;
  if (target === drawer) openDialog(drawer);
  if (target === drawer) drawer.querySelector("[autofocus]")?.focus();
  if (target === drawer) takeOver(drawer.querySelector("#search-again"));
  if (target?.id === "stage" && document.getElementById("run")) openSide("side");
  const log = document.querySelector("#run .log");
  if (log && target?.closest?.("#run, #stage")) log.scrollTop = log.scrollHeight;
});

/** A run that would do nothing cannot be pressed; the promise beside the button says why. */
document.addEventListener("htmx:after:swap", () => {
  const button = document.querySelector("#fork-form button[value=run]"), why = document.querySelector("#fork-form #nothing-runs");
  if (!button) return;
  button.disabled = Boolean(why);
  button.title = why ? why.lastChild.textContent.trim() : "";
});

const search = document.querySelector(".top .search input[type=search]");
let typed = 0;
search?.addEventListener("input", () => {
  clearTimeout(typed);
  if (search.value.trim()) typed = setTimeout(() => search.form.requestSubmit(), 300);
});
search?.form.addEventListener("submit", () => clearTimeout(typed));

/** The field of the dialog goes on where the one of the header was, with what was typed while the dialog was on its way. */
function takeOver(field) {
  if (!field || !search) return;
  clearTimeout(typed);
  const words = search.value;
  search.value = "";
  if (words && words.trim() !== field.value) {
    field.value = words;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  field.setSelectionRange(field.value.length, field.value.length);
}

let timer = 0;
document.addEventListener("input", (event) => {
  const range = event.target.closest?.("[data-scrub]");
  if (!range) return;
  const href = `${range.dataset.scrub}&step=${range.value}`; // taken now: a page that arrives meanwhile sets the range back
  clearTimeout(timer);
  timer = setTimeout(() => go(href, { push: false }), 90);
});
document.addEventListener("submit", (event) => {
  if (event.target.id === "scrub") event.preventDefault();
});
