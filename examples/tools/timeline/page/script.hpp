// SPDX-License-Identifier: BSL-1.0
#pragma once

// The script of the page.

#include <string_view>

namespace timeline {

/// Decodes the data. Sums of all columns are kept from the first slice on, so that the sum of any
/// interval takes two look-ups at every zoom.
inline constexpr std::string_view script_of_data = R"js('use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const element = id => document.getElementById(id);
const lane_titles = {tracing: 'Tracing', context: 'CR3', psb: 'PSB', overflow: 'Overflow',
  damage: 'Damage', interrupts: 'Interrupts', ptwrite: 'PTWRITE', power: 'Power',
  frequency: 'Core ratio', transactions: 'TSX', pebs: 'PEBS', event_trace: 'Event trace',
  other: 'Other'};

/** The numbers of a column: -N stands for N zeros. */
function decode(packed, length) {
  const out = new Float64Array(length);
  let at = 0;
  for (const value of packed) {
    if (value < 0) { at -= value; } else { out[at++] = value; }
  }
  return out;
}
/** The packed column's length. */
function length_of(packed) {
  let count = 0;
  for (const value of packed) { count += value < 0 ? -value : 1; }
  return count;
}
/** sums[i] is the sum of the first i values, plus `first`. */
function sums_of(values, first = 0) {
  const sums = new Float64Array(values.length + 1);
  sums[0] = first;
  for (let i = 0; i < values.length; ++i) { sums[i + 1] = sums[i] + values[i]; }
  return sums;
}
/** Restores values from their differences. */
function undiff(packed, first) {
  const out = decode(packed, length_of(packed));
  let sum = first;
  for (let i = 0; i < out.length; ++i) { out[i] = sum += out[i]; }
  return out;
}

const timed_streams = data.streams.filter(s => s.timed);
/** Those that are drawn over time. Of the others only the order of events is known. */
const time_streams = timed_streams.filter(s => !s.ordered);
/** The TSC at position 0 of the time axis. */
const base_time = timed_streams.reduce((low, s) => {
  const first = BigInt(s.first_time);
  return low === null || first < low ? first : low;
}, null) ?? 0n;

const all_contexts = new Map();  // CR3 -> a number that is the same in all traces
function load(s) {
  const count = s.slices;
  const shift = s.timed ? Number(BigInt(s.first_time) - base_time) : 0;
  s.sums = {};
  for (const [name, packed] of Object.entries(s.columns)) {
    if (name !== 'time') { s.sums[name] = sums_of(decode(packed, count)); }
  }
  const offsets = new Float64Array(count + 1);
  for (let i = 0; i < count; ++i) { offsets[i] = i * s.slice_bytes; }
  offsets[count] = s.bytes;
  s.known = {offset: offsets};
  if (s.timed) {
    const times = undiff(s.columns.time, shift);
    s.known.time = new Float64Array(count + 1);
    s.known.time.set(times);
    s.known.time[count] = shift + s.ticks;
    s.known.own = s.known.time.map(value => value - shift);
  }
  s.place = s.ordered ? {offset: offsets} : s.known;
  if (s.place.time) { s.sums.ticks = s.place.time; }
  s.context_of_slice = new Uint16Array(count);
  for (let i = 0, at = 0; i < s.slice_contexts.length; i += 2) {
    s.context_of_slice.fill(s.slice_contexts[i], at, at += s.slice_contexts[i + 1]);
  }
  s.context_colours = s.contexts.map(value => {
    if (!all_contexts.has(value)) { all_contexts.set(value, all_contexts.size); }
    return all_contexts.get(value);
  });
  const places = of => ({offset: undiff(of.offset, 0),
    ...(s.timed && {time: undiff(of.time, shift), own: undiff(of.time, 0)})});
  for (const state of Object.values(s.states)) {
    state.place = places(state);
    state.values = decode(state.value, state.place.offset.length);
    state.complete = state.count === state.values.length;
  }
  const events = s.events;
  events.place = places(events);
  events.types = decode(events.type, events.place.offset.length);
  s.lanes = {};
  for (const name of data.lanes) { s.lanes[name] = {index: [], count: 0}; }
  events.types.forEach((type, i) => s.lanes[data.type_lanes[type]].index.push(i));
  data.types.forEach((type, i) => {
    const lane = s.lanes[data.type_lanes[i]];
    if (lane) { lane.count += s.counts[type] ?? 0; }
  });
  for (const lane of Object.values(s.lanes)) {
    lane.complete = lane.count === lane.index.length;
    lane.place = {};
    for (const [axis, place] of Object.entries(events.place)) {
      lane.place[axis] = Float64Array.from(lane.index, i => place[i]);
    }
  }
  delete s.columns;
  load_calls(s, shift);
}
data.streams.forEach(load);
/** With calls one zooms to single instructions. */
const has_calls = data.streams.some(s => s.calls);

/** The number of elements <= value. */
function upper_bound(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) { low = middle + 1; } else { high = middle; }
  }
  return low;
}
/** The number of elements < value. */
function lower_bound(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) { low = middle + 1; } else { high = middle; }
  }
  return low;
}
/** The slice at a position, with the fraction of it that lies before. */
function slice_at(place, value) {
  const last = place.length - 1;
  if (value <= place[0]) { return 0; }
  if (value >= place[last]) { return last; }
  const i = upper_bound(place, value) - 1;
  return i + (value - place[i]) / (place[i + 1] - place[i]);
}
/** The sum up to a slice and its fraction. */
function sum_to(sums, slice) {
  const i = Math.floor(slice);
  return i >= sums.length - 1 ? sums[sums.length - 1]
    : sums[i] + (slice - i) * (sums[i + 1] - sums[i]);
}
/** The value of a state at a position; null before the first change and after the last known. */
function state_at(state, axis, value) {
  const i = upper_bound(state.place[axis], value) - 1;
  if (i < 0 || (!state.complete && i === state.values.length - 1)) { return null; }
  return state.values[i];
}

// The horizontal axis: `time` is common to all traces, `own` begins with each trace.

const axes = ['time', 'own', 'offset'];
const axis_titles = {time: 'Time', own: 'Time since the start', offset: 'Offset'};
const is_time = axis => axis !== 'offset';
const extents = {};
for (const axis of axes) {
  const of = data.streams.filter(s => s.known[axis]);
  const high = Math.max(1, ...of.map(s => s.known[axis][s.slices]));
  // The shortest view; numbers have 53 bits.
  extents[axis] = {from: 0, to: high,
    least: Math.min(high, Math.max(has_calls ? .25 : is_time(axis) ? 20 : 16, high * 2 ** -40))};
}
/** Traces recorded at very different times are shown one below the other. */
const first_axis = !time_streams.length ? 'offset'
  : extents.own.to * 20 < extents.time.to ? 'own' : 'time';

// Text.

const grouped = value => Math.round(value).toString()
  .replace(/\B(?=(\d{3})+(?!\d))/g, '\u2009');
