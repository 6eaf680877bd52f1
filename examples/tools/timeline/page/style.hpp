// SPDX-License-Identifier: BSL-1.0
#pragma once

// The style sheet of the page.

#include <string_view>

namespace timeline {

inline constexpr std::string_view style = R"css(
:root {
  --back: #ffffff; --panel: #f5f6f8; --line: #dfe2e7; --text: #1c2128; --soft: #59616d;
  --accent: #0b62c4; --focus: #0b62c4; --track: #eef0f3;
  --on: #2f8f5b; --off: #d9dde3; --unknown: #c9a227;
  --conditional: #2b74c9; --indirect: #8a4fbf; --clock: #b4581a; --ratio: #0f7f86;
  --psb: #7a828e; --overflow: #c77700; --damage: #c62828; --interrupts: #5a4fcf;
  --ptwrite: #0f7f86; --power: #6b7f1a; --frequency: #0f7f86; --transactions: #a23b8c;
  --pebs: #9a5b13; --event_trace: #1f7a4d; --other: #7a828e; --tracing: #2f8f5b;
  --context: #46617f; --hue_s: 52%; --hue_l: 62%; --hue_text: #16191d; --call_l: 74%;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14171b; --panel: #1c2026; --line: #343a43; --text: #e4e8ee; --soft: #9da6b2;
    --accent: #6cb2ff; --focus: #8cc4ff; --track: #20252c;
    --on: #3fae73; --off: #3b424c; --unknown: #c9a227;
    --conditional: #5b9ee8; --indirect: #b585e6; --clock: #e2935a; --ratio: #43bac2;
    --psb: #98a1ad; --overflow: #f0a63c; --damage: #ff6b6b; --interrupts: #9a92ff;
    --ptwrite: #43bac2; --power: #b1c653; --frequency: #43bac2; --transactions: #e07fcb;
    --pebs: #d99c55; --event_trace: #5cc492; --other: #98a1ad; --tracing: #3fae73;
    --context: #8fb0d6; --hue_s: 42%; --hue_l: 52%; --hue_text: #0d0f12; --call_l: 64%;
  }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
html { background: var(--back); color: var(--text); }
body { margin: 0 auto; max-width: 1800px; padding: 12px 16px 24px;
  font: 14px/1.45 system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
header { display: flex; flex-wrap: wrap; gap: 8px 16px; align-items: center;
  justify-content: space-between; margin-bottom: 8px; }
h1 { font-size: 18px; margin: 0; font-weight: 600; overflow-wrap: anywhere; min-width: 0; }
h2 { font-size: 15px; margin: 0; font-weight: 600; }
.tools { display: flex; gap: 6px; flex-wrap: wrap; }
.axis { display: flex; }
.axis button { border-radius: 0; }
.axis button + button { border-left: 0; }
.axis button:first-child { border-radius: 6px 0 0 6px; }
.axis button:last-child { border-radius: 0 6px 6px 0; }
button, select { font: inherit; color: var(--text); background: var(--panel); cursor: pointer;
  border: 1px solid var(--line); border-radius: 6px; padding: 4px 11px; min-height: 32px; }
button:hover { border-color: var(--soft); }
button[aria-pressed="true"] { background: var(--accent); color: var(--back);
  border-color: var(--accent); }
button:disabled { opacity: .45; cursor: default; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 1px; }
#notes { margin: 0 0 8px; padding: 7px 12px 7px 28px; background: var(--panel);
  border: 1px solid var(--line); border-left: 3px solid var(--unknown); border-radius: 6px;
  color: var(--soft); font-size: 13px; }
main { position: relative; border: 1px solid var(--line); border-radius: 8px; overflow: clip;
  touch-action: pan-y; user-select: none; -webkit-user-select: none; cursor: crosshair; }
main.dragging { cursor: grabbing; }
canvas { display: block; width: 100%; }
.ruler { position: sticky; top: 0; z-index: 2; background: var(--back);
  border-bottom: 1px solid var(--line); }
#overview { height: 26px; cursor: pointer; }
#ruler { height: 24px; }
.stream { border-bottom: 1px solid var(--line); }
.stream:last-child { border-bottom: 0; }
.name { display: flex; gap: 10px; padding: 4px 10px; background: var(--panel); font-size: 13px;
  align-items: baseline; }
.name b { font-weight: 600; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.name span { color: var(--soft); white-space: nowrap; font-size: 12px; }
.empty { padding: 6px 10px; margin: 0; color: var(--soft); font-size: 13px; }
#cursor { position: absolute; top: 0; bottom: 0; width: 1px; background: var(--soft);
  opacity: .6; pointer-events: none; z-index: 3; }
#brush { position: absolute; top: 0; bottom: 0; background: var(--accent); opacity: .18;
  pointer-events: none; z-index: 3; }
