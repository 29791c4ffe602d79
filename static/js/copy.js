// Copies: the server makes the text, the browser puts it on the clipboard.

document.addEventListener("click", async (event) => {
  const link = event.target.closest?.("[data-copy-from]");
  if (!link) return;
  event.preventDefault();
  try {
    const answer = await fetch(link.dataset.copyFrom);
    const text = await answer.text();
    if (!answer.ok) throw new Error("nothing to copy");
    await navigator.clipboard.writeText(text);
    say(`Copied ${text.length > 60 ? `${text.length} characters` : text}`);
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
