// Draws the charts of the history with dygraphs. Events are marks.

import { CHARTS, color } from '/chart_kinds.js';
import { MARKS, marked } from '/series.js';
import { clock, number } from '/panels.js';

const { Dygraph } = globalThis;
const HEIGHT = 190;
const TALL = 300;
const MARK_WIDTH = 10; // room of a letter
const TIME_WIDTH = 70; // room of a time of day
const ZERO_WIDTH = 28; // of the left end of a time axis: a time there would run into the lowest number of the other axis
const DAY = 86400;
// Seconds between two places of a time axis.
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY];

// The page has its own legend. That of dygraphs writes styles into its HTML, which the page's rules forbid.
Dygraph.PLUGINS = [Dygraph.Plugins.Axes, Dygraph.Plugins.Grid];

// Breaks all lines where the server was not there.
function broken(columns, gaps) {
  if (!gaps.includes(true)) return columns;
  return columns.map((values, column) => values.flatMap((value, i) => {
    if (!gaps[i]) return [value];
    return [column === 0 ? (values[i - 1] + value) / 2 : null, value];
  }));
}

// Adds lines that have places of their own: each line then has all places, and is drawn across those of the others. Of
// several numbers at one place the last one stays: a step has many rows, and few of them a loss.
export function laidOver([places, ...lines], over) {
  const all = [...new Set([...places, ...over.flatMap((one) => one.at)])].sort((a, b) => a - b);
  const spread = (at, values) => {
    const known = new Map();
    at.forEach((place, i) => {
      if ((values[i] ?? null) !== null || !known.has(place)) known.set(place, values[i]);
    });
    return all.map((place) => known.get(place));
  };
  return [all, ...lines.map((values) => spread(places, values)), ...over.map((one) => spread(one.at, one.values))];
}

class Chart {
  constructor(kind) {
    const parent = document.getElementById(`charts-${kind.group ?? 'first'}`);
    this.kind = kind;
    this.root = document.createElement('section');
    this.root.className = kind.tall ? 'panel chart tall' : 'panel chart';
    this.root.id = `chart-${kind.id}`;
    const title = document.createElement('h2');
    title.textContent = `${kind.title} `;
    this.note = document.createElement('small');
    title.append(this.note);
    const drawing = document.createElement('div');
    drawing.setAttribute('role', 'img');
    drawing.setAttribute('aria-label', kind.title);
    this.drawing = drawing;
    [this.marks, this.place, this.legend] = ['marks', 'plot', 'key'].map((name) => {
      const part = document.createElement('div');
      part.className = name;
      drawing.append(part);
      return part;
    });
    this.root.append(title, drawing);
    parent.append(this.root);
  }

  // Not while its group is closed, where it has no room.
  draw(series, begin, axis, log, state, runs) {
    const kind = this.kind;
    this.root.hidden = kind.isShown !== undefined && !kind.isShown(state, series);
    if (this.root.hidden || this.root.closest('details:not([open])')) return;
    const by = kind.byStep ? axis : 'time';
    this.log = kind.log || (kind.mayLog && log);
    const { lines, data, note, at, over = [] } = kind.read(series, begin, state, by, this.log, runs);
    this.note.textContent = note ?? '';
    this.drawing.setAttribute('aria-label', `${kind.title}. ${note ?? ''}`);
    this.data = at ? [at, ...data] : broken([series.column(by, begin), ...data], series.gaps(begin));
    if (over.length > 0) this.data = laidOver(this.data, over);
    this.names = lines.map((one) => one.name);
    this.events = series.events;
    this.by = by;
    const key = `${by} ${this.log} ${lines.map((one) => one.label).join('|')}`;
    if (this.plot && this.key === key) {
      this.plot.updateOptions(this.shape());
    } else {
      this.plot?.destroy();
      this.key = key;
      this.legend.replaceChildren(...(lines.length > 1 ? lines.map(keyOf) : []));
      this.plot = new Dygraph(this.place, rowsOf(this.data), this.options(lines));
    }
    this.showMarks();
  }

  // What changes with the numbers.
  shape() {
    const [places, ...values] = this.data;
    return {
      file: rowsOf(this.data),
      dateWindow: windowOf(places),
      drawPoints: 8 * places.length < this.place.clientWidth,
      axes: { y: { valueRange: (this.log ? decadesOf : rangeOf)(values) } },
    };
  }

  // Lines have numbers for names, since a worker may have any name.
  options(lines) {
    const format = this.kind.format ?? number;
    const axis = { axisLineColor: color('grid'), gridLineColor: color('grid'), axisLabelFontSize: 12, drawGrid: true };
    const y = { ...axis, axisLabelWidth: 58, pixelsPerLabel: 30, axisLabelFormatter: (value) => format(value) };
    const x = { ...axis, axisLabelWidth: TIME_WIDTH, axisLabelFormatter: (value) => number(value) };
    if (this.log) Object.assign(y, { ticker: decadeTicks, logscale: true });
    if (this.by === 'time') x.ticker = timeTicks;
    const { axes, ...shape } = this.shape();
    return {
      ...shape,
      labels: [this.by, ...lines.map((_, i) => `${i}`)],
      series: Object.fromEntries(lines.map((one, i) => [`${i}`, { color: one.stroke, strokePattern: one.dash.length > 0 ? one.dash : null, strokeWidth: one.width, ...one.points }])),
      axes: { x, y: { ...y, ...axes.y } },
      width: this.width(), height: this.height(),
      rightGap: 26, // half a time of day
      xAxisHeight: 34,
      connectSeparatedPoints: true,
      highlightCircleSize: 3,
      interactionModel: {},
      underlayCallback: (context, area, plot) => this.drawEvents(context, area, plot),
    };
  }

