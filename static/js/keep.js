// What was typed into the fork form stays: when another value of this checkpoint is chosen it joins the form, and when the
// page comes back to a checkpoint, the form is as it was left.

const PATH = /[?&]path=([^&]+)/;
const drafts = new Map(); // checkpoint -> the fields of its form when the page went elsewhere
let typed = false;
let sent = null; // the checkpoint whose form was sent and may come back with what was typed

const theForm = () => document.getElementById("fork-form");
/** The checkpoint that a form is about. */
function placeOf(form) {
  const url = new URL(form.action, location.href);
  return ["thread", "ns", "at"].map((name) => url.searchParams.get(name) ?? "").join("\n");
}

document.addEventListener("input", (event) => {
  if (!event.target.closest?.("#fork-form")) return;
  typed = true;
  event.target.closest(".unchosen")?.classList.remove("unchosen");
});
document.addEventListener("submit", (event) => {
  if (event.target.id !== "fork-form") return;
  sent = placeOf(event.target);
  drafts.delete(sent);
  typed = false;
}, true);
document.addEventListener("htmx:before:swap", (event) => {
  const form = theForm();
  if (event.detail.ctx?.target?.id === "stage" && typed && form) drafts.set(placeOf(form), [...new FormData(form)]);
});
document.addEventListener("htmx:after:swap", (event) => {
  if (event.detail.ctx?.target?.id !== "stage") return;
  const form = theForm(), place = form && placeOf(form), fields = drafts.get(place);
  typed = place !== null && place === sent;
  sent = null;
  if (!fields) return;
  drafts.delete(place);
  sent = place;
  const again = document.createElement("form");
  again.hidden = true;
  for (const [name, value] of Object.entries({ method: "post", action: form.action, "hx-post": form.action, "hx-target": "#stage", "hx-swap": "innerHTML" })) again.setAttribute(name, value);
  for (const [name, value] of [...fields.filter(([name]) => name !== "act" && name !== "planned"), ["act", "keep"]]) again.append(Object.assign(hidden("input", name), { value }));
  document.getElementById("stage").append(again);
  htmx.process(again);
  again.requestSubmit();
});

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