const hex = value => '0x' + Math.floor(value).toString(16);
const units = [[1, 's'], [1e-3, 'ms'], [1e-6, '\u00b5s'], [1e-9, 'ns']];
const unit_of = ticks => units.find(u => Math.abs(ticks) / data.tsc_hz >= u[0]) ?? units[3];
/** A position on the axis; `step` is the distance that has to be visible. */
function text_of(axis, value, step = 1) {
  if (axis === 'offset') { return hex(value); }
  if (!data.tsc_hz) { return grouped(value); }
  const [size, unit] = unit_of(extents[axis].to);
  const scaled = value / data.tsc_hz / size, fine = Math.max(step / data.tsc_hz / size, 1e-12);
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(fine) - 1e-9)));
  const [whole, part] = scaled.toFixed(digits).split('.');
  return grouped(whole) + (part ? '.' + part : '') + '\u2009' + unit;
}
function span_text(axis, value) {
  if (!is_time(axis)) { return grouped(value) + (value === 1 ? ' byte' : ' bytes'); }
  if (!data.tsc_hz) { return grouped(value) + ' ticks'; }
  const [size, unit] = unit_of(value), scaled = value / data.tsc_hz / size;
  return (scaled >= 1000 ? grouped(scaled) : scaled.toPrecision(3)) + '\u2009' + unit;
}
function rate_text(value) {
  if (value === 0) { return '0'; }
  return value >= 100 ? grouped(value) : value >= 0.01 ? value.toPrecision(3)
    : value.toExponential(1);
}
const context_text = (s, number) => {
  if (number === 0) { return 'not listed'; }
  const value = BigInt('0x' + s.contexts[number - 1]);
  return '0x' + (value & ~1n).toString(16) + (value & 1n ? ' (non-root)' : '');
};
const base_name = name => name.slice(name.lastIndexOf('/') + 1) || name;
/** The processor or thread comes first: it is what tells the streams of a file apart. */
const short_name = s => !s.label ? base_name(s.name)
  : s.label + ' \u00b7 ' + base_name(s.name.slice(0, -s.label.length - 1));
/** A core frequency from a ratio to the TSC or to the bus clock. */
const gigahertz = value => (value / 1e9).toFixed(2) + ' GHz';
const ratio_text = value => data.non_turbo && data.tsc_hz
  ? `${value} (${gigahertz(value * data.tsc_hz / data.non_turbo)})` : `${value}`;
const clock_text = value => data.tsc_hz ? gigahertz(value * data.tsc_hz)
  : value.toPrecision(3) + ' cycles/tick';
const tracing_names = ['off', 'on', 'unknown'];
const power_text = value => value === 0 ? 'runs' : value === 1 ? 'clock stopped'
  : `C-state ${value - 2}`;
)js";

/// Draws.
inline constexpr std::string_view script_of_view = R"js(
const view = {axis: first_axis, from: 0, to: 1};
const pad_right = 12;
let width = 0, gutter = 0, dots = 1;
const plot_width = () => Math.max(1, width - gutter - pad_right);
const x_of = value => gutter + (value - view.from) / (view.to - view.from) * plot_width();
const value_of = x => view.from + (x - gutter) / plot_width() * (view.to - view.from);

let colours = {};
const dark = matchMedia('(prefers-color-scheme: dark)');
function read_colours() {
  const style = getComputedStyle(document.documentElement);
  colours = {};
  for (const name of ['back', 'panel', 'line', 'text', 'soft', 'accent', 'track', 'on', 'off',
    'unknown', 'conditional', 'indirect', 'clock', 'ratio', 'hue_s', 'hue_l', 'hue_text', 'call_l',
    ...data.lanes]) {
    colours[name] = style.getPropertyValue('--' + name).trim();
  }
}
const context_colour = number => number < 0 ? colours.off
  : `hsl(${(number * 137.508 + 205) % 360} ${colours.hue_s} ${colours.hue_l})`;

/** The lanes of a trace, from top to bottom. */
function rows_of(s) {
  const rows = [{lane: 'tracing', height: 20, draw: draw_tracing}];
  if (s.states.context.count) { rows.push({lane: 'context', height: 22, draw: draw_context}); }
  if (s.conditional || s.counts.indirect_branch) {
    rows.push({lane: 'branches', title: 'Branches', height: 52, draw: draw_branches});
  }
  if (s.sums.instructions && s.sums.cycles) {
    rows.push({lane: 'ipc', title: 'IPC', height: 34, draw: draw_ipc});
  }
  if (s.sums.cycles && s.sums.ticks) {
    rows.push({lane: 'clock', title: 'Core clock', height: 34, draw: draw_clock});
  }
  if (s.states.ratio.count) { rows.push({lane: 'frequency', height: 30, draw: draw_ratio}); }
  if (s.lanes.power.count) { rows.push({lane: 'power', height: 20, draw: draw_power}); }
  for (const lane of ['psb', 'overflow', 'damage', 'interrupts', 'ptwrite', 'transactions', 'pebs',
    'event_trace', 'other']) {
    if (s.lanes[lane].count) { rows.push({lane, height: 16, draw: draw_marks}); }
  }
  rows.push(...rows_of_calls(s));
  let y = 4;
  for (const row of rows) {
    row.title ??= lane_titles[row.lane];
    row.y = y;
    y += row.height + 4;
  }
  s.height = y;
  return rows;
}

/** What all lanes of a trace need: the slices at the boundaries of the columns of pixels. */
function frame_of(s, context) {
  const columns = Math.max(1, Math.floor(plot_width() * dots));
  const place = s.place[view.axis];
  const edges = new Float64Array(columns + 1);
  const step = (view.to - view.from) / columns;
  for (let i = 0; i <= columns; ++i) { edges[i] = slice_at(place, view.from + i * step); }
  return {s, context, columns, edges, step, size: plot_width() / columns};
}
/** The sums of each column of pixels. */
function sums_in(frame, sums) {
  const out = new Float64Array(frame.columns);
  let before = sum_to(sums, frame.edges[0]);
  for (let i = 0; i < frame.columns; ++i) {
    const after = sum_to(sums, frame.edges[i + 1]);
    out[i] = after - before;
    before = after;
  }
  return out;
}
/** Draws the intervals of a state. Returns false where there are too many, or not all are known. */
function for_each_span(state, frame, visit) {
  const place = state.place[view.axis];
  const first = Math.max(0, upper_bound(place, view.from) - 1);
  const end = lower_bound(place, view.to);
  const known = state.complete || end < place.length;
  if (!known || end - first > 2 * frame.columns) { return false; }
  const last = frame.s.place[view.axis][frame.s.slices];
  for (let i = first; i < end; ++i) {
    const to = i + 1 < place.length ? place[i + 1] : last;
    const left = Math.max(gutter, x_of(place[i])), right = Math.min(width - pad_right, x_of(to));
    if (right > left) { visit(state.values[i], left, right); }
  }
  return true;
}
/** A text within a box, if there is room. */
function label(context, text, left, right, middle) {
  if (right - left < 30) { return; }
  context.font = small_font;
  if (context.measureText(text).width > right - left - 8) { return; }
  context.fillStyle = colours.hue_text;
  context.textAlign = 'left';
  context.fillText(text, left + 4, middle);
}
const small_font = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
const normal_font = '12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

