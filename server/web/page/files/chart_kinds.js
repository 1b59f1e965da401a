// What each chart shows: its lines, their numbers, and a note. Lines differ in dashes, not in colour alone.

import { quantile, smoothed } from '/series.js';
import { bytes, many, number } from '/panels.js';

const DASHES = [[], [8, 4], [2, 3], [12, 4, 2, 4], [5, 5], [1, 4]];
const GLYPHS = ['──', '╌╌', '···', '─·─', '┄┄', '· ·']; // the same in the legend
const PARTS = ['wait', 'accumulate', 'apply', 'publish', 'encode'];
const THREADS = ['arrive', 'step', 'encode', 'summary', 'hook'];
const DISPOSITIONS = ['accepted', 'stale', 'skipped', 'duplicate', 'rejected', 'aborted'];

export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function line(label, index, width = 1.5) {
  return styled(label, index % DASHES.length, index % DASHES.length, width);
}

function styled(label, hue, kind, width) {
  return { name: label, label: `${GLYPHS[kind]} ${label}`, stroke: color(`c${hue}`), dash: DASHES[kind], width, points: { pointSize: 2 } };
}

// The lines of twenty runs differ from each other in colour or dashes, and from those of the job in colour.
export function lineOfRun(label, index) {
  const [round, hue] = [Math.floor(index / 4), index % 4];
  return styled(label, 1 + hue, 1 + ((hue + round) % 5), 1.2);
}

