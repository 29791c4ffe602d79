// A field with a list of links below it: the arrows move the active one, Enter opens it. The focus stays in the field.

const active = new WeakMap(); // field -> what was typed when a link became the active one, and its address
const entered = new WeakMap(); // field -> what stood in it when Enter came before the answer
const options = (field) => [...document.querySelectorAll(`#${field.getAttribute("aria-controls")} [role=option]`)];

function activate(field, option) {
  for (const other of options(field)) other.setAttribute("aria-selected", String(other === option));
  if (option) field.setAttribute("aria-activedescendant", option.id);
  else field.removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
  active.set(field, { typed: field.value.trim(), href: option?.getAttribute("href") });
}

/** Whether the list answers what stands in the field now, not what stood there before the last key. */
function answered(field) {
  const list = document.querySelector(`#${field.getAttribute("aria-controls")} [data-answers]`);
  return list?.dataset.answers.trim() === field.value.trim();
}

document.addEventListener("keydown", (event) => {
  const field = event.target.closest?.("input[role=combobox]");
  if (!field || event.isComposing || event.altKey || event.ctrlKey || event.metaKey) return;
  const found = options(field), at = found.findIndex((option) => option.getAttribute("aria-selected") === "true");
  entered.delete(field);
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const next = event.key === "ArrowDown" ? Math.min(at + 1, found.length - 1) : Math.max(at - 1, 0);
    if (found.length) activate(field, found[next]);
  } else if (event.key === "Enter" && at >= 0 && answered(field)) {
    event.preventDefault();
    found[at].click();
  } else if (event.key === "Enter" && field.value.trim()) {
    entered.set(field, field.value.trim()); // the form asks at once, and its answer is opened
  }
});

/** The first link is the active one as soon as there is an answer to what was typed; a list that only grew keeps its own. */
function first(field) {
  const found = options(field), last = active.get(field), typed = field.value.trim();
  const kept = last?.typed === typed && found.find((option) => option.getAttribute("href") === last.href);
  const chosen = kept || (typed ? found[0] : found.find((option) => option.ariaCurrent === "true"));
  activate(field, chosen);
  if (chosen && entered.get(field) === typed && answered(field)) {
    entered.delete(field);
    chosen.click();
  }
}

document.addEventListener("htmx:after:swap", (event) => {
  const target = event.detail.ctx?.target;
  for (const field of document.querySelectorAll("input[role=combobox]")) {
    if (target?.contains(field) || target?.id === field.getAttribute("aria-controls")) first(field);
  }
});
for (const field of document.querySelectorAll("input[role=combobox]")) first(field);