function draw_tracing(row, frame) {
  const {s, context} = frame;
  const by_state = [colours.off, colours.on, colours.unknown];
  if (for_each_span(s.states.tracing, frame, (value, left, right) => {
    context.fillStyle = by_state[value];
    const [top, height] = value === 1 ? [0, row.height] : [row.height / 2 - 2, 4];
    context.fillRect(left, row.y + top, Math.max(right - left, .5), height);
  })) { return; }
  const on = sums_in(frame, s.sums[is_time(view.axis) ? 'on_ticks' : 'on_bytes']);
  const [begin, end] = [s.place[view.axis][0], s.place[view.axis][s.slices]];
  context.fillStyle = colours.off;
  const left = Math.max(gutter, x_of(begin)), right = Math.min(width - pad_right, x_of(end));
  if (right > left) { context.fillRect(left, row.y + row.height / 2 - 2, right - left, 4); }
  context.fillStyle = colours.on;
  for (let i = 0; i < frame.columns; ++i) {
    const part = Math.min(1, on[i] / frame.step);
    if (part > 0) {
      const height = Math.max(2, part * row.height);
      context.fillRect(gutter + i * frame.size, row.y + row.height - height, frame.size, height);
    }
  }
}
function draw_context(row, frame) {
  const {s, context} = frame;
  const colour_of = number => context_colour(number === 0 ? -1 : s.context_colours[number - 1]);
  if (for_each_span(s.states.context, frame, (value, left, right) => {
    context.fillStyle = colour_of(value);
    context.fillRect(left, row.y, Math.max(right - left, .5), row.height);
    if (right - left > 3) {
      context.fillStyle = colours.back;
      context.fillRect(left, row.y, .5, row.height);
    }
    label(context, context_text(s, value), left, right, row.y + row.height / 2);
  })) { return; }
  for (let i = 0; i < frame.columns;) {
    const value_at = k => {
      const exact = state_at(s.states.context, view.axis, view.from + (k + .5) * frame.step);
      return exact ?? s.context_of_slice[Math.min(s.slices - 1, Math.floor(frame.edges[k]))];
    };
    const value = value_at(i);
    let end = i + 1;
    while (end < frame.columns && value_at(end) === value) { ++end; }
    const from = view.from + i * frame.step, place = s.place[view.axis];
    if (value !== 0 && from < place[s.slices] && from >= place[0]) {
      context.fillStyle = colour_of(value);
      context.fillRect(gutter + i * frame.size, row.y, (end - i) * frame.size, row.height);
    }
    i = end;
  }
}
/** The top of a scale: a few columns may be higher, so that they do not hide all others. */
function top_of(sums) {
  const some = sums.filter(v => v > 0).sort();
  if (!some.length) { return 0; }
  const high = some[some.length - 1], usual = some[Math.floor((some.length - 1) * .98)] * 1.3;
  return high > 2 * usual ? usual : high;
}
/** Draws columns one on the other. A column that is higher than the scale ends with a dark cap. */
function draw_columns(row, frame, layers, text) {
  const {context, columns, size} = frame;
  const sums = new Float64Array(columns);
  for (const {values} of layers) {
    for (let i = 0; i < columns; ++i) { sums[i] += values[i]; }
  }
  const high = top_of(sums), most = row.height - 2, bottom = row.y + row.height;
  context.fillStyle = colours.track;
  context.fillRect(gutter, bottom - 1, plot_width(), 1);
  if (high === 0) { return; }
  const below = new Float64Array(columns);
  for (const {values, colour} of layers) {
    context.fillStyle = colour;
    context.beginPath();
    for (let i = 0; i < columns; ++i) {
      const height = Math.min(values[i] / high * most, most - below[i]);
      if (!(height > 0)) { continue; }
      context.rect(gutter + i * size, bottom - below[i] - height, size, Math.max(height, 1));
      below[i] += height;
    }
    context.fill();
  }
  context.fillStyle = colours.text;
  for (let i = 0; i < columns; ++i) {
    if (sums[i] > high * 1.001) { context.fillRect(gutter + i * size, row.y, size, 2); }
  }
  row.note = '0\u2013' + text(high);
}
function draw_branches(row, frame) {
  const {s} = frame;
  const per_unit = name => sums_in(frame, s.sums[name]).map(v => v / frame.step);
  const unit = view.axis === 'offset' ? '/byte' : data.tsc_hz ? '/\u00b5s' : '/tick';
  const scale = is_time(view.axis) && data.tsc_hz ? data.tsc_hz / 1e6 : 1;
  draw_columns(row, frame, [{values: per_unit('conditional'), colour: colours.conditional},
    {values: per_unit('indirect'), colour: colours.indirect}],
    high => rate_text(high * scale) + unit);
}
function quotient(frame, over, under) {
  const below = sums_in(frame, under);
  return sums_in(frame, over).map((v, i) => below[i] > 0 ? v / below[i] : 0);
}
function draw_clock(row, frame) {
  const values = quotient(frame, frame.s.sums.cycles, frame.s.sums.ticks);
  draw_columns(row, frame, [{values, colour: colours.clock}], clock_text);
}
function draw_ipc(row, frame) {
  const values = quotient(frame, frame.s.sums.instructions, frame.s.sums.cycles);
  draw_columns(row, frame, [{values, colour: colours.clock}], high => high.toFixed(2));
}
function draw_ratio(row, frame) {
  const {s, context} = frame, state = s.states.ratio;
  const high = Math.max(1, ...state.values.slice(0, 20000));
  row.note = 'max ' + (gutter < 100 ? high : ratio_text(high));
  const height = value => value / high * (row.height - 2);
  context.fillStyle = colours.track;
  context.fillRect(gutter, row.y + row.height - 1, plot_width(), 1);
  const bar = (value, left, right) => {
    context.globalAlpha = .3;
    context.fillStyle = colours.ratio;
    context.fillRect(left, row.y + row.height - height(value), right - left, height(value));
    context.globalAlpha = 1;
    context.fillRect(left, row.y + row.height - height(value), Math.max(1, right - left), 1.5);
  };
  if (for_each_span(state, frame, (value, left, right) => {
    bar(value, left, right);
    if (height(value) > 14) {
      context.font = small_font;
      const text = ratio_text(value);
      if (context.measureText(text).width < right - left - 8) {
        context.fillStyle = colours.text;
        context.textAlign = 'left';
        context.fillText(text, left + 4, row.y + row.height - height(value) + 9);
      }
    }
  })) { return; }
  for (let i = 0; i < frame.columns; ++i) {
    const value = state_at(state, view.axis, view.from + (i + .5) * frame.step);
    if (value !== null) { bar(value, gutter + i * frame.size, gutter + (i + 1) * frame.size); }
  }
}
function draw_power(row, frame) {
  const {s, context} = frame;
  for_each_span(s.states.power, frame, (value, left, right) => {
    if (value === 0) { return; }
    context.globalAlpha = .35;
    context.fillStyle = colours.power;
    context.fillRect(left, row.y + 2, right - left, row.height - 4);
    context.globalAlpha = 1;
    label(context, power_text(value), left, right, row.y + row.height / 2);
  });
  draw_marks(row, frame);
}
function draw_marks(row, frame) {
  const {s, context} = frame, lane = s.lanes[row.lane], place = lane.place[view.axis];
  context.fillStyle = colours.track;
  context.fillRect(gutter, row.y + row.height / 2 - .5, plot_width(), 1);
  context.fillStyle = colours[row.lane];
  const first = lower_bound(place, view.from), end = upper_bound(place, view.to);
  const known = lane.complete || end < place.length;
  const thick = Math.max(1, 1.5 / dots);
  if (known && end - first <= 4 * frame.columns) {
    let last = -1;
    context.beginPath();
    for (let i = first; i < end; ++i) {
      const x = Math.round(x_of(place[i]) * dots) / dots;
      if (x !== last) { context.rect(x - thick / 2, row.y + 1, thick, row.height - 2); }
      last = x;
    }
    context.fill();
    return;
  }
  const counts = sums_in(frame, s.sums[row.lane]);
  for (let i = 0; i < frame.columns; ++i) {
    if (counts[i] > 1e-9) {
      context.globalAlpha = Math.min(1, .25 + .75 * counts[i]);
      context.fillRect(gutter + i * frame.size, row.y + 1, frame.size, row.height - 2);
    }
  }
  context.globalAlpha = 1;
}

