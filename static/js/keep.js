// What was typed into the fork form stays when another value of this checkpoint is chosen: that value joins the form.

const PATH = /[?&]path=([^&]+)/;
let typed = false;

document.addEventListener("input", (event) => {
  if (event.target.closest?.("#fork-form .edit")) typed = true;
});
document.addEventListener("htmx:after:swap", (event) => {
  if (event.detail.ctx?.target?.id === "stage") typed = false;
});

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("#centre a[data-go][href]"), form = document.getElementById("fork-form");
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