  // A dashed line at each event.
  drawEvents(context, { x, y, w, h }, plot) {
    context.strokeStyle = color('dim');
    context.globalAlpha = 0.5;
    context.setLineDash([3, 5]);
    for (const event of marked(this.events)) {
      const at = Math.round(plot.toDomXCoord(event[this.by]));
      if (at < x || at > x + w) continue;
      context.beginPath();
      context.moveTo(at, y);
      context.lineTo(at, y + h);
      context.stroke();
    }
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  // The letters of the events above their lines, as far as there is room.
  showMarks() {
    const { x, w } = this.plot.getArea();
    const taken = [];
    for (const event of marked(this.events)) {
      const at = Math.round(this.plot.toDomXCoord(event[this.by]));
      if (at < x || at > x + w || taken.some((other) => Math.abs(at - other.at) < MARK_WIDTH)) continue;
      taken.push({ at, text: MARKS[event.kind] ?? '·' });
    }
    this.marks.replaceChildren(...taken.map(({ at, text }) => {
      const mark = document.createElement('span');
      mark.textContent = text;
      mark.style.left = `${at}px`;
      return mark;
    }));
  }

  height() {
    return this.kind.tall ? TALL : HEIGHT;
  }

  width() {
    return Math.max(200, this.drawing.clientWidth);
  }

  resize() {
    if (!this.plot || this.drawing.clientWidth === 0 || this.plot.size().width === this.width()) return;
    this.plot.resize(this.width(), this.height());
    this.showMarks();
  }

  forget() {
    this.key = '';
  }

  // The numbers of each line by its name, and their places on the axis as "x".
  shown() {
    return Object.fromEntries(['x', ...this.names].map((name, i) => [name, [...this.data[i]]]));
  }
}

// Rows for dygraphs. It draws a line across null, and none across NaN.
function rowsOf([places, ...lines]) {
  return places.map((place, i) => [place, ...lines.map((values) => (values[i] === null ? NaN : values[i] ?? null))]);
}

// From the first place to the last, and never of no width.
function windowOf(places) {
  const [first, last] = [places[0] ?? 0, places.at(-1) ?? 1];
  return first < last ? [first, last] : [first - 1, first + 1];
}

// One line of the legend.
function keyOf(line) {
  const key = document.createElement('span');
  key.textContent = line.label;
  key.style.color = line.stroke;
  return key;
}

function timeTicks(from, to, pixels) {
  const room = (step) => (step * pixels) / (to - from) >= TIME_WIDTH;
  const step = TIME_STEPS.find(room) ?? TIME_STEPS.at(-1);
  const places = placesOf(from, to, step).filter((place) => ((place - from) * pixels) / (to - from) >= ZERO_WIDTH);
  const texts = timesOf(places, step);
  return places.map((place, i) => ({ v: place, label: texts[i] }));
}

function decadeTicks(low, high, _, options) {
  const first = Math.round(Math.log10(low));
  const powers = Array.from({ length: Math.round(Math.log10(high)) - first + 1 }, (__, i) => 10 ** (first + i));
  return powers.map((power) => ({ v: power, label: options('axisLabelFormatter')(power) }));
}

// Whole multiples of the step since midnight that lie within the time shown; of days, each midnight.
export function placesOf(from, to, step) {
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

function dayOf(time) {
  return new Date(time * 1000).toLocaleDateString(undefined, { day: 'numeric', month: 'short' });
}

// The time of day at each place of an axis, and below the first of each other day its date. Places within one second share
// a text.
function timesOf(places, step) {
  let day = dayOf(Date.now() / 1000); // needs no date
  let before = '';
  return places.map((time) => {
    const text = step < 60 ? clock(time) : clock(time, { hour: '2-digit', minute: '2-digit' });
    const date = dayOf(time);
    const begins = date !== day;
    const repeats = text === before;
    day = date;
    before = text;
    if (repeats && !begins) return '';
    return begins ? `${text}<br>${date}` : text;
  });
}

// The least and the largest number of all lines; without any, [Infinity, -Infinity].
function extremesOf(lines) {
  let [low, high] = [Infinity, -Infinity];
  for (const values of lines) {
    for (const value of values) {
      if (!Number.isFinite(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return [low, high];
}

// From 0 where nothing is negative, and never of no height.
function rangeOf(lines) {
  const [low, high] = extremesOf(lines);
  if (low > high) return [0, 1];
  const bottom = Math.min(0, low);
  const top = high > bottom ? high + (high - bottom) * 0.05 : bottom + 1;
  return [bottom, top];
}

// Whole powers of ten, on a scale of logarithms.
function decadesOf(lines) {
  const [low, high] = extremesOf(lines);
  if (!(low > 0) || low > high) return [1e-3, 1];
  const bottom = 10 ** Math.floor(Math.log10(low));
  return [bottom, Math.max(10 ** Math.ceil(Math.log10(high)), 10 * bottom)];
}

export class Charts {
  constructor() {
    this.charts = CHARTS.map((kind) => new Chart(kind));
    // A chart also changes its width when another one comes or goes.
    const observer = new ResizeObserver(() => this.charts.forEach((chart) => chart.resize()));
    for (const chart of this.charts) observer.observe(chart.drawing);
  }

  draw(series, begin, axis, log, state, runs) {
    for (const chart of this.charts) chart.draw(series, begin, axis, log, state, runs);
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