/** Sets the size of a canvas, and returns its context in CSS pixels. */
function context_of(canvas, height) {
  const [w, h] = [Math.max(1, Math.round(width * dots)), Math.round(height * dots)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.height = height + 'px';
  }
  const context = canvas.getContext('2d');
  context.setTransform(dots, 0, 0, dots, 0, 0);
  context.clearRect(0, 0, width, height);
  context.textBaseline = 'middle';
  return context;
}
/** Distances of 1, 2 or 5 times a power of ten, or of powers of 16 with factors for offsets. */
function step_for(span, count) {
  if (view.axis === 'offset') {
    return Math.max(1, Math.pow(2, Math.ceil(Math.log2(span / count))));
  }
  const scale = data.tsc_hz ? 1e9 / data.tsc_hz : 1;
  const raw = span / count * scale;
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const factor = [1, 2, 5, 10].find(f => f * power >= raw);
  return Math.max(factor * power / scale, 1e-6);
}
function draw_ruler() {
  const context = context_of(element('ruler'), 24);
  context.font = small_font;
  context.fillStyle = colours.soft;
  context.textAlign = 'left';
  context.fillText(view.axis === 'offset' ? 'Offset' : data.tsc_hz ? 'Time' : 'Ticks', 10, 12);
  const span = view.to - view.from;
  const step = step_for(span, Math.max(2, plot_width() / (gutter < 100 ? 75 : 110)));
  context.textAlign = 'center';
  grid.length = 0;
  const first = Math.ceil(view.from / step), count = Math.floor(span / step) + 1;
  for (let k = first; k < first + count && k * step <= view.to; ++k) {
    const x = x_of(k * step);
    grid.push(x);
    context.fillStyle = colours.line;
    context.fillRect(x, 18, 1, 6);
    context.fillStyle = colours.soft;
    const text = k === 0 ? '0' : text_of(view.axis, k * step, step);
    const half = context.measureText(text).width / 2;
    context.fillText(text, Math.min(Math.max(x, gutter + half), width - half - 4), 10);
  }
}
const grid = [];

const overview = {key: '', values: null};
function draw_overview() {
  const context = context_of(element('overview'), 26);
  const left = gutter, size = plot_width(), all = extents[view.axis];
  const columns = Math.floor(size);
  const key = [view.axis, columns].join();
  if (overview.key !== key) {
    overview.key = key;
    overview.values = new Float64Array(columns);
    const [from, to] = [view.from, view.to];
    [view.from, view.to] = [all.from, all.to];
    for (const s of data.streams.filter(s => s.place[view.axis])) {
      const frame = {...frame_of(s, null), columns};
      for (let i = 0; i <= columns; ++i) {
        frame.edges[i] = slice_at(s.place[view.axis], all.from + i * (all.to - all.from) / columns);
      }
      for (const name of ['conditional', 'indirect']) {
        sums_in(frame, s.sums[name]).forEach((v, i) => { overview.values[i] += v; });
      }
    }
    [view.from, view.to] = [from, to];
  }
  const high = top_of(overview.values);
  context.font = small_font;
  context.fillStyle = colours.soft;
  context.textAlign = 'left';
  context.fillText('Overview', 10, 13);
  context.fillStyle = colours.track;
  context.fillRect(left, 0, size, 26);
  context.fillStyle = colours.soft;
  overview.values.forEach((value, i) => {
    if (value > 0) {
      const height = Math.max(1, Math.sqrt(Math.min(1, value / high)) * 24);
      context.fillRect(left + i, 26 - height, 1, height);
    }
  });
  const span = all.to - all.from;
  const a = left + (view.from - all.from) / span * size;
  const b = left + (view.to - all.from) / span * size;
  context.globalAlpha = .22;
  context.fillStyle = colours.accent;
  context.fillRect(a, 0, Math.max(2, b - a), 26);
  context.globalAlpha = 1;
  context.fillRect(a, 0, 1.5, 26);
  context.fillRect(Math.max(a + 2, b) - 1.5, 0, 1.5, 26);
}

function draw_stream(s) {
  const context = context_of(s.canvas, s.place[view.axis] ? s.height : 34);
  context.fillStyle = colours.line;
  context.globalAlpha = .55;
  for (const x of grid) { context.fillRect(x, 0, 1, s.height); }
  context.globalAlpha = 1;
  if (!s.place[view.axis]) {
    context.font = normal_font;
    context.fillStyle = colours.soft;
    context.textAlign = 'left';
    context.fillText('This trace has no time: choose Offset above.', gutter + 6, 17);
    return;
  }
  const frame = frame_of(s, context);
  for (const row of s.rows) {
    row.note = '';
    row.more = [];
    row.draw(row, frame);
  }
  for (const row of s.rows) {
    const middle = row.y + Math.min(row.height, 52) / 2;
    context.textAlign = 'left';
    context.font = row.height < 20 ? small_font : normal_font;
    context.fillStyle = colours.text;
    const above = row.note && row.height > 28 ? 7 : 0;
    context.fillText(row.title, 10, middle - above);
    if (row.note && above) {
      context.font = small_font;
      context.fillStyle = colours.soft;
      context.fillText(row.note, 10, middle + above, gutter - 14);
      row.more.forEach((text, i) =>
        context.fillText(text, 10, middle + above + 15 * (i + 1), gutter - 14));
    }
  }
}
let scheduled = false;
function draw() {
  scheduled = false;
  draw_overview();
  draw_ruler();
  for (const s of data.streams) {
    if (s.visible) { draw_stream(s); }
  }
}
function schedule() {
  if (scheduled) { return; }
  scheduled = true;
  requestAnimationFrame(draw);
}
)js";

