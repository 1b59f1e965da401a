// Loads the history, follows the server's events, and draws. Nothing is stored in the browser.

import { color } from '/chart_kinds.js';
import { Charts } from '/charts.js';
import { Operator } from '/operator.js';
import { showLanes } from '/lanes.js';
import { clock, showState } from '/panels.js';
import { Runs } from '/runs.js';
import { Series } from '/series.js';

const RETRY_MS = 1000;
const SILENCE_MS = 8000; // events come once a second
const at = (id) => document.getElementById(id);
const chosen = (name) => document.querySelector(`input[name=${name}]:checked`).value;

const charts = new Charts();
let token = '';
let series = null;
let state = null;
let asked = false; // a frame is due

// Asks with the credentials that the page has. An answer that takes too long fails.
function send(path, options = {}) {
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  return fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(SILENCE_MS), ...options, headers });
}

const operator = new Operator(send, () => state);
const runs = new Runs(ask, drawSoon);

async function ask(path, options = {}) {
  const response = await send(path, options);
  if (response.status === 401) askForToken();
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response;
}

// After a wrong token it says so.
function askForToken() {
  at('login').hidden = false;
  at('wrong').textContent = token ? 'The server has another token.' : '';
}

async function login() {
  token = at('token').value;
  at('token').value = '';
  await operator.look().catch(() => {}); // run() asks again
  if (!at('unlock').hidden) {
    askForToken();
    at('token').focus();
  } else if (!at('menu').hidden) {
    at('login').hidden = true;
    at('menu').open = true;
    at('actions').firstElementChild.focus();
  }
}

function draw() {
  asked = false;
  if (series === null || state === null) return;
  const begin = series.begin(Number(chosen('span')));
  showState(state, series);
  showLanes(series, begin, color);
  runs.show(state);
  charts.draw(series, begin, chosen('axis'), at('log').checked, state, runs.lines(state));
}

function drawSoon() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(draw);
}

function take(next) {
  state = next;
  series.add(next);
  at('link').textContent = 'live';
  document.body.classList.remove('away');
  operator.setAway('');
  drawSoon();
  runs.look();
}

// One event of the stream is "data: JSON" and an empty line. A server that is stopped, or a network that is cut, closes
// no connection: silence ends it.
async function follow() {
  const silent = new AbortController();
  let timer = 0;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silent.abort(), SILENCE_MS);
  };
  wait();
  const response = await ask('/api/events', { signal: silent.signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      wait();
      text += value;
      const events = text.split('\n\n');
      text = events.pop();
      for (const event of events) take(JSON.parse(event.slice('data: '.length)));
    }
  } finally {
    clearTimeout(timer);
    // Else each failure leaves a connection open, and a browser has six. It fails if the stream has failed.
    reader.cancel().catch(() => {});
  }
}

// What is shown is old: says so where it is seen, and since when.
function showAway() {
  const since = state === null ? '' : clock(state.row.time);
  at('link').textContent = state === null ? 'no connection yet; trying again' :
    `the server does not answer; this is its last state, of ${since}`;
  document.body.classList.add('away');
  operator.setAway('The server does not answer, so nothing can be changed now.');
}

async function run() {
  for (;;) {
    try {
      series = new Series(await (await ask('/api/history')).json());
      take(await (await ask('/api/state')).json());
      if (at('unlock').hidden) at('login').hidden = true;
      await operator.look();
      await follow();
    } catch (error) {
      at('link').title = String(error);
    }
    showAway();
    await new Promise((resolve) => { setTimeout(resolve, RETRY_MS); });
  }
}

for (const name of ['choices', 'axes']) at(name).addEventListener('change', drawSoon);
at('enter').addEventListener('click', login);
at('token').addEventListener('keydown', (event) => { if (event.key === 'Enter') login(); });
at('unlock-button').addEventListener('click', () => { askForToken(); at('token').focus(); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { charts.repaint(); drawSoon(); });
addEventListener('resize', drawSoon);
for (const group of document.querySelectorAll('.group')) {
  group.open = location.hash === '#all'; // a link to the whole page
  group.addEventListener('toggle', drawSoon);
}
// The tests read what is drawn.
globalThis.sluicePage = { get series() { return series; }, get state() { return state; }, get charts() { return charts.shown(); }, get runs() { return runs.runs; } };
run();
