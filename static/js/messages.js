// The message editor: the focus stays where a person works, the arrows go from message to message. What a button does, the server decides.

/** The server names the control that goes on having the focus after a message was opened, moved or deleted. */
function settle() {
  const element = document.querySelector(".messages [data-focus]");
  if (!element) return;
  element.removeAttribute("data-focus"); // later swaps leave the focus alone
  element.focus();
  element.closest(".turn")?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("htmx:after:swap", settle);
settle();

document.addEventListener("keydown", (event) => {
  const turn = event.target.closest?.(".turn");
  if (!turn || event.target.matches("textarea, input") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const turns = [...document.querySelectorAll(".messages .turn")];
    turns[turns.indexOf(turn) + (event.key === "ArrowDown" ? 1 : -1)]?.querySelector("button")?.focus();
  } else if (event.key === "Delete") {
    turn.querySelector("button[value^='chat:delete:']")?.click();
  } else return;
  event.preventDefault();
}, true);