/// Handles pointers and keys, and fills the list and the summary.
inline constexpr std::string_view script_of_input = R"js(
const main = element('main'), tip = element('tip'), cursor = element('cursor');
const list = element('list');

function make(tag, text = '', properties = {}) {
  const one = Object.assign(document.createElement(tag), properties);
  one.textContent = text;
  return one;
}

// The view.

let quiet = 0;
function show(from, to) {
  const all = extents[view.axis];
  const span = Math.min(Math.max(to - from, all.least), all.to - all.from);
  const middle = (from + to) / 2;
  view.from = Math.min(Math.max(middle - span / 2, all.from), all.to - span);
  view.to = view.from + span;
  schedule();
  clearTimeout(quiet);
  quiet = setTimeout(() => {
    const step = span / 1000;
    element('range').textContent = `${axis_titles[view.axis]} from ` +
      `${text_of(view.axis, view.from, step)} to ${text_of(view.axis, view.to, step)}, ` +
      `${span_text(view.axis, span)} of ${span_text(view.axis, all.to - all.from)}.`;
    if (element('in_view').checked) { filter(); }
  }, 120);
}
const show_all = () => show(extents[view.axis].from, extents[view.axis].to);
function zoom(factor, at = (view.from + view.to) / 2) {
  const all = extents[view.axis];
  const span = Math.min(Math.max((view.to - view.from) * factor, all.least), all.to - all.from);
  const part = (at - view.from) / (view.to - view.from);
  show(at - part * span, at + (1 - part) * span);
}
const pan = part => {
  const by = part * (view.to - view.from);
  show(view.from + by, view.to + by);
};
function set_axis(axis) {
  if (element('by_' + axis).hidden) { return; }
  view.axis = axis;
  for (const one of axes) { element('by_' + one).setAttribute('aria-pressed', one === axis); }
  hide_tip();
  show_all();
  fill_head();
  filter();
}

// Pointers.

const pointers = new Map();
let drag = null;
const place_of = event => event.clientX - main.getBoundingClientRect().left - main.clientLeft;
main.addEventListener('wheel', event => {
  event.preventDefault();
  const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
  const [dx, dy] = [event.deltaX * lines, event.deltaY * lines];
  if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) {
    pan((Math.abs(dx) > Math.abs(dy) ? dx : dy) / plot_width());
  } else {
    const speed = event.ctrlKey ? .012 : .0022;
    zoom(Math.exp(Math.max(-240, Math.min(240, dy)) * speed), value_of(place_of(event)));
  }
  hover(event);
}, {passive: false});
main.addEventListener('pointerdown', event => {
  if (event.button !== 0) { return; }
  pointers.set(event.pointerId, place_of(event));
  main.setPointerCapture(event.pointerId);
  if (event.target === element('overview')) {
    drag = {overview: true};
    move_overview(event);
  } else if (pointers.size === 1) {
    drag = {x: place_of(event), from: view.from, to: view.to, brush: event.shiftKey, far: false};
  } else {
    const [a, b] = [...pointers.values()];
    drag = {pinch: true, a: value_of(a), b: value_of(b)};
  }
});
function move_overview(event) {
  const all = extents[view.axis], span = view.to - view.from;
  const at = all.from + (place_of(event) - gutter) / plot_width() * (all.to - all.from);
  show(at - span / 2, at + span / 2);
}
main.addEventListener('pointermove', event => {
  if (!pointers.has(event.pointerId)) { return hover(event); }
  pointers.set(event.pointerId, place_of(event));
  if (!drag) { return; }
  const x = place_of(event);
  if (drag.overview) {
    move_overview(event);
  } else if (drag.pinch && pointers.size >= 2) {
    const [a, b] = [...pointers.values()];
    if (Math.abs(b - a) < 8) { return; }
    const scale = (drag.b - drag.a) / (b - a);
    const from = drag.a - (a - gutter) * scale;
    if (scale > 0) { show(from, from + scale * plot_width()); }
  } else if (!drag.pinch) {
    drag.far ||= Math.abs(x - drag.x) > 3;
    if (!drag.far) { return; }
    hide_tip();
    if (drag.brush) {
      const [a, b] = [Math.min(x, drag.x), Math.max(x, drag.x)];
      Object.assign(element('brush').style, {left: a + 'px', width: b - a + 'px'});
      element('brush').hidden = false;
    } else {
      main.classList.add('dragging');
      const by = (drag.x - x) / plot_width() * (drag.to - drag.from);
      show(drag.from + by, drag.to + by);
    }
  }
});
function release(event) {
  pointers.delete(event.pointerId);
  if (drag?.brush && drag.far && event.type === 'pointerup') {
    const x = place_of(event);
    show(value_of(Math.min(x, drag.x)), value_of(Math.max(x, drag.x)));
  } else if (drag && !drag.far && !drag.overview && !drag.pinch && event.type === 'pointerup') {
    hover(event);
  }
  element('brush').hidden = true;
  main.classList.remove('dragging');
  drag = null;
}
main.addEventListener('pointerup', release);
main.addEventListener('pointercancel', release);
main.addEventListener('pointerleave', event => {
  if (event.pointerType === 'mouse') { hide_tip(); }
});
main.addEventListener('dblclick', event => {
  const found = call_under(event);
  if (!found) { return zoom(.4, value_of(place_of(event))); }
  const {begin, end} = found.lane.place[view.axis], room = .02 * (end[found.i] - begin[found.i]);
  show(begin[found.i] - room, end[found.i] + room);
});
addEventListener('scroll', () => hide_tip(), {passive: true});

// The tooltip.