// Each has a title, its series for the shown part, and what to say beside the title. A chart whose points have places of
// their own on the axis gives them as `at`; the last lines of a chart that have such places give them as `over`. `group` is
// the part of the page in which it is; without one it comes before the folded parts.
export const CHARTS = [
  { id: 'loss', group: 'loss', title: 'Loss', byStep: true, mayLog: true, tall: true, read: readLoss },
  {
    id: 'accuracy', title: 'Test accuracy', byStep: true, isShown: (_, series) => series.has('test_accuracy'),
    read: readAccuracy,
  },
  {
    id: 'samples', title: 'Samples per second', isShown: (state) => state.samples > 0,
    read: (series, begin) => {
      const rates = series.rate('samples', begin);
      const median = quantile(rates, 0.5);
      return { lines: [line('samples/s', 0)], data: [rates], note: median === null ? '' : `median ${number(median)}` };
    },
  },
  {
    id: 'speed', title: 'Steps per second',
    read: (series, begin) => {
      const rates = series.column('steps_per_second', begin);
      const median = quantile(rates, 0.5);
      const notes = median === null ? ['no step yet'] : [`median ${number(median)}`];
      if (median !== null && rates.length >= 100) notes.push(`slowest 1 % of seconds: ${number(quantile(rates, 0.01))}`);
      return { lines: [line('steps/s', 0)], data: [rates], note: notes.join(', ') };
    },
  },
  {
    id: 'step-time', group: 'server', title: 'Time of single steps', format: seconds, log: true,
    read: (series, begin) => readTimes(series, begin, 'step', 'no step yet'),
  },
  {
    id: 'parts', group: 'server', title: 'Parts of a step, mean', format: seconds, log: true,
    read: (series, begin, state) => ofFirst(state, readParts(series, begin)),
  },
  {
    id: 'rate', group: 'learning', title: 'Learning rate', byStep: true,
    read: (series, begin) => ({ lines: [line('learning rate', 0)], data: [series.column('learning_rate', begin)] }),
  },
  {
    id: 'waiting', group: 'learning', title: 'Time that the current step has waited, s',
    read: (series, begin) => ({ lines: [line('seconds', 1)], data: [series.column('waiting', begin)] }),
  },
  {
    id: 'dispositions', group: 'learning', title: 'Pushes per second',
    read: (series, begin) => ({
      lines: DISPOSITIONS.map((name, i) => line(name, i)),
      data: DISPOSITIONS.map((name) => series.rate(name, begin)),
    }),
  },
  {
    id: 'traffic', group: 'server', title: 'Bytes per second on the wire', format: bytes,
    read: (series, begin) => ({
      lines: [line('received', 0), line('sent', 1)],
      data: ['wire_bytes_received', 'wire_bytes_sent'].map((name) => series.rate(name, begin)),
    }),
  },
  {
    id: 'memory', group: 'server', title: 'Memory of the server', format: bytes,
    read: (series, begin, state) => ofFirst(state, limited(series.column('memory', begin), 'memory', state.memory_limit)),
  },
  {
    id: 'in-flight', group: 'server', title: 'Gradients in flight', format: bytes,
    read: (series, begin, state) => limited(series.column('in_flight', begin), 'gradients', state.in_flight.limit),
  },
  {
    id: 'queue', group: 'server', title: 'Pushes that arrive or are queued',
    read: (series, begin) => ({ lines: [line('pushes', 2)], data: [series.column('in_progress', begin)] }),
  },
  {
    id: 'rows', group: 'server', title: 'Rows of all tables', isShown: hasTables,
    read: (series, begin, { row_tables: { count } }) => {
      const rows = series.column('table_rows', begin);
      const now = latest(rows);
      return { lines: [line('rows', 0)], data: [rows], note: now === undefined ? '' : `${many(Math.round(now))} in ${count} table${count === 1 ? '' : 's'}` };
    },
  },
  {
    id: 'row-memory', group: 'server', title: 'Memory of all tables', format: bytes, isShown: hasTables,
    read: (series, begin) => ({ lines: [line('memory', 0)], data: [series.column('table_bytes', begin)] }),
  },
  { id: 'hits', group: 'server', title: 'Ids read that have a row', format: percent, isShown: hasTables, read: readHits },
  {
    id: 'tasks', group: 'server', title: 'Tasks of the server\'s threads',
    read: (series, begin, state) => ofFirst(state, readTasks(series, begin)),
  },
  {
    id: 'sync', group: 'server', title: 'Time of single syncs of the journal', format: seconds, log: true, isShown: (state) => state.journal,
    read: (series, begin, state) => ofFirst(state, readTimes(series, begin, 'sync', 'no sync yet')),
  },
  {
    id: 'members', group: 'learning', title: 'Workers that take part',
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

// An accuracy is drawn at the step that was evaluated, which the server has left behind when it is told.
function readAccuracy(series, begin, { results }, axis) {
  const lines = [{ ...line('test accuracy', 0), points: { drawPoints: true, pointSize: 3 } }]; // one alone has no line
  const values = series.column('test_accuracy', begin);
  const points = series.column('measured_step', begin).map((step, i) => [step, values[i]])
    .filter((point) => point[0] !== null).sort((a, b) => a[0] - b[0]);
  const drawn = axis === 'step' ? { lines, at: points.map((one) => one[0]), data: [points.map((one) => one[1])] } :
    { lines, data: [spanned(values)] };
  const last = points.length === 0 ? [] : [latestOf(series, begin)];
  if ('test accuracy' in results) last.push(`${number(results['test accuracy'])} at the end`);
  return { ...drawn, note: last.join(', ') };
}

// What was reported last, and of which step. Of a coarser row it is the mean.
function latestOf(series, begin) {
  const steps = series.column('measured_step', begin);
  const i = steps.findLastIndex((step) => step !== null);
  return `${number(series.column('test_accuracy', begin)[i])} at step ${Math.round(steps[i])}`;
}

function hasTables(state) {
  return state.row_tables.count > 0;
}

function percent(value) {
  return `${number(Math.round(10 * value) / 10)} %`;
}

// The share of each row's time. Where nothing was read there is none.
function readHits(series, begin) {
  const [reads, hits] = ['row_reads', 'row_hits'].map((name) => series.rate(name, begin));
  const shares = reads.map((rate, i) => (rate > 0 && hits[i] !== null ? (100 * hits[i]) / rate : null));
  const last = latest(shares);
  return { lines: [line('hits', 0)], data: [spanned(shares)], note: last === undefined ? 'no id was read' : `last ${percent(last)}` };
}

function latest(values) {
  return values.findLast((value) => value !== null);
}

function readTimes(series, begin, what, none) {
  const data = [`${what}_median`, `${what}_p99`].map((name) => positive(series.column(name, begin)));
  const [median, p99] = data.map((values) => values.findLast((value) => value !== undefined));
  const note = median === undefined ? none : `last: median ${seconds(median)}, p99 ${seconds(p99)}`;
  return { lines: [line('median', 0), line('p99', 1)], data, note };
}

function readParts(series, begin) {
  const data = PARTS.map((name) => series.column(`part_${name}`, begin));
  const known = PARTS.map((name, i) => [name, latest(data[i])]).filter((one) => one[1] !== undefined);
  const longest = known.sort((a, b) => b[1] - a[1])[0];
  return {
    lines: PARTS.map((name, i) => line(name, i)), data: data.map(positive),
    note: longest === undefined ? 'no step yet' : `last: ${longest[0]} takes longest, ${seconds(longest[1])}`,
  };
}

function readTasks(series, begin) {
  const data = THREADS.map((name) => series.column(`tasks_${name}`, begin));
  const most = Math.max(0, ...data.flat());
  return {
    lines: THREADS.map((name, i) => line(name, i)), data,
    note: `at most ${most} of a kind, waiting or running`,
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

function noteOf(state, mean) {
  if (state.loss !== null) return `${number(state.loss)}, the mean of the latest steps`;
  return mean.some((loss) => loss !== null) ? 'of workers that have pushed; there is no step yet' : 'no worker has reported one';
}

// Other runs take the place of the workers' own lines, which would look like theirs.
function readLoss(series, begin, state, axis, log, runs) {
  const shown = log ? positive : spanned;
  const mean = series.column('loss', begin);
  const lines = [line('mean', 5, 1), line('smoothed', 0, 2.5)];
  const data = [shown(mean), shown(smoothed(mean))];
  const named = series.lanes.filter((lane) => lane.losses.some((loss) => loss !== null));
  if (runs.length === 0 && named.length > 1) {
    named.slice(0, 8).forEach((lane, i) => {
      lines.push(line(lane.name, i + 1, 1));
      data.push(shown(lane.losses.slice(begin)));
    });
  }
  const over = runs.map(({ run }) => curveOf(run, series, begin, axis, log));
  lines.push(...runs.map(({ look }) => ({ ...look, points: { drawPoints: false } })));
  return { lines, data, over, note: noteOf(state, mean) };
}

// The part of another run's curve that lies in the time shown, as if both had begun to learn at the same time; by step,
// from the first step shown to the run's end.
export function curveOf({ begun, curve }, series, begin, axis, log) {
  const places = series.column(axis, begin);
  const own = axis === 'step' ? curve.step : curve.time.map((time) => series.trained + time - begun);
  const last = axis === 'step' ? Infinity : places.at(-1);
  const inside = own.map((place, i) => [place, curve.loss[i]])
    .filter(([place, loss]) => place >= places[0] && place <= last && loss !== null && !(log && loss <= 0));
  return { at: inside.map(([place]) => place), values: inside.map(([, loss]) => loss) };
}

// A chart draws a line across what is undefined, and none across null.
function spanned(values) {
  return values.map((value) => value ?? undefined);
}

// The same on a scale of logarithms, which has no 0.
function positive(values) {
  return values.map((value) => (value > 0 ? value : undefined));
}
