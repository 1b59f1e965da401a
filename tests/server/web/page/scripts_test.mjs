// What the page's scripts compute, without a browser: node scripts_test.mjs FOLDER_OF_THE_SCRIPTS

import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

// The page's modules name each other by the paths at which the server has them.
const folder = fs.mkdtempSync(path.join(process.env.TEST_TMPDIR ?? os.tmpdir(), 'scripts-'));
for (const name of fs.readdirSync(process.argv[2]).filter((one) => one.endsWith('.js'))) {
  const text = fs.readFileSync(path.join(process.argv[2], name), 'utf8');
  fs.writeFileSync(path.join(folder, name), text.replaceAll(" from '/", " from './"));
}
fs.writeFileSync(path.join(folder, 'package.json'), '{"type": "module"}');
const load = (name) => import(pathToFileURL(path.join(folder, name)));

// What they expect of a browser while they are loaded, and of colours their names.
globalThis.Dygraph = { Plugins: {} };
globalThis.document = { createElement: () => ({}) };
globalThis.getComputedStyle = () => ({ getPropertyValue: (name) => name });
const { laidOver } = await load('charts.js');
const { CHARTS, curveOf, lineOfRun } = await load('chart_kinds.js');
const { flagged } = await load('panels.js');
const { Runs, wordOf } = await load('runs.js');
const { Series, quantile } = await load('series.js');
fs.rmSync(folder, { recursive: true });

// A history of so many rows of a second each, whose losses are given; null: nobody pushed in that second.
function history(losses, first = 1000) {
  const rows = losses.map((loss, i) => ({ time: first + i, step: Math.floor(i / 3), loss }));
  const columns = Object.fromEntries(['time', 'step', 'loss'].map((name) => [name, rows.map((row) => row[name])]));
  return { columns, lanes: [], events: [] };
}

function next(series, loss) {
  const row = { time: series.times.at(-1) + 1, step: 0, loss, losses: [], activities: '' };
  series.add({ row, lanes: [], events: [] });
}

test('a step of several rows keeps its loss beside the curves of other runs', () => {
  const own = [[7, 7, 7, 8, 8], [undefined, 0.5, undefined, 0.25, undefined]];
  const drawn = laidOver(own, [{ at: [6, 8], values: [3, 2] }]);
  assert.deepEqual(drawn, [[6, 7, 8], [undefined, 0.5, 0.25], [3, undefined, 2]]);
});

test('of several losses of a step the last one is drawn beside other runs', () => {
  assert.deepEqual(laidOver([[7, 7], [0.5, 0.25]], [{ at: [7], values: [3] }]), [[7], [0.25], [3]]);
});

test('a line stays broken where the server was not there', () => {
  assert.deepEqual(laidOver([[1, 2, 3], [5, null, 6]], [{ at: [2], values: [4] }]), [[1, 2, 3], [5, null, 6], [undefined, 4, undefined]]);
});

test('runs are laid at the first loss of the job, and stay there when the page forgets it', () => {
  const series = new Series(history([null, null, 2]));
  const run = { begun: 50, curve: { time: [50, 60, 4050], step: [0, 1, 2], loss: [3, 2, 1] } };
  const places = () => curveOf(run, series, 0, 'time', false).at;
  for (let i = 0; i < 20; i += 1) next(series, 1);
  assert.deepEqual(places(), [1002, 1012]);
  for (let i = 0; i < 3985; i += 1) next(series, 1);
  assert.equal(series.times[0], 1008, 'the first loss is forgotten');
  assert.deepEqual(places(), [1012, 5002]);
});

test('before the first loss of the job no run is laid over it', () => {
  const series = new Series(history([null, null]));
  const run = { begun: 50, curve: { time: [50], step: [0], loss: [3] } };
  assert.deepEqual(curveOf(run, series, 0, 'time', false), { at: [], values: [] });
  next(series, 1);
  assert.deepEqual(curveOf(run, series, 0, 'time', false), { at: [1002], values: [3] });
});

test('a median lies between the two numbers in the middle', () => {
  assert.equal(quantile([4, null, 1], 0.5), 2.5);
  assert.equal(quantile([9, 1, 2], 0.5), 2);
  assert.equal(quantile([9], 0.01), 9);
  assert.equal(quantile([null], 0.5), null);
});

test('the slowest seconds are told when there are a hundred', () => {
  const { read } = CHARTS.find((kind) => kind.id === 'speed');
  const note = (rates) => read({ column: () => rates }, 0).note;
  assert.equal(note([]), 'no step yet');
  assert.equal(note([4, 2]), 'median 3');
  assert.equal(note([0, ...Array(100).fill(3)]), 'median 3, slowest 1 % of seconds: 3');
});

test('twenty runs have different looks, and none the colour of the job', () => {
  const looks = Array.from({ length: 20 }, (_, i) => lineOfRun('run', i));
  assert.equal(new Set(looks.map(({ stroke, dash }) => `${stroke} ${dash}`)).size, 20);
  assert.deepEqual([...new Set(looks.map(({ stroke }) => stroke))].sort(), ['--c1', '--c2', '--c3', '--c4']);
});

test('a flag is not broken at its hyphens', () => {
  const flag = (textContent) => ({ className: 'flag', textContent });
  assert.deepEqual(flagged('raise --max-step-wait. Or --lease'), ['raise ', flag('--max-step-wait'), '. Or ', flag('--lease'), '']);
  assert.deepEqual(flagged('all -- is well'), ['all -- is well']);
});

function runsOf(list) {
  const runs = new Runs(null, null);
  runs.runs = list;
  return runs;
}

const drawn = (runs) => runs.lines({ job: 'own' }).map(({ run }) => run.name);

test('three runs of other jobs are drawn at first, and none that has diverged', () => {
  const all = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, job: name, verdict: name === 'b' ? 'diverged' : 'fine' }));
  assert.deepEqual(drawn(runsOf([{ name: 'this', job: 'own' }, ...all])), ['a', 'c', 'd']);
});

test('a run keeps its look, and stays as it is drawn, when others come before it', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((name) => ({ name, job: name, verdict: 'fine' }));
  const runs = runsOf([c, b, a]);
  const looks = () => Object.fromEntries(runs.lines({ job: 'own' }).map(({ run, look }) => [run.name, look.stroke + look.dash]));
  const before = looks();
  runs.runs = [d, b, c, a];
  assert.deepEqual(looks(), before);
});

test('a run of which nothing was heard for a minute did not end in order', () => {
  assert.equal(wordOf({ verdict: 'fine', seen: 1000 }, 1059), 'fine');
  assert.equal(wordOf({ verdict: 'fine', seen: 1000 }, 1060), 'not ended in order (fine)');
  assert.equal(wordOf({ verdict: 'finished', seen: 1000 }, 9000), 'finished');
  assert.equal(wordOf({ verdict: 'diverged', seen: 1000 }, 9000), 'diverged');
  assert.equal(wordOf({ verdict: 'ending', seen: 1000 }, 9000), 'was ended');
});