function hide_tip() {
  tip.hidden = true;
  cursor.hidden = true;
}
/** The listed event of a lane that is nearest to a position. */
function nearest(s, lane_name, value, within) {
  const lane = s.lanes[lane_name];
  if (!lane) { return -1; }
  const place = lane.place[view.axis], i = lower_bound(place, value);
  let best = -1, distance = within;
  for (const k of [i - 1, i]) {
    if (k >= 0 && k < place.length && Math.abs(place[k] - value) <= distance) {
      distance = Math.abs(place[k] - value);
      best = lane.index[k];
    }
  }
  return best;
}
/** Where only the order is known, an event has the time of the TSC packet before it. */
const since = s => s.ordered ? '\u2265\u2009' : '';
/** The axis for times in text. */
const time_axis = () => [view.axis, first_axis].find(is_time) ?? 'time';
const absolute = value => (base_time + BigInt(Math.round(value))).toString();
function describe_event(s, i) {
  const events = s.events, rows = [];
  if (s.timed) {
    const at = events.place.time[i];
    const axis = time_axis();
    rows.push(['Time', since(s) + text_of(axis, events.place[axis][i], 1) +
      (data.tsc_hz ? '' : ' ticks')]);
    rows.push(['TSC', absolute(at)]);
  }
  rows.push(['Offset', hex(events.place.offset[i])]);
  if (events.ip[i]) { rows.push(['IP', '0x' + events.ip[i]]); }
  if (events.to[i]) { rows.push(['To', '0x' + events.to[i]]); }
  if (events.text[i]) { rows.push(['Values', events.text[i]]); }
  return rows;
}
function describe_place(s, row, x) {
  const value = value_of(x), axis = view.axis, place = s.place[axis], rows = [];
  const slice = Math.min(s.slices - 1, Math.floor(slice_at(place, value)));
  const step = (view.to - view.from) / plot_width();
  if (is_time(axis)) {
    rows.push(['Time', text_of(axis, value, step) + (data.tsc_hz ? '' : ' ticks')]);
    rows.push(['Offset', hex(s.place.offset[slice]) + ' to ' +
      hex(s.place.offset[slice + 1] - 1)]);
  } else {
    rows.push(['Offset', hex(value)]);
    if (s.place.own) { rows.push(['Time', text_of('own', s.place.own[slice], 1)]); }
  }
  const tracing = state_at(s.states.tracing, axis, value);
  if (tracing !== null) { rows.push(['Tracing', tracing_names[tracing]]); }
  const context = state_at(s.states.context, axis, value) ?? s.context_of_slice[slice];
  if (context) { rows.push(['CR3', context_text(s, context)]); }
  const [low, high] = [slice_at(place, value - 1.5 * step), slice_at(place, value + 1.5 * step)];
  const sum = name => sum_to(s.sums[name], high) - sum_to(s.sums[name], low);
  const about = v => (Number.isInteger(v) || v > 100 ? '' : '\u2248\u2009') + rate_text(v);
  if (row?.lane === 'branches') {
    rows.push(['Conditional', about(sum('conditional'))], ['Indirect', about(sum('indirect'))],
      ['within', span_text(axis, 3 * step)]);
  }
  if (s.sums.cycles && s.sums.ticks && sum('ticks') > 0) {
    rows.push(['Core clock', clock_text(sum('cycles') / sum('ticks'))]);
  }
  const ratio = state_at(s.states.ratio, axis, value);
  if (ratio !== null) { rows.push(['Core ratio', ratio_text(ratio)]); }
  const power = state_at(s.states.power, axis, value);
  if (power) { rows.push(['Power', power_text(power)]); }
  if (row && s.lanes[row.lane]?.count && !s.lanes[row.lane].complete) {
    rows.push(['Listed', `${grouped(s.lanes[row.lane].index.length)} of ` +
      `${grouped(s.lanes[row.lane].count)}`]);
  }
  return rows;
}
function fill_rows(to, rows) {
  const terms = make('dl');
  for (const [name, text] of rows) { terms.append(make('dt', name), make('dd', text)); }
  to.append(terms);
}
/** The call under a pointer; null for none. */
function call_under(event) {
  const under = document.elementFromPoint(event.clientX, event.clientY);
  const s = under && data.streams.find(one => one.canvas === under), x = place_of(event);
  if (!s?.place[view.axis] || x < gutter || x > width - pad_right) { return null; }
  const y = event.clientY - s.canvas.getBoundingClientRect().top;
  const row = s.rows.find(one => one.calls && y >= one.y && y < one.y + one.height);
  const i = row ? call_at(row, x, y) : -1;
  return i < 0 ? null : {s, lane: row.calls, i};
}
function hover(event) {
  // A captured pointer has another target.
  const under = document.elementFromPoint(event.clientX, event.clientY);
  const s = under && data.streams.find(one => one.canvas === under);
  const x = place_of(event);
  const outside = x < gutter || x > width - pad_right;
  cursor.hidden = outside;
  cursor.style.left = x + 'px';
  if (!s || outside || !s.place[view.axis]) { tip.hidden = true; return; }
  const y = event.clientY - s.canvas.getBoundingClientRect().top;
  const row = s.rows.find(one => y >= one.y - 2 && y < one.y + one.height + 2);
  const value = value_of(x), reach = (event.pointerType === 'touch' ? 14 : 6) *
    (view.to - view.from) / plot_width();
  const place = s.place[view.axis];
  const inside = value >= place[0] && value <= place[s.slices];
  const found = row ? nearest(s, row.lane, value, reach) : -1;
  const call = call_under(event);
  if (found < 0 && !inside && !call) { tip.hidden = true; return; }
  tip.replaceChildren();
  if (call) {
    fill_rows(tip, describe_call(s, call.lane, call.i));
  } else if (inside) {
    fill_rows(tip, describe_place(s, row, x));
  }
  if (found >= 0) {
    const part = make('div', '', {className: inside ? 'event' : ''});
    const dot = make('span', '', {className: 'dot'});
    dot.style.background = colours[data.type_lanes[s.events.types[found]]];
    part.append(dot, make('b', data.types[s.events.types[found]]));
    fill_rows(part, describe_event(s, found));
    tip.append(part);
  }
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const right = event.clientX + 16 + box.width < innerWidth;
  const left = right ? event.clientX + 16 : Math.max(8, event.clientX - 16 - box.width);
  const top = Math.min(event.clientY + 18, innerHeight - box.height - 8);
  tip.style.transform = `translate(${Math.min(left, innerWidth - box.width - 8)}px, ` +
    `${Math.max(8, top)}px)`;
}

// Keys.

const keys = element('keys');
const open_help = () => keys.showModal();
const actions = {
  ArrowLeft: e => pan(e.shiftKey ? -.9 : -.1), ArrowRight: e => pan(e.shiftKey ? .9 : .1),
  ArrowUp: () => zoom(.7), ArrowDown: () => zoom(1 / .7),
  '+': () => zoom(.7), '=': () => zoom(.7), '-': () => zoom(1 / .7), '_': () => zoom(1 / .7),
  Home: show_all, 0: show_all, n: () => choose(chosen + 1), p: () => choose(chosen - 1),
  t: () => set_axis('time'), s: () => set_axis('own'), o: () => set_axis('offset'),
  '?': open_help,
  Escape: hide_tip,
};
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || keys.open) { return; }
  const focus = document.activeElement;
  if (focus !== document.body && focus !== main && event.key !== '?') { return; }
  const action = actions[event.key] ?? actions[event.key.toLowerCase()];
  if (!action) { return; }
  event.preventDefault();
  hide_tip();
  action(event);
});
element('zoom_in').onclick = () => zoom(.5);
element('zoom_out').onclick = () => zoom(2);
element('reset').onclick = show_all;
element('help').onclick = open_help;
for (const axis of axes) { element('by_' + axis).onclick = () => set_axis(axis); }

// The list of events. Only the visible rows exist.

