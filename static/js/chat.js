// A conversation opens at its end, where the turn in view is; earlier turns that come in above do not move what is being read.

const centre = () => document.getElementById("centre");
const ROOM = 76; // what the tabs cover at the top
const NEAR = 240; // so near to the top, earlier turns are asked for
let shown = "";
let below = null;

const placeOf = () => {
  const here = new URLSearchParams(document.getElementById("cursor")?.dataset.url.split("?")[1]);
  return ["thread", "ns", "at", "tab", "path"].map((name) => here.get(name) ?? "").join("\n");
};

/** Show the end of the conversation, or the beginning of its last turn where that is higher than the window. */
function toEnd() {
  const chat = document.getElementById("chat"), box = centre(), place = placeOf();
  if (!chat || !box || place === shown) {
    shown = place;
    return;
  }
  shown = place;
  if (!chat.dataset.ends || chat.querySelector(".selected")) return;
  box.scrollTop = box.scrollHeight;
  const last = chat.querySelector(".beat.current") ?? chat.querySelector(".beat:last-of-type");
  if (!last) return;
  const above = box.getBoundingClientRect().top + ROOM - last.getBoundingClientRect().top;
  if (above > 0) box.scrollTop -= above;
}

let asked = null;

/** Whoever reads upward finds earlier turns there; the link is for all others. */
function earlier() {
  const box = centre(), link = document.querySelector("#chat .chat-earlier a");
  if (!link || link === asked || box.scrollTop > NEAR || box.scrollHeight <= box.clientHeight) return;
  asked = link;
  link.click();
}
document.addEventListener("scroll", (event) => event.target === centre() && earlier(), { capture: true, passive: true });

document.addEventListener("htmx:before:swap", (event) => {
  const target = event.detail.ctx?.target, box = centre();
  below = target?.classList?.contains("chat-earlier") && box ? box.scrollHeight - box.scrollTop : null;
});
document.addEventListener("htmx:after:swap", (event) => {
  const box = centre();
  if (below !== null && box) box.scrollTop = box.scrollHeight - below;
  below = null;
  if (event.detail.ctx?.target?.id === "stage") toEnd();
});

toEnd();