.below { display: flex; flex-wrap: wrap; gap: 2px 24px; justify-content: space-between;
  margin: 6px 2px 16px; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 0; padding: 0; list-style: none;
  color: var(--soft); font-size: 12px; }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px;
  margin-right: 6px; }
.legend .hatched { background: repeating-linear-gradient(135deg, var(--unknown) 0 1.5px,
  transparent 1.5px 4px); }
#range { margin: 0; color: var(--soft); font-size: 13px;
  font-variant-numeric: tabular-nums; }
section { margin-top: 16px; }
.bar { display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: center; margin-bottom: 6px; }
.bar label { display: flex; gap: 6px; align-items: center; color: var(--soft); font-size: 13px; }
.bar select { max-width: 210px; }
#shown { color: var(--soft); font-size: 13px; }
.small { color: var(--soft); font-size: 12px; margin: 4px 2px; }
.row { display: grid; grid-template-columns: 140px 140px 92px 150px 1fr; gap: 10px;
  padding: 0 10px; height: 24px; line-height: 24px; font-size: 12.5px; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
section.several .row { grid-template-columns: 140px 150px 140px 92px 150px 1fr; }
.row > * { overflow: hidden; text-overflow: ellipsis; }
.row .n { text-align: right; font-family: ui-monospace, "DejaVu Sans Mono", monospace;
  font-size: 12px; }
.row .t { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12px; }
#head { color: var(--soft); font-weight: 600; border: 1px solid var(--line); border-bottom: 0;
  border-radius: 8px 8px 0 0; background: var(--panel); height: 27px; line-height: 26px;
  padding-right: 24px; }
#head .n, #head .t { font-family: inherit; }
#list { position: relative; height: 240px; overflow-y: scroll; border: 1px solid var(--line);
  border-radius: 0 0 8px 8px; }
#list .row { position: absolute; left: 0; right: 0; cursor: pointer; }
#list .row:hover { background: var(--panel); }
#list .row.chosen { background: var(--accent); color: var(--back); }
#list .row.chosen .dot { background: var(--back) !important; }
.dot { display: inline-block; width: 8px; height: 8px; border-radius: 2px; margin-right: 7px; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; margin-top: 6px; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
#summary { width: 100%; }
#summary th, #summary td { text-align: right; padding: 5px 12px; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
#summary tr:last-child > * { border-bottom: 0; }
#summary th:first-child { text-align: left; max-width: 320px; overflow: hidden;
  text-overflow: ellipsis; position: sticky; left: 0; background: var(--back); }
#summary thead th { color: var(--soft); font-weight: 600; background: var(--panel);
  white-space: normal; vertical-align: bottom; line-height: 1.25; }
#summary thead th:first-child { background: var(--panel); }
#summary tbody th { font-weight: 500; }
#summary td.bad { color: var(--damage); font-weight: 600; }
#tip { position: fixed; z-index: 9; left: 0; top: 0; max-width: min(420px, calc(100vw - 16px));
  background: var(--back); color: var(--text); border: 1px solid var(--line); border-radius: 8px;
  box-shadow: 0 4px 18px rgb(0 0 0 / .22); padding: 7px 10px; font-size: 12.5px;
  pointer-events: none; }
#tip dl { display: grid; grid-template-columns: auto 1fr; gap: 1px 12px; margin: 0; }
#tip dt { color: var(--soft); }
#tip dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
#tip .event { margin-top: 5px; padding-top: 5px; border-top: 1px solid var(--line); }
#tip .event b { font-weight: 600; }
dialog { color: var(--text); background: var(--back); border: 1px solid var(--line);
  border-radius: 10px; padding: 18px 22px; max-width: calc(100vw - 24px); }
dialog::backdrop { background: rgb(0 0 0 / .4); }
dialog table { margin: 10px 0 14px; }
dialog th { text-align: left; padding: 3px 18px 3px 0; font-weight: 600; white-space: nowrap; }
dialog td { color: var(--soft); }
@media (max-width: 640px) {
  body { padding: 8px 8px 20px; }
  h1 { font-size: 16px; }
  button, select { min-height: 38px; padding: 4px 8px; }
  .tools { gap: 5px; }
  .row, section.several .row {
    grid-template-columns: minmax(112px, 1.1fr) minmax(84px, .9fr) 1.2fr; gap: 8px;
    padding: 0 8px; }
  .row > .wide { display: none; }
  #list { height: 260px; }
  .name span.wide { display: none; }
  #head { padding-right: 8px; }
}
@media (prefers-reduced-motion: no-preference) { button { transition: border-color .15s; } }
)css";

}  // namespace timeline
