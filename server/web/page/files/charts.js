// Charts of the history with uPlot. Lines differ in dashes, not in colour alone; events are marks.

import { MARKS, marked, quantile, smoothed } from '/series.js';
import { bytes, number } from '/panels.js';

const DASHES = [[], [8, 4], [2, 3], [12, 4, 2, 4], [5, 5], [1, 4]];
const GLYPHS = ['──', '╌╌', '···', '─·─', '┄┄', '· ·']; // the same in the legend
const HEIGHT = 190;

const PARTS = ['wait', 'accumulate', 'apply', 'publish', 'encode'];
const DISPOSITIONS = ['accepted', 'stale', 'skipped', 'duplicate', 'rejected', 'aborted'];

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function line(label, index, width = 1.5) {
  const kind = index % DASHES.length;
  return { label: `${GLYPHS[kind]} ${label}`, stroke: color(`c${kind}`), dash: DASHES[kind], width, points: { size: 4 } };
}

// Each has a title, its series for the shown part, and what to say beside the title.
const CHARTS = [
  { id: 'loss', title: 'Loss', byStep: true, read: readLoss },
  {
    id: 'speed', title: 'Steps per second',
    read: (series, begin) => {
      const rates = series.column('steps_per_second', begin);
      const median = quantile(rates, 0.5);
      const note = median === null ? '' : `median ${number(median)}, slowest 1 % of seconds: ${number(quantile(rates, 0.01))}`;
      return { lines: [line('steps/s', 0)], data: [rates], note };
    },
  },
  {
    id: 'step-time', title: 'Time of single steps', format: seconds, log: true, read: readStepTime,
  },
  {
    id: 'parts', title: 'Parts of a step, mean', format: seconds, log: true, read: readParts,
  },
  {
    id: 'rate', title: 'Learning rate', byStep: true,
    read: (series, begin) => ({ lines: [line('learning rate', 0)], data: [series.column('learning_rate', begin)] }),
  },
  {
    id: 'waiting', title: 'Time that the current step has waited, s',
    read: (series, begin) => ({ lines: [line('seconds', 1)], data: [series.column('waiting', begin)] }),
  },
  {
    id: 'dispositions', title: 'Pushes per second',
    read: (series, begin) => ({
      lines: DISPOSITIONS.map((name, i) => line(name, i)),
      data: DISPOSITIONS.map((name) => series.rate(name, begin)),
    }),
  },
  {
    id: 'traffic', title: 'Bytes per second on the wire', format: bytes,
    read: (series, begin) => ({
      lines: [line('received', 0), line('sent', 1)],
      data: ['wire_bytes_received', 'wire_bytes_sent'].map((name) => series.rate(name, begin)),
    }),
  },
  {
    id: 'memory', title: 'Memory of the server', format: bytes,
    read: (series, begin, state) => ofFirst(state, limited(series.column('memory', begin), 'memory', state.memory_limit)),
  },
  {
    id: 'in-flight', title: 'Gradients in flight', format: bytes,
    read: (series, begin, state) => limited(series.column('in_flight', begin), 'gradients', state.in_flight.limit),
  },
  {
    id: 'queue', title: 'Pushes that arrive or are queued',
    read: (series, begin) => ({ lines: [line('pushes', 2)], data: [series.column('in_progress', begin)] }),
  },
  {
    id: 'members', title: 'Workers that take part',
    read: (series, begin, state) => ({
      lines: [line('workers', 0)], data: [series.column('workers', begin)],
      note: `${state.workers} now, ${state.expected_workers} expected at first`,
    }),
  },
];

// Of several servers the first one, which serves the page, knows some things of itself alone.
function ofFirst(state, chart) {
  if (state.servers.length < 2) return chart;
  return { ...chart, note: `of server 0${chart.note ? `: ${chart.note}` : ''}` };
}

// Seconds of a short time, in its unit.
function seconds(value) {
  if (value === null || value === undefined) return '–';
  if (value === 0) return '0';
  if (value >= 1) return `${number(value)} s`;
  return value >= 1e-3 ? `${number(value * 1e3)} ms` : `${number(value * 1e6)} µs`;
}

function latest(values) {
  return values.findLast((value) => value !== null);
}

