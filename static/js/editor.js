// <json-editor>: a real <textarea> that the form sends, drawn as CodeMirror while it is edited. The text is never parsed here.
// CodeMirror lives in a shadow root: there its styles are adopted sheets, which the page's policy allows.

const BIG = 4; // rows of a textarea from which the editor is worth loading

class JsonEditor extends HTMLElement {
  connectedCallback() {
    this.area = this.querySelector("textarea");
    if (!this.area || this.view || this.dataset.form !== "json") return;
    if (this.closest(".editor-card") || this.area.rows >= BIG) {
      if (this.closest(".editor-card")) this.upgrade();
      else this.area.addEventListener("focus", () => this.upgrade(true), { once: true });
    }
  }

  async upgrade(focus = false) {
    if (this.view || this.loading) return;
    this.loading = true;
    const code = await import(new URL("../vendor/codemirror.js", import.meta.url));
    if (!this.isConnected) return;
    const { EditorView, EditorState, basicSetup, json, setDiagnostics } = code;
    const area = this.area, root = this.attachShadow({ mode: "open" });
    root.append(Object.assign(document.createElement("slot")), document.createElement("div"));
    this.view = new EditorView({
      root,
      parent: root.lastChild,
      state: EditorState.create({
        doc: area.value,
        extensions: [
          colours(code), basicSetup, json(), EditorView.lineWrapping, look(EditorView, !!this.closest(".editor-card")),
          EditorView.contentAttributes.of({ "aria-label": area.getAttribute("aria-label") ?? "JSON" }),
          EditorView.domEventHandlers({ beforeinput: replaceSelection }),
          EditorView.updateListener.of((update) => {
            if (!update.docChanged) return;
            area.value = update.state.doc.toString();
            area.dispatchEvent(new Event("input", { bubbles: true }));
          }),
        ],
      }),
    });
    this.dataset.ready = "";
    const line = Number(this.dataset.line);
    if (line && line <= this.view.state.doc.lines) {
      const at = this.view.state.doc.line(line);
      const message = this.closest(".edit")?.querySelector(".edit-error")?.textContent ?? "";
      this.view.dispatch(setDiagnostics(this.view.state, [{ from: at.from, to: Math.max(at.to, at.from), severity: "error", message }]));
    }
    if (focus || this.closest(".editor-card")) this.view.focus();
  }
}

/** Typing over a selection: the browser would put the old style into a style attribute, which the policy refuses and reports. */
function replaceSelection(event, view) {
  if (event.inputType !== "insertText" || !event.data || view.composing || view.state.selection.ranges.every((range) => range.empty)) return false;
  event.preventDefault();
  view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
  return true;
}

/** Syntax colours that follow the page's light or dark. */
function colours({ HighlightStyle, syntaxHighlighting, tags }) {
  return syntaxHighlighting(HighlightStyle.define([
    { tag: tags.propertyName, color: "var(--ink-2)", fontWeight: "600" },
    { tag: tags.string, color: "var(--ins)" },
    { tag: [tags.number, tags.bool], color: "var(--lane-main)" },
    { tag: tags.null, color: "var(--ink-3)" },
    { tag: [tags.separator, tags.squareBracket, tags.brace], color: "var(--ink-3)" },
  ]));
}

function look(EditorView, large) {
  return EditorView.theme({
    "&": { color: "var(--ink)", backgroundColor: "var(--panel)", border: "1px solid var(--line)", borderRadius: "8px", fontSize: "12.25px", maxHeight: large ? "62vh" : "320px" },
    "&.cm-focused": { outline: "none", borderColor: "var(--accent)", boxShadow: "0 0 0 3px color-mix(in srgb, var(--accent) 20%, transparent)" },
    ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", overflow: "auto", minHeight: large ? "320px" : "0" },
    ".cm-gutters": { backgroundColor: "transparent", border: "0", color: "var(--ink-3)" },
    ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--accent) 7%, transparent)" },
    ".cm-cursor": { borderLeftColor: "var(--accent)" },
    "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--accent-soft)", outline: "1px solid var(--accent-line)" },
    "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--accent) 24%, transparent) !important" },
    ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px" },
    ".cm-foldPlaceholder": { backgroundColor: "var(--sunken)", border: "0", color: "var(--ink-3)" },
  });
}

customElements.define("json-editor", JsonEditor);
