// What an operator may do. There are buttons only for those who may; each opens a dialog that says what will happen.

import { clock, number } from '/panels.js';

const SAVE_POLL_MS = 300;
const RECORD_POLL_MS = 2000;
const at = (id) => document.getElementById(id);

// `effect` says what will happen; empty: the field is not filled in yet. `body` is what the server gets.
const ACTIONS = {
  checkpoint: {
    title: 'Save a checkpoint', path: '/api/checkpoint', confirm: 'Save it',
    effect: () => 'The server saves a checkpoint of its current step. Training goes on.',
    body: () => ({}),
  },
  rate: {
    title: 'Change the learning rate', path: '/api/learning-rate', confirm: 'Change it', label: 'New learning rate', type: 'number',
    effect: (value, state) => effectOfRate(Number(value), state),
    body: (value) => ({ learning_rate: Number(value) }),
  },
  evict: {
    title: 'Evict a worker', path: '/api/evict', confirm: 'Evict it', label: 'Name of the worker', list: 'names', grave: true,
    effect: (value) => `Worker ${value} leaves the job, and its process may not join again. The others go on without it.`,
    body: (value) => ({ worker: value }),
  },
  drain: {
    title: 'Drain the job', path: '/api/drain', confirm: 'End the job', grave: true,
    effect: (value, state) => 'The job ends now' +
      `${state.workers > 0 ? `, and its workers (${state.workers}) stop` : ''}. The server saves a last checkpoint if it ` +
      'keeps any, and exits.',
    body: () => ({}),
  },
};

// The schedule multiplies what an operator gives.
function effectOfRate(rate, { base_learning_rate: base, learning_rate: now, scheduled }) {
  const next = `From the next step on, the learning rate is ${rate}`;
  if (!(base > 0)) return `${next}. Now the server has none.`;
  if (!scheduled) return `${next}. Now it is ${base}.`;
  return `${next} times the factor of the schedule. Now it is ${base} times ${number(now / base)}.`;
}

export class Operator {
  // `ask(path, options)` sends a request with the credentials of the page; `state()` is the newest state.
  constructor(ask, state) {
    this.ask = ask;
    this.state = state;
    this.key = '';
    this.action = null;
    this.follows = false; // the log
    this.away = ''; // why nothing can be done; empty: the server is there
    for (const [name, action] of Object.entries(ACTIONS)) this.addButton(name, action);
    at('value').addEventListener('input', () => this.showEffect());
    at('action').addEventListener('submit', (event) => { event.preventDefault(); this.send(); });
    at('cancel').addEventListener('click', () => at('dialog').close());
    at('menu').addEventListener('keydown', (event) => {
      if (event.key !== 'Escape' || at('dialog').open) return;
      at('menu').open = false;
      at('menu').firstElementChild.focus();
    });
    at('record').addEventListener('toggle', () => this.followRecord());
  }

  addButton(name, action) {
    const button = document.createElement('button');
    button.type = 'button';
    button.id = `do-${name}`;
    button.textContent = `${action.title}…`;
    button.className = action.grave ? 'grave' : '';
    button.addEventListener('click', () => this.open(action));
    at('actions').append(button);
  }

  // Asks again what the caller may do: the credentials, or the server's key, may be others.
  async look() {
    const { key, needs_token: needsToken } = await (await this.ask('/api/operator')).json();
    this.key = key;
    at('menu').hidden = key === '';
    at('record').hidden = key === '';
    at('unlock').hidden = !needsToken;
  }

  // Nobody can change a job whose server is away. `why` tells it; empty: the server is there.
  setAway(why) {
    if (this.away === why) return;
    this.away = why;
    for (const button of at('actions').children) button.disabled = why !== '';
    at('impossible').hidden = why === '' || this.key === '';
    at('impossible').textContent = why;
    if (at('dialog').open) this.showEffect();
  }

  open(action) {
    this.action = action;
    at('title').textContent = action.title;
    at('field').hidden = action.label === undefined;
    at('label').textContent = action.label ?? '';
    const value = at('value');
    value.value = '';
    value.type = action.type ?? 'text';
    value.step = 'any';
    value.required = action.label !== undefined;
    if (action.list) value.setAttribute('list', action.list);
    else value.removeAttribute('list');
    at('names').replaceChildren(...(this.state()?.table ?? []).map((worker) => new Option(worker.name, worker.name)));
    at('confirm').textContent = action.confirm;
    at('confirm').className = action.grave ? 'grave' : '';
    at('cancel').textContent = 'Cancel';
    this.tell('', false);
    this.setBusy(false);
    this.showEffect();
    at('dialog').showModal(); // when it closes, the browser gives the focus back to the button
    (action.label === undefined ? at('cancel') : value).focus();
  }

  // As long as that part of the page is open.
  async followRecord() {
    if (this.follows) return;
    this.follows = true;
    while (at('record').open) {
      await this.showRecord().catch(() => {}); // the page says that the server is away
      await new Promise((resolve) => { setTimeout(resolve, RECORD_POLL_MS); });
    }
    this.follows = false;
  }

  async showRecord() {
    if (this.key === '') return;
    const answer = await this.post('/api/record', '{}');
    if (!answer.ok) return;
    const { configuration, log } = await answer.json();
    at('configuration').textContent = configuration;
    const list = at('log-lines');
    const below = list.scrollTop + list.clientHeight > list.scrollHeight - 20;
    list.replaceChildren(...log.map(({ time, severity, text }) => {
      const item = document.createElement('li');
      const when = document.createElement('time');
      when.textContent = clock(time);
      item.className = severity.toLowerCase();
      item.append(when, text);
      return item;
    }));
    if (below) list.scrollTop = list.scrollHeight; // and stays where the reader is
  }

  showEffect() {
    const value = at('value').value.trim();
    const missing = this.action.label !== undefined && value === '';
    at('effect').textContent = this.away || (missing ? '' : this.action.effect(value, this.state()));
    at('confirm').disabled = missing || this.away !== '';
  }

  setBusy(busy) {
    at('confirm').hidden = busy;
    at('value').disabled = busy;
  }

  tell(text, isError) {
    at('outcome').textContent = text;
    at('outcome').className = isError ? 'error' : '';
  }

  async send() {
    if (at('confirm').disabled || at('confirm').hidden) return;
    const { path, body } = this.action;
    const content = JSON.stringify(body(at('value').value.trim()));
    this.setBusy(true);
    at('cancel').textContent = 'Close';
    at('cancel').focus();
    try {
      const answer = await this.outcome(await this.post(path, content));
      this.tell(await textOf(answer), !answer.ok);
    } catch (error) {
      this.tell(`The server does not answer: ${error.message}`, true);
    }
  }

  post(path, content) {
    return this.ask(path, { method: 'POST', body: content, headers: { 'X-Sluice-Change': this.key } });
  }

  // A checkpoint takes time; until it is saved, the server answers 202.
  async outcome(first) {
    if (first.status !== 202) return first;
    const { save, text } = await first.json();
    this.tell(text, false);
    for (;;) {
      const answer = await this.ask(`/api/checkpoint?save=${save}`);
      if (answer.status !== 202) return answer;
      await new Promise((resolve) => { setTimeout(resolve, SAVE_POLL_MS); });
    }
  }
}

async function textOf(answer) {
  const text = await answer.text();
  const isJson = answer.headers.get('Content-Type') === 'application/json';
  return isJson ? JSON.parse(text).text : text;
}
