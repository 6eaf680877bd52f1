// SPDX-License-Identifier: BSL-1.0
#pragma once

// The part of the page's script that draws calls.

#include <string_view>

namespace timeline {

/// Decodes the calls of a trace, and draws them as flame charts.
inline constexpr std::string_view script_of_calls = R"js(
const call_height = 16, max_levels = 32;
const call_kinds = ['call', 'system call', 'interrupt or exception', 'its call was not traced',
  'not known', 'tail call', 'not traced'];

/** Positions have units of 1/1024. Times begin at `shift`. */
function load_calls(s, shift) {
  if (!s.calls) { return; }
  const {names, lanes} = s.calls;
  s.calls.colours = names.map(name => {
    let hash = 0;
    const [own] = name.split(' [tail of ');
    for (const letter of own) { hash = (hash * 31 + letter.codePointAt(0)) % 65521; }
    return hash * 137.508 % 360;
  });
  for (const lane of lanes) {
    const count = lane.bars, levels = decode(lane.level, count);
    for (const name of ['name', 'kind', 'count', 'instructions']) {
      lane[name] = decode(lane[name], count);
    }
    const place = (begins, sizes, first) => {
      const begin = undiff(begins, 0).map(value => first + value / 1024);
      return {begin, end: decode(sizes, count).map((value, i) => begin[i] + value / 1024)};
    };
    lane.place = {offset: place(lane.offset, lane.bytes, 0)};
    if (s.timed) {
      lane.place.time = place(lane.time, lane.ticks, shift);
      lane.place.own = place(lane.time, lane.ticks, 0);
    }
    const index = Array.from({length: lane.levels}, () => []);
    levels.forEach((level, i) => index[level].push(i));
    /** The calls of each level, from left to right. */
    lane.rows = index.map(all => ({index: all}));
    for (const row of lane.rows) {
      for (const [axis, {begin, end}] of Object.entries(lane.place)) {
        row[axis] = {begin: Float64Array.from(row.index, i => begin[i]),
          end: Float64Array.from(row.index, i => end[i])};
      }
    }
  }
}
function rows_of_calls(s) {
  return (s.calls?.lanes ?? []).map(lane => ({lane: 'calls', title: 'Calls', calls: lane,
    height: call_height * Math.max(2, Math.min(lane.levels, max_levels)), draw: draw_calls}));
}
/** The first call of a level that ends after a position. */
const first_after = (row, axis, value) =>
  Math.max(0, upper_bound(row[axis].begin, value) - 1);
/** The first level without a call in view. */
function end_of_levels(lane) {
  const axis = view.axis;
  const is_in_view = row => {
    const i = first_after(row, axis, view.from);
    return [i, i + 1].some(k => k < row.index.length && row[axis].end[k] > view.from &&
      row[axis].begin[k] < view.to);
  };
  let end = lane.levels;
  while (end > max_levels && !is_in_view(lane.rows[end - 1])) { --end; }
  return end;
}
/** The outermost level that is drawn. Calls that are as long as the view make room for others. */
function first_level(lane) {
  const surplus = end_of_levels(lane) - Math.min(lane.levels, max_levels);
  const fills_view = row => {
    const place = row[view.axis], i = first_after(row, view.axis, view.from);
    return place.begin[i] <= view.from && place.end[i] >= view.to;
  };
  let first = 0;
  while (first < surplus && fills_view(lane.rows[first + 1])) { ++first; }
  return first;
}
const kind_of = (lane, i) => lane.kind[i] & 7;
const is_mixed = (lane, i) => (lane.kind[i] & 8) !== 0;
const is_unsure = (lane, i) => (lane.kind[i] & 16) !== 0;
function call_text(s, lane, i) {
  const name = s.calls.names[lane.name[i]], count = lane.count[i];
  if (kind_of(lane, i) === 4) { return 'not known: ' + name; }
  return count === 1 ? name
    : is_mixed(lane, i) ? `${grouped(count)} calls: ${name}, \u2026`
    : `${grouped(count)} \u00d7 ${name}`;
}
const instructions_text = count =>
  grouped(count) + (count === 1 ? ' instruction' : ' instructions');

let hatch = {key: '', pattern: null};
function hatching(context) {
  const key = [colours.unknown, dots].join();
  if (hatch.key !== key) {
    const tile = document.createElement('canvas'), size = Math.round(6 * dots);
    tile.width = tile.height = size;
    const to = tile.getContext('2d');
    to.strokeStyle = colours.unknown;
    to.lineWidth = 1.6 * dots;
    to.beginPath();
    for (const x of [-size, 0, size]) {
      to.moveTo(x - 1, size + 1);
      to.lineTo(x + size + 1, -1);
    }
    to.stroke();
    hatch = {key, pattern: context.createPattern(tile, 'repeat')};
    hatch.pattern.setTransform(new DOMMatrix([1 / dots, 0, 0, 1 / dots, 0, 0]));
  }
  return hatch.pattern;
}
/** A text within a bar, cut where there is no room. Returns its width. */
function call_label(context, text, left, right, middle) {
  const room = right - left - 8;
  if (room < 18) { return 0; }
  let size = context.measureText(text).width;
  if (size > room) {
    const letters = Math.floor(text.length * room / size) - 1;
    if (letters < 2) { return 0; }
    text = text.slice(0, letters) + '\u2026';
    size = context.measureText(text).width;
  }
  context.fillText(text, left + 4, middle);
  return size;
}
function draw_calls(row, frame) {
  const {s, context} = frame, lane = row.calls, axis = view.axis;
  const base = first_level(lane), end = Math.min(lane.levels, base + max_levels);
  row.note = lane.label;
  const below = end_of_levels(lane) - end;
  row.more = [];
  if (base > 0) { row.more.push(`${base} levels above`); }
  if (below > 0) { row.more.push(`${below} levels below`); }
  context.font = small_font;
  context.textAlign = 'left';
  const limit = width - pad_right, dot = 1 / dots;
  for (let level = base; level < end; ++level) {
    const {index} = lane.rows[level], place = lane.rows[level][axis];
    const top = row.y + (level - base) * call_height;
    let last = -1;
    for (let k = first_after(lane.rows[level], axis, view.from);
      k < index.length && place.begin[k] <= view.to; ++k) {
      const i = index[k], kind = kind_of(lane, i);
      let left = x_of(place.begin[k]), right = x_of(place.end[k]);
      if (right < gutter) { continue; }
      left = Math.max(gutter, left);
      right = Math.min(limit, right);
      if (right - left < dot) {
        const column = Math.floor(left * dots);
        if (column === last) { continue; }
        last = column;
        right = left + dot;
      }
      if (kind === 4) {
        context.fillStyle = hatching(context);
        context.fillRect(left, top, right - left, row.y + row.height - top);
      } else {
        context.fillStyle = kind === 6 ? colours.off : `hsl(${s.calls.colours[lane.name[i]]} ` +
          `${lane.count[i] === 1 ? colours.hue_s : '24%'} ${colours.call_l})`;
        context.fillRect(left, top, right - left, call_height - 1);
        if (is_unsure(lane, i) && right - left > 3) {
          context.globalAlpha = .5;
          context.fillStyle = hatching(context);
          context.fillRect(left, top + call_height - 4, right - left, 3);
          context.globalAlpha = 1;
        }
        if (kind === 1 || kind === 2) {
          context.fillStyle = colours.interrupts;
          context.fillRect(left, top, right - left, 2);
        }
      }
      if (right - left <= 3) { continue; }
      if (kind !== 4) {
        context.fillStyle = colours.back;
        context.fillRect(left, top, .75, call_height - 1);
      }
      if (right - left < 26) { continue; }
      const text = call_text(s, lane, i), middle = top + call_height / 2;
      if (kind === 4) {  // hatching is no background for a text
        const size = Math.min(right - left, context.measureText(text).width + 8);
        context.fillStyle = colours.back;
        context.fillRect(left, top + 1, size, call_height - 3);
        context.fillStyle = colours.text;
        call_label(context, text, left, right, middle);
        continue;
      }
      context.fillStyle = kind === 6 ? colours.text : colours.hue_text;
      const used = call_label(context, text, left, right, middle);
      if (kind === 6) { continue; }
      const more = instructions_text(lane.instructions[i]);
      if (used && right - left - used > context.measureText(more).width + 26) {
        context.globalAlpha = .85;
        context.fillText(more, left + used + 16, middle);
        context.globalAlpha = 1;
      }
    }
  }
}
/** The call at a point of a lane; -1 for none. */
function call_at(row, x, y) {
  const lane = row.calls, level = first_level(lane) + Math.floor((y - row.y) / call_height);
  const value = value_of(x), reach = 2 * (view.to - view.from) / plot_width();
  for (let n = Math.min(level, lane.levels - 1); n >= 0; --n) {
    const {index} = lane.rows[n], place = lane.rows[n][view.axis];
    const k = first_after(lane.rows[n], view.axis, value);
    // Gaps are drawn down to the lowest level.
    const found = [k, k + 1].find(at => at < index.length && place.begin[at] <= value + reach &&
      place.end[at] >= value - reach && (n === level || kind_of(lane, index[at]) === 4));
    if (found !== undefined) { return index[found]; }
  }
  return -1;
}
function describe_call(s, lane, i) {
  const kind = kind_of(lane, i), count = lane.count[i], place = lane.place[view.axis];
  const rows = [];
  if (kind === 4) {
    rows.push(['Not known', s.calls.names[lane.name[i]]]);
    if (count > 1) { rows.push(['Gaps', grouped(count)]); }
  } else {
    const title = is_mixed(lane, i) ? 'Longest' : kind === 6 ? 'Not traced' : 'Function';
    rows.push([title, s.calls.names[lane.name[i]]]);
    if (kind !== 0 && kind !== 6) { rows.push(['Kind', call_kinds[kind]]); }
    if (count > 1) { rows.push(['Calls', grouped(count)]); }
    if (kind !== 6) { rows.push(['Instructions', grouped(lane.instructions[i])]); }
  }
  if (s.place.time) {
    const {begin, end} = lane.place.own;
    rows.push(['Duration', since(s) + span_text('own', end[i] - begin[i])]);
  }
  const step = (place.end[i] - place.begin[i]) / 100;
  rows.push(['Begin', text_of(view.axis, place.begin[i], Math.max(step, 1e-3))]);
  if (is_unsure(lane, i)) { rows.push(['End', 'uncertain: packets were lost']); }
  return rows;
}
)js";

}  // namespace timeline
