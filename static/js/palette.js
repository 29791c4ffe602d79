// The list of keys is a palette, too: type to filter it, Enter or a click does it.

import { act } from "./keys.js";

const dialog = document.getElementById("help"), input = document.getElementById("command"), none = document.getElementById("no-command");
const commands = [...document.querySelectorAll(".command")];

function filter() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const command of commands) command.hidden = !words.every((word) => command.textContent.toLowerCase().includes(word));
  none.hidden = commands.some((command) => !command.hidden);
  none.textContent = none.hidden ? "" : `No match for “${input.value.trim()}”.`;
}

function run(id) {
  dialog.close();
  requestAnimationFrame(() => act(id)); // the closing dialog gives the focus back first
}

if (dialog) {
  input.addEventListener("input", filter);
  dialog.addEventListener("studio:opening", () => {
    input.value = "";
    filter();
  });
  document.getElementById("command-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const first = commands.find((command) => !command.hidden);
    if (first && input.value) run(first.dataset.action);
  });
  dialog.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act]");
    if (button) run(button.dataset.act);
  });
}
