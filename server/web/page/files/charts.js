// Draws the charts of the history with uPlot. Events are marks.

import { CHARTS, color } from '/chart_kinds.js';
import { MARKS, marked } from '/series.js';
import { clock, number } from '/panels.js';

const HEIGHT = 190;
const DAY = 86400;
// Seconds between two places of a time axis. uPlot's own go from one minute to five, which leaves a phone without any.
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY];

// Breaks all lines where the server was not there.
function broken(columns, gaps) {
  if (!gaps.includes(true)) return columns;
  return columns.map((values, column) => values.flatMap((value, i) => {
    if (!gaps[i]) return [value];
    return [column === 0 ? (values[i - 1] + value) / 2 : null, value];
  }));
}

// A mark at each event: a dashed line, and its letter above.
function drawEvents(chart, events, axis) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = color('dim');
  ctx.fillStyle = color('dim');
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = 'center';
  ctx.setLineDash([3 * devicePixelRatio, 5 * devicePixelRatio]);
  const taken = []; // where letters stand
  for (const event of marked(events)) {
    const x = Math.round(chart.valToPos(event[axis], 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.globalAlpha = 0.5;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.globalAlpha = 1;
    if (taken.some((other) => Math.abs(x - other) < 10 * devicePixelRatio)) continue;
    ctx.fillText(MARKS[event.kind] ?? '·', x, bbox.top - 3 * devicePixelRatio);
    taken.push(x);
  }
  ctx.restore();
}

class Chart {
  constructor(parent, kind) {
    this.kind = kind;
    this.root = document.createElement('section');
    this.root.className = 'panel';
    this.root.id = `chart-${kind.id}`;
    const title = document.createElement('h2');
    title.textContent = `${kind.title} `;
    this.note = document.createElement('small');
    title.append(this.note);
    this.place = document.createElement('div');
    this.place.setAttribute('role', 'img');
    this.place.setAttribute('aria-label', kind.title);
    this.root.append(title, this.place);
    parent.append(this.root);
  }

  draw(series, begin, axis, state) {
    const kind = this.kind;
    this.root.hidden = kind.isShown !== undefined && !kind.isShown(state, series);
    if (this.root.hidden) return;
    const by = kind.byStep ? axis : 'time';
    const { lines, data, note, at } = kind.read(series, begin, state, by);
    this.note.textContent = note ?? '';
    this.place.setAttribute('aria-label', `${kind.title}. ${note ?? ''}`);
    const all = at ? [at, ...data] : broken([series.column(by, begin), ...data], series.gaps(begin));
    this.names = lines.map((one) => one.name);
    const key = `${by} ${lines.map((one) => one.label).join('|')}`;
    if (this.plot && this.key === key) {
      this.events = series.events;
      this.plot.setData(all);
      return;
    }
    this.plot?.destroy();
    this.key = key;
    this.events = series.events;
    this.plot = new uPlot(this.options(by, lines), all, this.place); // eslint-disable-line no-undef
  }

  options(by, lines) {
    const axis = { stroke: color('dim'), grid: { stroke: color('grid'), width: 1 }, ticks: { stroke: color('grid') } };
    const format = this.kind.format ?? number;
    return {
      width: this.width(), height: HEIGHT,
      padding: [14, 26, 0, 0], // on the right, half a time of day
      scales: { x: { time: by === 'time' }, y: this.kind.log ? { distr: 3, range: (_, low, high) => decadesOf(low, high) } : { range: (_, low, high) => rangeOf(low, high) } },
      series: [{ label: by }, ...lines],
      axes: [by === 'time' ? { ...axis, space: 70, incrs: TIME_STEPS, splits: placesOf, values: timesOf } : axis, { ...axis, size: 60, values: (_, values) => values.map((value) => (value === null ? null : format(value))) }],
      legend: { show: lines.length > 1, live: false },
      cursor: { drag: { x: false, y: false } },
      hooks: { draw: [(chart) => drawEvents(chart, this.events, by)] },
    };
  }

  width() {
    return Math.max(200, this.place.clientWidth);
  }

  resize() {
    if (this.plot && this.plot.width !== this.width()) this.plot.setSize({ width: this.width(), height: HEIGHT });
  }

  forget() {
    this.key = '';
  }

  // The numbers of each line by its name, and their places on the axis as "x".
  shown() {
    return Object.fromEntries(['x', ...this.names].map((name, i) => [name, [...this.plot.data[i]]]));
  }
}

// Whole multiples of the step since midnight that lie within the time shown; of days, each midnight.
export function placesOf(_, __, from, to, step) {
  const first = new Date(from * 1000);
  first.setHours(0, 0, 0, 0);
  const places = [];
  if (step >= DAY) {
    for (; first <= to * 1000; first.setDate(first.getDate() + step / DAY)) places.push(first / 1000);
    return places.filter((place) => place >= from);
  }
  const midnight = first / 1000;
  for (let i = Math.ceil((from - midnight) / step); midnight + i * step <= to; i += 1) places.push(midnight + i * step);
  return places;
}

// The time of day at each place of an axis, and below the first of each day its date. Places within one second share a
// text.
function timesOf(_, places, __, ___, step) {
  let day = '';
  let before = '';
  return places.map((time) => {
    const text = step < 60 ? clock(time) : clock(time, { hour: '2-digit', minute: '2-digit' });
    const date = new Date(time * 1000).toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
    const begins = date !== day;
    const repeats = text === before;
    day = date;
    before = text;
    if (repeats && !begins) return null;
    return begins ? `${text}\n${date}` : text;
  });
}

// From 0 where nothing is negative, and never of no height.
function rangeOf(low, high) {
  if (low === null || !Number.isFinite(low)) return [0, 1];
  const bottom = Math.min(0, low);
  const top = high > bottom ? high + (high - bottom) * 0.05 : bottom + 1;
  return [bottom, top];
}

// Whole powers of ten, on a scale of logarithms.
function decadesOf(low, high) {
  if (!(low > 0) || !Number.isFinite(high)) return [1e-3, 1];
  const bottom = 10 ** Math.floor(Math.log10(low));
  return [bottom, Math.max(10 ** Math.ceil(Math.log10(high)), 10 * bottom)];
}

export class Charts {
  constructor(parent) {
    this.charts = CHARTS.map((kind) => new Chart(parent, kind));
    // A chart also changes its width when another one comes or goes.
    const observer = new ResizeObserver(() => this.charts.forEach((chart) => chart.resize()));
    for (const chart of this.charts) observer.observe(chart.place);
  }

  draw(series, begin, axis, state) {
    for (const chart of this.charts) chart.draw(series, begin, axis, state);
  }

  // What the charts that are there show, by their ids.
  shown() {
    const there = this.charts.filter((chart) => chart.plot && !chart.root.hidden);
    return Object.fromEntries(there.map((chart) => [chart.kind.id, chart.shown()]));
  }

  // With the colours of another theme.
  repaint() {
    for (const chart of this.charts) chart.forget();
  }
}