const several = data.streams.length > 1;
let row_height = 24;
let listed = [], chosen = -1;  // listed: [trace, event]
function filter() {
  const stream = element('of_stream').value, lane = element('of_lane').value;
  const in_view = element('in_view').checked;
  listed = [];
  data.streams.forEach((s, k) => {
    if (stream !== '' && +stream !== k) { return; }
    const place = s.events.place[view.axis];
    s.events.types.forEach((type, i) => {
      if (lane !== '' && data.type_lanes[type] !== lane) { return; }
      if (in_view && !(place && place[i] >= view.from && place[i] <= view.to)) { return; }
      listed.push([k, i]);
    });
  });
  if (is_time(view.axis) && stream === '' && data.streams.length > 1) {
    const at = ([k, i]) => data.streams[k].events.place[view.axis]?.[i] ?? Infinity;
    listed.sort((a, b) => at(a) - at(b) || a[0] - b[0] || a[1] - b[1]);
  }
  chosen = -1;
  const total = data.streams.reduce((sum, s, k) => stream !== '' && +stream !== k ? sum
    : sum + Object.entries(s.lanes).reduce((n, [name, one]) =>
      lane === '' || lane === name ? n + one.count : n, 0), 0);
  element('shown').textContent = in_view ? `${grouped(listed.length)} listed`
    : listed.length === total ? `${grouped(total)}`
    : `the first ${grouped(listed.length)} of ${grouped(total)}, by lane`;
  list.scrollTop = 0;
  draw_list();
}
function fill_head() {
  element('head').replaceChildren(make('span', 'Event'),
    ...(several ? [make('span', 'Trace', {className: 'wide'})] : []),
    make('span', data.tsc_hz ? 'Time' : 'Ticks', {className: 'n'}),
    make('span', 'Offset', {className: 'n wide'}), make('span', 'IP', {className: 't wide'}),
    make('span', 'Values', {className: 't'}));
  if (!timed_streams.length) {
    const [first, second] = element('head').querySelectorAll('.n');
    first.textContent = 'Offset';
    second.textContent = '';
  }
}
function row_of(n) {
  const [k, i] = listed[n], s = data.streams[k], events = s.events;
  const type = data.types[events.types[i]];
  const row = make('div', '', {className: 'row', id: 'event' + n});
  row.setAttribute('role', 'option');
  row.setAttribute('aria-selected', n === chosen);
  row.setAttribute('aria-posinset', n + 1);
  row.setAttribute('aria-setsize', listed.length);
  if (n === chosen) { row.classList.add('chosen'); }
  Object.assign(row.style, {top: n * row_height + 'px', height: row_height + 'px',
    lineHeight: row_height + 'px'});
  row.dataset.n = n;
  const name = make('span');
  const dot = make('span', '', {className: 'dot'});
  dot.style.background = colours[data.type_lanes[events.types[i]]];
  name.append(dot, type);
  const offset = hex(events.place.offset[i]);
  const axis = time_axis();
  const time = s.timed ? since(s) + text_of(axis, events.place[axis][i], 1) : '';
  const at = width < 600 && events.ip[i] ? 'at 0x' + events.ip[i] + ' ' : '';  // has no column
  const text = at + (events.to[i] ? 'to 0x' + events.to[i] + ' ' : '') + (events.text[i] || '');
  row.append(name,
    ...(several ? [make('span', short_name(s), {className: 'wide', title: s.name})] : []),
    make('span', timed_streams.length ? time : offset, {className: 'n'}),
    make('span', timed_streams.length ? offset : '', {className: 'n wide'}),
    make('span', events.ip[i] ? '0x' + events.ip[i] : '', {className: 't wide'}),
    make('span', text, {className: 't', title: text}));
  return row;
}
function draw_list() {
  element('space').style.height = listed.length * row_height + 'px';
  const first = Math.max(0, Math.floor(list.scrollTop / row_height) - 4);
  const end = Math.min(listed.length, first + Math.ceil(list.clientHeight / row_height) + 8);
  const rows = [element('space')];
  for (let n = first; n < end; ++n) { rows.push(row_of(n)); }
  if (!listed.length) { rows.push(make('p', 'No event.', {className: 'empty'})); }
  list.replaceChildren(...rows);
  if (chosen >= first && chosen < end) {
    list.setAttribute('aria-activedescendant', 'event' + chosen);
  } else {
    list.removeAttribute('aria-activedescendant');
  }
}
/** Marks an event of the list, and zooms to it. */
function choose(n, zooms = true) {
  if (!listed.length) { return; }
  chosen = Math.max(0, Math.min(listed.length - 1, n));
  const top = chosen * row_height;
  if (top < list.scrollTop || top + row_height > list.scrollTop + list.clientHeight) {
    list.scrollTop = top - list.clientHeight / 2;
  }
  draw_list();
  const [k, i] = listed[chosen], s = data.streams[k];
  if (!s.events.place[view.axis]) { return set_axis('offset'); }
  const at = s.events.place[view.axis][i], all = extents[view.axis];
  const span = zooms ? Math.min(view.to - view.from, Math.max((all.to - all.from) / 200, all.least))
    : view.to - view.from;
  show(at - span / 2, at + span / 2);
}
list.addEventListener('scroll', draw_list, {passive: true});
list.addEventListener('click', event => {
  const row = event.target.closest('.row');
  if (row) { choose(+row.dataset.n); }
});
list.addEventListener('keydown', event => {
  const page = Math.floor(list.clientHeight / row_height);
  const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity,
    End: Infinity};
  if (event.key in steps) {
    event.preventDefault();
    choose(Math.max(0, Math.min(listed.length - 1, chosen + steps[event.key])), false);
  } else if (event.key === 'Enter' || event.key === ' ') {
    event.preventDefault();
    choose(chosen);
  }
});
for (const id of ['of_stream', 'of_lane', 'in_view']) { element(id).onchange = filter; }

// Titles, notes, the summary.