function readStepTime(series, begin) {
  const data = ['step_median', 'step_p99'].map((name) => positive(series.column(name, begin)));
  const [median, p99] = data.map((values) => values.findLast((value) => value !== undefined));
  const note = median === undefined ? 'no step yet' : `last: median ${seconds(median)}, p99 ${seconds(p99)}`;
  return { lines: [line('median', 0), line('p99', 1)], data, note };
}

function readParts(series, begin) {
  const data = PARTS.map((name) => series.column(`part_${name}`, begin));
  const known = PARTS.map((name, i) => [name, latest(data[i])]).filter((one) => one[1] !== undefined);
  const longest = known.sort((a, b) => b[1] - a[1])[0];
  return {
    lines: PARTS.map((name, i) => line(name, i)), data: data.map(positive),
    note: longest === undefined ? 'no step yet' : `longest now: ${longest[0]}, ${seconds(longest[1])}`,
  };
}

// A value with its limit, which is drawn once a quarter of it is reached: else the value would be a flat line.
function limited(values, name, limit) {
  const now = latest(values);
  if (!limit || now === undefined) return { lines: [line(name, 0)], data: [values] };
  const note = `${bytes(now)} of at most ${bytes(limit)} (${number(Math.round((1000 * now) / limit) / 10)} %)`;
  if (Math.max(...values) < limit / 4) return { lines: [line(name, 0)], data: [values], note };
  return { lines: [line(name, 0), line('limit', 1)], data: [values, values.map(() => limit)], note };
}

function readLoss(series, begin) {
  const mean = series.column('loss', begin);
  const lines = [line('mean', 5, 1), line('smoothed', 0, 2.5)];
  const data = [spanned(mean), smoothed(mean)];
  const named = series.lanes.filter((lane) => lane.losses.some((loss) => loss !== null));
  if (named.length > 1) {
    named.slice(0, 8).forEach((lane, i) => {
      lines.push({ ...line(lane.name, i + 1, 1), alpha: 0.8 });
      data.push(spanned(lane.losses.slice(begin)));
    });
  }
  const last = data[1].findLast((value) => value !== null);
  return { lines, data, note: last === undefined ? 'no worker has reported one' : `smoothed ${number(last)}` };
}

// uPlot draws a line across what is undefined, and none across null.
function spanned(values) {
  return values.map((value) => value ?? undefined);
}

// The same on a scale of logarithms, which has no 0.
function positive(values) {
  return values.map((value) => (value > 0 ? value : undefined));
}

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
    this.root.append(title, this.place);
    parent.append(this.root);
  }

  draw(series, begin, axis, state) {
    const kind = this.kind;
    const by = kind.byStep ? axis : 'time';
    const { lines, data, note } = kind.read(series, begin, state);
    this.note.textContent = note ?? '';
    this.place.setAttribute('aria-label', `${kind.title}. ${note ?? ''}`);
    const all = broken([series.column(by, begin), ...data], series.gaps(begin));
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
      padding: [14, 8, 0, 0],
      scales: { x: { time: by === 'time' }, y: this.kind.log ? { distr: 3, range: (_, low, high) => decadesOf(low, high) } : { range: (_, low, high) => rangeOf(low, high) } },
      series: [{ label: by }, ...lines],
      axes: [axis, { ...axis, size: 60, values: (_, values) => values.map((value) => (value === null ? null : format(value))) }],
      legend: { show: lines.length > 1, live: false },
      cursor: { drag: { x: false, y: false } },
      hooks: { draw: [(chart) => drawEvents(chart, this.events, by)] },
    };
  }

  width() {
    return Math.max(200, this.place.clientWidth);
  }

  resize() {
    this.plot?.setSize({ width: this.width(), height: HEIGHT });
  }

  forget() {
    this.key = '';
  }
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
    new ResizeObserver(() => this.charts.forEach((chart) => chart.resize())).observe(parent);
  }

  draw(series, begin, axis, state) {
    for (const chart of this.charts) chart.draw(series, begin, axis, state);
  }

  // With the colours of another theme.
  repaint() {
    for (const chart of this.charts) chart.forget();
  }
}

export { color };
