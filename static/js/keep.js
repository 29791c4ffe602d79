// What was typed into the fork form stays: when another value of this checkpoint is chosen it joins the form, and when the
// page comes back to a checkpoint, also from another thread or after a reload, the form is as it was left. Drafts lie in the
// tab's own session storage: they go with the tab, and a value that the page masks is masked in them.

import { go } from "./cursor.js";

const PATH = /[?&]path=([^&]+)/;
const DRAFT = "studio-draft\n";
let typed = false;
let changes = 0; // how often something in the form was changed: an answer about less than that is overtaken
let sent = null; // the form that was sent, and the checkpoint that it is about; it may come back with what was typed
let saving = 0;

const theForm = () => document.getElementById("fork-form");
/** The file and checkpoint that a form is about. */
function placeOf(form) {
  const url = new URL(form.action, location.href);
  return [url.pathname.split("/")[2], ...["thread", "ns", "at"].map((name) => url.searchParams.get(name) ?? "")].join("\n");
}

const store = {
  read(place) {
    try {
      return JSON.parse(sessionStorage.getItem(DRAFT + place) ?? "null");
    } catch {
      return null;
    }
  },
  keep(place, fields) {
    try {
      sessionStorage.setItem(DRAFT + place, JSON.stringify(fields));
    } catch {
      sessionStorage.removeItem(DRAFT + place); // more than a browser keeps: none rather than an old one
    }
  },
  drop: (place) => sessionStorage.removeItem(DRAFT + place),
};

function save() {
  clearTimeout(saving);
  const form = theForm();
  if (!typed || !form) return;
  store.keep(placeOf(form), [...new FormData(form)].filter(([name]) => name !== "act" && name !== "planned"));
}

/** Say in the form that it holds what is stored nowhere, with the way to drop it. */
function tell() {
  const form = theForm();
  if (!form || form.querySelector(".draft-note")) return;
  const note = Object.assign(document.createElement("p"), { className: "draft-note" });
  note.append(Object.assign(document.createElement("span"), { textContent: "unsaved draft" }), Object.assign(document.createElement("button"), { type: "button", className: "link", textContent: "discard" }));
  note.lastChild.addEventListener("click", discard);
  (form.querySelector(".buttons") ?? form).before(note);
}

function discard() {
  clearTimeout(saving);
  store.drop(placeOf(theForm()));
  typed = false;
  go(location.href, { push: false });
}

document.addEventListener("input", (event) => {
  if (!event.target.closest?.("#fork-form")) return;
  typed = true;
  changes += 1;
  event.target.closest(".unchosen")?.classList.remove("unchosen");
  clearTimeout(saving);
  saving = setTimeout(save, 300);
  tell();
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "fork-form") return;
  save();
  sent = { form: event.target, place: placeOf(event.target) };
  if (!event.target.hasAttribute("hx-post")) store.drop(sent.place); // the whole page goes on from there
  typed = false;
}, true);
/** The id of what an answer takes the place of. */
const into = ({ ctx }) => ctx?.response?.raw?.headers.get("HX-Retarget")?.slice(1) ?? ctx?.target?.id;
const isOfSent = ({ ctx }) => Boolean(sent) && ctx?.sourceElement === sent.form;

/** Until an answer brings the form back, nothing in it can be changed, so nothing can be lost. */
function hold(form, held) {
  form.inert = held;
  form.classList.toggle("sent", held);
}

document.addEventListener("htmx:before:request", ({ detail }) => {
  if (detail.ctx.sourceElement.id === "promise") detail.ctx.changes = changes;
  else if (isOfSent(detail)) hold(sent.form, true);
});
document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
  const form = theForm();
  if (form && (ctx.sourceElement === form || ctx.sourceElement?.className === "draft")) hold(form, false);
});
document.addEventListener("htmx:before:response", ({ detail }) => {
  if (sent && detail.ctx?.response?.raw?.headers.get("HX-Redirect")) store.drop(sent.place); // the fork lies in another thread
});
document.addEventListener("htmx:before:swap", (event) => {
  const { detail } = event, where = into(detail);
  if (detail.ctx?.sourceElement?.id === "promise" && detail.ctx.changes !== changes) event.preventDefault(); // a newer one comes
  else if (where === "fork-form" && !detail.ctx.sourceElement.isConnected) event.preventDefault(); // its checkpoint was left
  else if (where === "stage") {
    save();
    if (isOfSent(detail)) store.drop(sent.place); // what was sent is done
    sent = null;
  }
});
document.addEventListener("htmx:after:swap", ({ detail }) => {
  if (into(detail) === "stage") arrived();
  else if (into(detail) === "fork-form") cameBack();
});
addEventListener("pagehide", save);

/** The form that was sent is there again, with what was typed. */
function cameBack() {
  sent = null;
  typed = isChanged(theForm());
  if (!typed) store.drop(placeOf(theForm()));
  else tell();
  save();
  if (document.activeElement === document.body) theForm().querySelector("button.primary")?.focus({ preventScroll: true });
}

/** Whether anything in a form was chosen or typed; what it always has does not count. */
function isChanged(form) {
  if (form.querySelector(".edit:not(.unchosen .edit)")) return true;
  return [...form.querySelectorAll("textarea, input:not([type=hidden])")].some((field) => (field.type === "radio" || field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== "" && !["graph", "python"].includes(field.name)));
}

/** A stage is there, and of its form there may be a draft. */
function arrived() {
  typed = false;
  const form = theForm(), fields = form && store.read(placeOf(form));
  if (fields) restore(form, fields);
}

/** Ask the server for the form with these fields; one that only the page sends is filled here. */
function restore(form, fields) {
  if (!form.hasAttribute("hx-post")) {
    const of = (name) => fields.find(([one]) => one === name)?.[1];
    const said = form.elements.namedItem("said");
    if (!said || of("said") === undefined || of("path") !== form.elements.namedItem("path")?.value) return;
    said.value = of("said");
    typed = true;
    tell();
    return;
  }
  const again = Object.assign(document.createElement("form"), { className: "draft", hidden: true });
  hold(form, true);
  for (const [name, value] of Object.entries({ method: "post", action: form.action, "hx-post": form.action, "hx-target": "#stage", "hx-swap": "innerHTML" })) again.setAttribute(name, value);
  for (const [name, value] of [...fields, ["act", "keep"]]) again.append(Object.assign(hidden("input", name), { value }));
  document.getElementById("stage").append(again);
  htmx.process(again);
  again.requestSubmit();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("#centre a[data-go][href]"), form = theForm();
  if (!typed || !link || !form || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const to = new URL(link.href), here = new URL(document.getElementById("cursor").dataset.url, location.href);
  const same = ["at", "ns", "tab", "thread"].every((name) => to.searchParams.get(name) === here.searchParams.get(name));
  const path = PATH.exec(to.search)?.[1]; // as it is in the address: percent-encoded, which the form's fields are too
  if (!same || !path || to.pathname !== here.pathname) return;
  event.preventDefault();
  const field = form.querySelector("[name=add_path]") ?? form.appendChild(hidden("input", "add_path"));
  field.value = path;
  const button = form.appendChild(hidden("button", "act"));
  button.value = "add";
  button.formNoValidate = true;
  form.requestSubmit(button);
}, true);

function hidden(tag, name) {
  return Object.assign(document.createElement(tag), { name, hidden: true, type: tag === "input" ? "hidden" : "submit" });
}

if (document.getElementById("stage")) arrived();
