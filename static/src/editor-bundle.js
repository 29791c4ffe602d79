// The parts of CodeMirror 6 that the JSON editor uses; hatch_build.py bundles this file into static/vendor/codemirror.js.
export { basicSetup } from "codemirror";
export { EditorView, keymap } from "@codemirror/view";
export { EditorState, Compartment } from "@codemirror/state";
export { json, jsonParseLinter } from "@codemirror/lang-json";
export { linter, lintGutter, setDiagnostics, forceLinting } from "@codemirror/lint";
export { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
export { tags } from "@lezer/highlight";
