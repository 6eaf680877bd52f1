// SPDX-License-Identifier: BSL-1.0
#pragma once

// The HTML of the page, between its variable parts.

#include <string_view>

namespace timeline::markup {

inline constexpr std::string_view before_title = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>)html";

inline constexpr std::string_view before_style = R"html(</title>
<style>)html";

inline constexpr std::string_view before_data = R"html(</style>
</head>
<body>
<header>
 <h1 id="title">Timeline</h1>
 <div class="tools" role="toolbar" aria-label="View">
  <div class="axis" id="axis" role="group" aria-label="Horizontal axis">
   <button type="button" id="by_time" aria-pressed="false">Time</button>
   <button type="button" id="by_own" aria-pressed="false"
    title="Each trace from its start">Since start</button>
   <button type="button" id="by_offset" aria-pressed="false">Offset</button>
  </div>
  <button type="button" id="zoom_in" aria-label="Zoom in" title="Zoom in (+)">+</button>
  <button type="button" id="zoom_out" aria-label="Zoom out" title="Zoom out (-)">&minus;</button>
  <button type="button" id="reset" title="Show everything (Home)">Reset</button>
  <button type="button" id="help" aria-haspopup="dialog" title="Keys (?)">?</button>
 </div>
</header>
<ul id="notes" hidden></ul>
<noscript><p class="empty">This page draws with a script, and scripts are disabled.</p></noscript>
<main id="main" tabindex="0" role="application" aria-describedby="range"
 aria-label="Timeline: arrow keys pan, plus and minus zoom, Home shows everything">
 <div class="ruler"><canvas id="overview" aria-hidden="true"></canvas>
  <canvas id="ruler" aria-hidden="true"></canvas></div>
 <div id="streams"></div>
 <div id="cursor" hidden></div>
 <div id="brush" hidden></div>
</main>
<div class="below"><p id="range" role="status" aria-live="polite"></p>
 <ul class="legend" aria-label="Colours">
  <li><i style="background: var(--on)"></i>traced</li>
  <li><i style="background: var(--off)"></i>not traced</li>
  <li><i style="background: var(--unknown)"></i>unknown</li>
  <li><i style="background: var(--conditional)"></i>conditional</li>
  <li><i style="background: var(--indirect)"></i>indirect branches</li>
  <li id="calls_legend" hidden><i class="hatched"></i>calls not known</li></ul></div>
<section aria-labelledby="events_title">
 <div class="bar"><h2 id="events_title">Events</h2>
  <label>Trace <select id="of_stream"></select></label>
  <label>Lane <select id="of_lane"></select></label>
  <label class="check"><input type="checkbox" id="in_view"> in view</label>
  <span id="shown"></span></div>
 <div id="head" class="row" aria-hidden="true"></div>
 <div id="list" tabindex="0" role="listbox" aria-labelledby="events_title"
  aria-describedby="list_help"><div id="space"></div></div>
 <p id="list_help" class="small">Choose an event to zoom to it: click, or arrow keys and Enter.</p>
</section>
<section aria-labelledby="summary_title">
 <h2 id="summary_title">Summary</h2>
 <div class="scroll" tabindex="0" role="region" aria-labelledby="summary_title">
 <table id="summary"></table></div>
</section>
<div id="tip" role="tooltip" hidden></div>
<dialog id="keys" aria-labelledby="keys_title">
 <h2 id="keys_title">Keys and gestures</h2>
 <table>
  <tr><th scope="row">Wheel, pinch</th><td>zoom at the pointer</td></tr>
  <tr><th scope="row">Drag, Shift + wheel</th><td>pan</td></tr>
  <tr><th scope="row">Shift + drag</th><td>zoom to the range</td></tr>
  <tr><th scope="row">Double click</th><td>zoom in, or to a call</td></tr>
  <tr><th scope="row">&larr; &rarr;</th><td>pan; with Shift by a page</td></tr>
  <tr><th scope="row">+ &minus;, &uarr; &darr;</th><td>zoom in, zoom out</td></tr>
  <tr><th scope="row">Home, 0</th><td>show everything</td></tr>
  <tr><th scope="row">N, P</th><td>next and previous event of the list</td></tr>
  <tr><th scope="row">T, S, O</th><td>time, time since the start, or offset as the axis</td></tr>
  <tr><th scope="row">?</th><td>this help</td></tr>
 </table>
 <p class="small">A column with a dark cap is higher than the scale, whose top is at its left.</p>
 <form method="dialog"><button>Close</button></form>
</dialog>
<script type="application/json" id="data">)html";

inline constexpr std::string_view before_script = R"html(</script>
<script>
)html";

inline constexpr std::string_view end = R"html(</script>
</body>
</html>
)html";

}  // namespace timeline::markup
