// What each worker has done, second by second, as far as the server knows.

import { MARKS, marked } from '/series.js';

export const STATES = { c: 'computes', p: 'pushes', u: 'pulls', w: 'waits', l: 'lost', s: 'stalled', ' ': '' };
export const COUNTED = { c: 'computing', p: 'pushing', u: 'pulling', w: 'waiting', l: 'lost', s: 'stalled' };
const KEY = {
  c: 'computes', p: 'its push arrives', u: 'parameters are sent to it', w: 'waits for the step',
  l: 'its connection is lost', s: 'no gradient for far longer than usual',
};
const HEIGHTS = { c: 1, p: 0.7, u: 0.5, w: 0.3, l: 0.15, s: 0.4 };
const COLORS = { c: 'c0', p: 'c2', u: 'c1', w: 'c5', l: 'bad', s: 'warn' };
const FROM_ABOVE = 'u'; // it hangs, because its bytes come from the server
const at = (id) => document.getElementById(id);

// A lane for each worker: the higher the block, the more it does.
export function showLanes(series, begin, color) {
  const lanes = series.lanes.filter((lane) => lane.name !== '');
  at('lane-key').hidden = lanes.length === 0;
  if (at('lane-key').children.length === 0) at('lane-key').append('A second of a worker:', ...Object.keys(KEY).map(keyOf));
  const place = at('lanes');
  const rows = lanes.length === 0 ? 0 : lanes.length + 1;
  while (place.children.length > rows) place.lastChild.remove();
  if (rows === 0) return;
  const spans = spansOf(series, begin);
  const marks = marksOf(series, begin);
  drawMarks(place.children[0] ?? addLane(place), marks, color);
  lanes.forEach((lane, i) => drawLane(place.children[i + 1] ?? addLane(place), lane, spans, marks, color));
}

// What a second of this kind looks like, and what it means.
function keyOf(activity) {
  const entry = document.createElement('span');
  const look = document.createElement('i');
  const paint = `var(--${COLORS[activity]})`;
  look.style.background = `linear-gradient(${paint}, ${paint}) no-repeat 0 ${activity === FROM_ABOVE ? 0 : 100}% / 100% ${100 * HEIGHTS[activity]}%`;
  entry.append(look, KEY[activity]);
  return entry;
}

// Of each event since `begin`: its letter, its place as a share of the time shown.
function marksOf(series, begin) {
  const { times } = series;
  const first = times[begin] - 1;
  const length = times.at(-1) - first;
  return marked(series.events).filter((event) => event.time >= first && event.time <= times.at(-1))
    .map((event) => ({ letter: MARKS[event.kind] ?? '·', from: (event.time - first) / length }));
}

// Of each row from `begin` on: its index, and where it begins and ends as shares of the time shown.
function spansOf(series, begin) {
  const { times } = series;
  const gaps = series.gaps(begin);
  const first = times[begin] - 1;
  const length = times.at(-1) - first;
  return gaps.map((gap, i) => {
    const index = begin + i;
    const from = gap || i === 0 ? times[index] - 1 : times[index - 1];
    return { index, from: (from - first) / length, to: (times[index] - first) / length };
  });
}

function addLane(place) {
  const row = document.createElement('div');
  row.className = 'lane';
  row.append(document.createElement('span'), document.createElement('canvas'));
  place.append(row);
  return row;
}

// An empty picture of this name, and its size.
function begun(row, name, says) {
  const [title, canvas] = row.children;
  title.textContent = name;
  title.title = name;
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', says);
  canvas.width = Math.max(1, Math.round(canvas.clientWidth * devicePixelRatio));
  canvas.height = Math.round(16 * devicePixelRatio);
  return { paint: canvas.getContext('2d'), width: canvas.width, height: canvas.height };
}

// The letters of the events, as above the charts.
function drawMarks(row, marks, color) {
  const { paint, width, height } = begun(row, 'events', `${marks.length} events, which the list tells`);
  paint.fillStyle = color('dim');
  paint.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  paint.textAlign = 'center';
  const taken = []; // where letters stand
  for (const { letter, from } of marks) {
    const x = Math.min(Math.max(from * width, 5 * devicePixelRatio), width - 5 * devicePixelRatio);
    if (taken.some((other) => Math.abs(x - other) < 10 * devicePixelRatio)) continue;
    paint.fillText(letter, x, height - 3 * devicePixelRatio);
    taken.push(x);
  }
}

function drawLane(row, lane, spans, marks, color) {
  const { paint, width, height } = begun(row, lane.name, `${lane.name}: now ${STATES[lane.activities.at(-1)] || 'gone'}`);
  for (const { index, from, to } of spans) {
    const activity = lane.activities[index];
    if (!(activity in HEIGHTS)) continue;
    const left = Math.floor(from * width);
    const tall = Math.max(1, Math.round(height * HEIGHTS[activity]));
    paint.fillStyle = color(COLORS[activity]);
    paint.fillRect(left, activity === FROM_ABOVE ? 0 : height - tall, Math.ceil(to * width) - left, tall);
  }
  paint.fillStyle = color('text');
  for (const { from } of marks) {
    for (let y = 0; y < height; y += 4 * devicePixelRatio) paint.fillRect(from * width, y, devicePixelRatio, 2 * devicePixelRatio);
  }
}
