// Copies: the server makes the text, the browser puts it on the clipboard.

document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("[data-copy-from]");
  if (!link) return;
  event.preventDefault();
  try {
    const revealed = link.dataset.do === "copy_value" && document.querySelector("#centre .node.selected[data-revealed]");
    const answer = await fetch(link.dataset.copyFrom + (revealed ? "&reveal=1" : ""));
    const text = await answer.text();
    if (!answer.ok) throw new Error("nothing to copy");
    await navigator.clipboard.writeText(text);
    const told = revealed ? " as it is shown, not masked" : answer.headers.get("Studio-Masked") ? ", its secrets masked" : "";
    say(`Copied ${revealed || text.length > 60 ? `${text.length} characters` : text}${told}`);
  } catch {
    say("Could not copy; the text opens in a new tab.");
    window.open(link.dataset.copyFrom, "_blank", "noopener");
  }
});

function say(words) {
  const box = document.createElement("div");
  box.className = "notice-box fine";
  box.append(Object.assign(document.createElement("p"), { textContent: words }));
  document.getElementById("notices")?.append(box);
  setTimeout(() => box.remove(), 2500);
}