function fill_notes() {
  const notes = [];
  const some = test => data.streams.filter(test).map(s => short_name(s));
  const names = of => of.length > 3 ? `${of.slice(0, 3).join(', ')} and ${of.length - 3} more`
    : of.join(', ');
  const untimed = some(s => !s.timed);
  if (untimed.length) {
    notes.push(`No time in ${names(untimed)}: no TSC packets, or all the same time. `
      + 'Its horizontal axis is the offset in bytes.');
  }
  const ordered = some(s => s.ordered);
  if (ordered.length) {
    notes.push(`Drawn in order, not over time: ${names(ordered)}. Between TSC packets no time is `
      + 'known: --tsc-ratio and --mtc-freq, for MTCs, or --non-turbo, for CYCs, are not given. '
      + 'The horizontal axis is the offset in bytes.');
  } else if (!data.tsc_ratio && some(s => s.timed && s.packets.mtc).length) {
    notes.push('MTC packets give no time here: --tsc-ratio and --mtc-freq are not given.');
  }
  if (some(s => s.timed && s.unused_cycs * 50 > s.packets.cyc).length) {
    notes.push('Some CYC packets give no time: --non-turbo is not given, or no CBR precedes them.');
  }
  const capped = new Set();
  for (const s of data.streams) {
    for (const [name, lane] of Object.entries(s.lanes)) {
      if (!lane.complete) { capped.add(lane_titles[name]); }
    }
  }
  if (capped.size) {
    const bytes = grouped(Math.max(...data.streams.map(s => s.slice_bytes)));
    notes.push(`All events are counted and drawn, but not all are listed: ${[...capped].join(', ')}`
      + `. Beyond the listed ones, they are drawn to the nearest ${bytes} bytes of the trace.`);
  }
  const back = some(s => s.timed && s.times_back);
  if (back.length) {
    notes.push(`The time goes back in ${names(back)}: times that are out of order are ignored.`);
  }
  for (const s of data.streams) {
    if (s.gaps) {
      notes.push(`Trace is missing in ${short_name(s)}: ${grouped(s.gaps)} gaps` + (s.told_gaps
        ? `; AUX records of the kernel tell ${grouped(s.told_gaps)} of them.` : '.'));
    }
    if (s.partials) {
      notes.push(`Tracing was off for a while in ${short_name(s)}, as ${grouped(s.partials)} `
        + 'AUX records of the kernel say (PARTIAL).');
    }
  }
  const unsynced = some(s => s.read && !s.packets.psb);
  if (unsynced.length) {
    notes.push(`No PSB in ${names(unsynced)}: IPs and the mode of the code are unknown.`);
  }
  for (const s of data.streams.filter(s => s.calls)) {
    const {gaps, resolution, left_out, threads_left_out} = s.calls;
    if (resolution) {
      notes.push(`${short_name(s)} has more calls than a page takes: those that follow each other `
        + `within ${grouped(resolution)} instructions and ticks are one bar. --time draws each `
        + 'call of a short part.');
    }
    if (gaps) {
      notes.push(`What ${short_name(s)} executed is not known in ${grouped(gaps)} `
        + (gaps === 1 ? 'place, which is hatched.' : 'places, which are hatched.'));
    }
    if (left_out) {
      notes.push(`${grouped(left_out)} deeply nested calls of ${short_name(s)} are not drawn.`);
    }
    if (threads_left_out) {
      notes.push(`The calls of ${grouped(threads_left_out)} threads of ${short_name(s)} are not `
        + 'drawn.');
    }
  }
  const skipped = data.streams.reduce((sum, s) => sum + s.skipped, 0);
  if (skipped) { notes.push(`${grouped(skipped)} bytes before a PSB are skipped.`); }
  element('notes').replaceChildren(...notes.map(text => make('li', text)));
  element('notes').hidden = !notes.length;
}
function fill_summary() {
  const columns = [['Bytes', s => s.bytes],
    ['Duration', s => s.timed ? span_text('time', s.ticks) : 'none'],
    ['Conditional branches', s => s.conditional],
    ['Indirect branches', s => s.counts.indirect_branch ?? 0],
    ['Enabled', s => s.counts.enabled ?? 0],
    ['Disabled', s => (s.counts.disabled ?? 0) + (s.counts.async_disabled ?? 0)],
    ...(has_calls ? [['Instructions', s => s.calls?.instructions ?? '']] : []),
    ['PSB', s => s.packets.psb ?? 0], ['CR3 changes', s => s.counts.paging ?? 0],
    ['Interrupts', s => s.lanes.interrupts.count], ['PTWRITE', s => s.counts.ptwrite ?? 0],
    ['Overflows', s => s.counts.overflow ?? 0], ['Damage', s => s.counts.damage ?? 0]];
  const head = make('tr');
  head.append(make('th', 'Trace', {scope: 'col'}),
    ...columns.map(([name]) => make('th', name, {scope: 'col'})));
  const rows = data.streams.map(s => {
    const row = make('tr');
    row.append(make('th', short_name(s), {scope: 'row', title: s.name}));
    for (const [name, value] of columns) {
      const what = value(s), cell = make('td', typeof what === 'number' ? grouped(what) : what);
      if (what && (name === 'Overflows' || name === 'Damage')) { cell.className = 'bad'; }
      row.append(cell);
    }
    return row;
  });
  const [top, body] = [make('thead'), make('tbody')];
  top.append(head);
  body.append(...rows);
  element('summary').replaceChildren(top, body);
}
function start() {
  document.title = data.title;
  element('title').textContent = data.title;
  read_colours();
  const watch = new IntersectionObserver(changes => {
    for (const change of changes) {
      const s = data.streams[change.target.dataset.stream];
      s.visible = change.isIntersecting;
      if (!s.visible) { s.canvas.width = s.canvas.height = 1; }
    }
    schedule();
  }, {rootMargin: '300px'});
  data.streams.forEach((s, k) => {
    s.rows = rows_of(s);
    const part = make('div', '', {className: 'stream'});
    const name = make('div', '', {className: 'name', title: s.name});
    name.append(make('b', short_name(s)), make('span', `${grouped(s.bytes)} bytes`),
      make('span', s.timed ? span_text('time', s.ticks) : 'no time',
        {className: s.ordered ? 'wide' : ''}),
      make('span', `${grouped(s.conditional)} conditional branches`, {className: 'wide'}));
    s.canvas = make('canvas');
    s.canvas.style.height = s.height + 'px';
    s.canvas.dataset.stream = k;
    s.canvas.setAttribute('role', 'img');
    s.canvas.setAttribute('aria-label', `Lanes of ${short_name(s)}: ` +
      s.rows.map(row => row.title).join(', ') + '. The summary below has its totals.');
    part.append(name);
    if (!s.read) {
      part.append(make('p', 'No PSB: nothing can be decoded without --no-sync.',
        {className: 'empty'}));
    }
    part.append(s.canvas);
    element('streams').append(part);
    watch.observe(s.canvas);
  });
  const option = (text, value) => make('option', text, {value});
  element('of_stream').append(option('all', ''),
    ...data.streams.map((s, k) => option(short_name(s), k)));
  element('of_stream').parentElement.hidden = !several;
  list.parentElement.classList.toggle('several', several);
  element('of_lane').append(option('all', ''), ...data.lanes
    .filter(name => data.streams.some(s => s.lanes[name].count))
    .map(name => option(lane_titles[name], name)));
  element('calls_legend').hidden = !has_calls;
  element('by_time').hidden = !time_streams.length;
  element('by_own').hidden = time_streams.length < 2;
  if (!time_streams.length) { element('axis').hidden = true; }
  fill_notes();
  fill_summary();
  const resize = () => {
    width = main.clientWidth;
    gutter = width < 600 ? 84 : 132;
    row_height = width < 600 ? 36 : 24;
    dots = Math.min(3, devicePixelRatio || 1);
    draw();
    draw_list();
  };
  new ResizeObserver(resize).observe(main);
  matchMedia('(resolution: 1dppx)').addEventListener('change', resize);
  dark.addEventListener('change', () => { read_colours(); schedule(); draw_list(); });
  width = main.clientWidth;
  set_axis(view.axis);
  resize();
}
start();
)js";

}  // namespace timeline
