// The parts of the page that are no charts. What comes from the server is text, never markup.

import { COUNTED, STATES } from '/lanes.js';
import { MARKS } from '/series.js';

const PUSHES = ['received', 'accepted', 'stale', 'skipped', 'duplicate', 'rejected', 'aborted', 'in_progress'];
const at = (id) => document.getElementById(id);

export function number(value) {
  if (value === null || value === undefined) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(2);
  if (Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(4)));
}

export function bytes(value) {
  if (value === null || value === undefined) return '–';
  return scaled(value, ['B', 'kB', 'MB', 'GB', 'TB']);
}

// Rows, or reads of rows, of which there may be millions.
export function many(value) {
  return value < 1e5 ? String(value) : scaled(value, ['', 'thousand', 'million', 'billion', 'trillion']);
}

function scaled(value, units) {
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${Number(value.toPrecision(3))} ${units[unit]}`;
}

export function duration(seconds) {
  if (seconds < 90) return `${number(Math.round(seconds * 10) / 10)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${number(Math.round(seconds / 360) / 10)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

// The time of day, of seconds since 1970.
export function clock(time, parts = { hour: '2-digit', minute: '2-digit', second: '2-digit' }) {
  return new Date(time * 1000).toLocaleTimeString(undefined, { ...parts, hourCycle: 'h23' });
}

// The day and the time of day.
export function moment(time) {
  return `${new Date(time * 1000).toLocaleDateString(undefined, { day: 'numeric', month: 'short' })} ${clock(time, { hour: '2-digit', minute: '2-digit' })}`;
}

// Puts rows of [name, value] into a list of definitions.
function fill(list, rows) {
  list.replaceChildren(...rows.map(([name, value]) => {
    const row = document.createElement('div');
    const term = document.createElement('dt');
    const data = document.createElement('dd');
    term.textContent = name;
    data.textContent = value;
    row.append(term, data);
    return row;
  }));
}

// A text in which the flags of programs are not broken at their hyphens.
export function flagged(text) {
  return text.split(/(--[a-z][a-z-]*[a-z])/).map((part, i) => {
    if (i % 2 === 0) return part;
    const flag = document.createElement('span');
    flag.className = 'flag';
    flag.textContent = part;
    return flag;
  });
}

function rateOf(state) {
  if (state.learning_rate > 0) return number(state.learning_rate);
  return state.tensors > 0 ? 'of the workers' : '–';
}

const LATEST = 10; // seconds, or as many steps if they take longer: one more or less shall not change a number much

// Samples per second; null is unknown.
function samplesOf(state, series) {
  const steps = state.steps_per_second;
  return series.speed('samples', steps > 0 ? Math.max(LATEST, LATEST / steps) : LATEST);
}

// The verdicts with which nothing is wrong.
const CALM = ['fine', 'finished', 'waiting', 'ending'];

function showHead(state, series) {
  at('job').textContent = state.job;
  const [word, sentence] = at('verdict').children;
  if (word.textContent !== state.verdict.kind) word.textContent = state.verdict.kind; // is read aloud
  if (sentence.textContent !== state.verdict.text) sentence.replaceChildren(...flagged(state.verdict.text));
  at('verdict').className = CALM.includes(state.verdict.kind) ? state.verdict.kind : state.verdict.grave ? 'bad' : 'warn';
  document.title = `${state.verdict.kind} · step ${state.step} · Sluice`;
  const isOver = state.verdict.kind === 'finished';
  const [steps, samples] = [state.steps_per_second, samplesOf(state, series)];
  fill(at('facts'), [
    ['loss', number(state.loss)],
    ['step', state.total_steps > 0 ? `${state.step} of ${state.total_steps}` : state.step],
    ...(state.total_steps > state.step && steps > 0 ? [['time left', duration((state.total_steps - state.step) / steps)]] : []),
    ...(isOver ? [] : [['steps/s', number(steps)]]),
    ...(state.samples > 0 && !isOver ? [['samples/s', samples === null ? '–' : many(Math.round(samples))]] : []),
    ['workers', isOver ? 'have left' : state.workers < state.expected_workers ? `${state.workers} of ${state.expected_workers}` : state.workers],
    ['learning rate', rateOf(state)],
    ['mode', state.mode],
    ['running for', duration(state.uptime)],
    ...Object.entries(state.results).map(([name, value]) => [name, number(value)]),
    ...measured(state),
  ]);
}

// What was reported during training, and not again at the end.
function measured(state) {
  if (state.measured === null) return [];
  return Object.entries(state.measured.results).filter(([name]) => !(name in state.results))
    .map(([name, value]) => [`${name}, step ${state.measured.step}`, number(value)]);
}

// Unless the verdict says it.
function showAwaited(state) {
  const { waiting, awaited } = state.current;
  const isTold = state.verdict.kind === 'waiting' || state.verdict.text.includes(awaited);
  const waits = waiting !== null && waiting >= 1 && !isTold;
  at('awaited').hidden = !waits;
  if (waits) at('awaited').textContent = `Step ${state.step} has waited ${duration(waiting)} for ${awaited}.`;
}

// But for the one that the verdict tells.
function showWarnings(state) {
  const warnings = state.warnings.filter((warning) => warning.text !== state.verdict.text);
  at('warnings').hidden = warnings.length === 0;
  at('warnings').replaceChildren(...warnings.map((warning) => {
    const item = document.createElement('li');
    item.append(...flagged(`Warning since step ${warning.since}` +
      `${warning.over === null ? '' : `, over at step ${warning.over}`}: ${warning.text}`));
    return item;
  }));
}

function cell(text) {
  const made = document.createElement('td');
  made.textContent = text;
  return made;
}

function showWorkers(state) {
  const waits = state.current.waiting !== null && state.current.waiting >= 1;
  const { activities, losses, workers } = state.summary;
  const parts = Object.entries(activities).map(([key, count]) => `${count} ${COUNTED[key]}`);
  if (losses) parts.push(`loss ${number(losses[0])} to ${number(losses[2])}, median ${number(losses[1])}`);
  at('summary').textContent = parts.join(' · ');
  at('workers').closest('.scroll').hidden = state.table.length === 0;
  at('workers').replaceChildren(...state.table.map((worker) => {
    const row = document.createElement('tr');
    const awaited = worker.awaited && waits;
    row.className = awaited || worker.activity === 's' ? 'awaited' : '';
    row.append(...[worker.name, (awaited ? 'awaited, ' : '') + STATES[worker.activity], worker.host, worker.lag, worker.accepted,
      worker.stale, worker.loss === 0 ? '–' : number(worker.loss), worker.since_push < 0 ? '–' : `${duration(worker.since_push)} ago`].map(cell));
    return row;
  }));
  at('unlisted').hidden = workers <= state.table.length;
  at('unlisted').textContent = `${workers - state.table.length} more workers are not listed. First come those that are ` +
    'awaited, then those that are furthest behind, then the newest.';
}

function connectionOf(server) {
  if (server.since === null && !server.connected) return 'has not come yet';
  const now = `${server.connected ? 'connected' : 'away'} for ${duration(server.since ?? 0)}`;
  return server.awaited !== null && server.awaited >= 1 ? `${now}, awaited for ${duration(server.awaited)}` : now;
}

function showServers(state) {
  at('servers').hidden = state.servers.length < 2;
  at('server-rows').replaceChildren(...state.servers.map((server, index) => {
    const row = document.createElement('tr');
    row.className = !server.connected || server.awaited >= 1 ? 'awaited' : '';
    row.append(...[`${index}${server.address === '' ? '' : ` at ${server.address}`}`, connectionOf(server), server.step ?? '–',
      bytes(4 * server.elements), bytes(server.wire_bytes_received), bytes(server.wire_bytes_sent)].map(cell));
    return row;
  }));
}

function hotRows({ hottest }) {
  if (hottest.length === 0) return 'no row is read much more often than others';
  return `hottest rows, and how often they were read: ${hottest.map(({ id, reads }) => `${id} × ${many(reads)}`).join(', ')}`;
}

// A table has two lines: its numbers, and below them the rows that are read most.
function linesOf(table) {
  const hits = table.reads === 0 ? '–' : `${number(Math.round((1000 * table.hits) / table.reads) / 10)} %`;
  const age = table.rows === 0 ? '–' : number(Math.round(table.mean_age));
  const first = document.createElement('tr');
  first.className = 'with-more';
  first.append(...[table.name, many(table.rows), bytes(table.bytes), hits, age].map(cell));
  const second = document.createElement('tr');
  const rows = cell(hotRows(table));
  rows.className = 'hottest';
  rows.colSpan = 5;
  second.append(rows);
  return [first, second];
}

function showTables({ row_tables: { count, first } }) {
  at('row-tables').hidden = count === 0;
  at('row-table-rows').replaceChildren(...first.flatMap(linesOf));
  at('unlisted-tables').hidden = count <= first.length;
  at('unlisted-tables').textContent = `${count - first.length} more tables are not listed; sluicectl tables has them.`;
}

function showStaleness(state) {
  const { counts, bound, mean, max } = state.staleness;
  at('staleness-title').textContent = `mean ${number(mean)}, largest ${max}` + (bound === null ? ', no bound' : `, bound ${bound}`);
  const last = Math.max(bound ?? 0, counts.findLastIndex((count) => count > 0), 3);
  const most = Math.max(1, ...counts);
  at('staleness').replaceChildren(...counts.slice(0, last + 1).map((count, staleness) => {
    const item = document.createElement('li');
    const bar = document.createElement('i');
    bar.style.height = `${(100 * count) / most}px`;
    item.className = bound === null ? '' : staleness === bound ? 'bound' : staleness > bound ? 'beyond' : '';
    const label = staleness === counts.length - 1 ? `${staleness}+` : staleness;
    // Many bars have no room for numbers; the title has them.
    const few = last < 12;
    item.append(few ? number(count) : '', bar, few || staleness % 8 === 0 ? String(label) : '\u00a0');
    item.title = `${count} gradients of staleness ${label}`;
    return item;
  }));
}

function showResources(state) {
  const row = state.row;
  const list = (kinds) => Object.entries(kinds).map(([name, count]) => `${name} × ${count}`).join(', ') || '–';
  const ofServer = several(state) ? ' of server 0' : '';
  const saved = state.checkpoint === null ? 'none yet' : `step ${state.checkpoint}, ${duration(row.checkpoint_age ?? 0)} ago`;
  fill(at('resources'), [
    [`memory${ofServer || ' of the server'}`, bytes(row.memory) + (state.memory_limit > 0 ? ` of ${bytes(state.memory_limit)}` : '')],
    ['gradients in flight', state.in_flight.limit > 0 ? `${bytes(state.in_flight.bytes)} of at most ${bytes(state.in_flight.limit)}` : '–'],
    ['pushes that wait for room', state.in_flight.waiting],
    ['pushes in progress', state.pushes.in_progress],
    ['pulls that wait', state.waiting_pulls],
    [`tasks of the threads${ofServer}`, tasks(row)],
    ...moved('received', state), ...moved('sent', state),
    ...encoded('received', state), ...encoded('sent', state),
    ['encoding of gradients', list(state.encodings.push)],
    ['encoding of parameters', list(state.encodings.pull)],
    ['parameters', `${bytes(4 * state.elements)} in ${state.tensors} tensor${state.tensors === 1 ? '' : 's'}`],
    ['last checkpoint', state.saves ? saved : 'this server saves none'],
    ['journal', state.journal ? `every step${synced(row)}` : 'none'],
    ['incarnation', state.incarnation + (state.lost_steps > 0 ? `, ${state.lost_steps} steps were lost` : '')],
  ]);
}

// The threads that have something to do.
function tasks(row) {
  const busy = Object.entries(row).filter(([name, count]) => name.startsWith('tasks_') && count > 0);
  return busy.map(([name, count]) => `${name.slice('tasks_'.length)} ${count}`).join(', ') || '0';
}

function synced(row) {
  return row.sync_p99 === null ? '' : `, 99 % of the syncs take at most ${number(row.sync_p99 * 1e3)} ms`;
}

function several(state) {
  return state.servers.length > 1;
}

// Of several servers, the bytes on the wire are a little older than the others: no ratio can be read from the two.
function moved(way, state) {
  const plain = bytes(state.row[`bytes_${way}`]);
  const wire = bytes(state.row[`wire_bytes_${way}`]);
  if (!several(state)) return [[way, `${wire} on the wire for ${plain}`]];
  return [[`${way}, as float32`, plain], [`${way} on the wire, by all servers`, `${wire}, up to a second ago`]];
}

// A row for each encoding that was used, unless all was plain: then the rows above say the same. Of several servers, the first one knows its own messages alone.
function encoded(way, state) {
  const by = several(state) ? `${way} by server 0` : way;
  const used = Object.entries(state.bytes_by_encoding[way]);
  const plain = used.every(([name, { tensor, wire }]) => name === 'float32' && wire >= tensor);
  return (plain ? [] : used).map(([name, { tensor, wire }]) =>
    [`${by} as ${name}`, `${bytes(wire)} for ${bytes(tensor)}` + (wire < tensor ? ` (${number(tensor / wire)} times less)` : '')]);
}

function showEvents(series) {
  at('event-key').textContent = `Letters in the charts: ${Object.entries(MARKS).map(([kind, letter]) => `${letter} ${kind}`).join(', ')}`;
  at('events').replaceChildren(...series.events.slice(-60).reverse().map((event) => {
    const item = document.createElement('li');
    const time = document.createElement('time');
    const kind = document.createElement('b');
    time.textContent = `${clock(event.time)} · step ${event.step}`;
    kind.textContent = event.kind;
    item.append(time, kind, event.text);
    return item;
  }));
}

export function showState(state, series) {
  showHead(state, series);
  showAwaited(state);
  showWarnings(state);
  showWorkers(state);
  showServers(state);
  showTables(state);
  showStaleness(state);
  fill(at('pushes'), PUSHES.map((name) => [name.replace('_', ' '), state.pushes[name]]));
  showResources(state);
  showEvents(series);
}
