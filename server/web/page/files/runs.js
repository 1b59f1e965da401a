// The runs of a directory, whose losses are laid over those of the job, and the table in which each is switched on or off.

import { lineOfRun } from '/chart_kinds.js';
import { duration, moment, number } from '/panels.js';

const PERIOD_MS = 30000; // between two questions for them
const DRAWN_AT_FIRST = 3;
const SILENCE = 60; // seconds; a server that is there writes every 10 s
const ENDED = ['finished', 'ending', 'diverged'];
const at = (id) => document.getElementById(id);

// How it was, or is. `read`: when its file was read.
export function wordOf({ verdict, seen }, read) {
  if (verdict === 'ending') return 'was ended';
  return ENDED.includes(verdict) || read - seen < SILENCE ? verdict : `not ended in order (${verdict})`;
}

export class Runs {
  // `ask` asks the server; `changed` is called when other runs are to be drawn.
  constructor(ask, changed) {
    this.ask = ask;
    this.changed = changed;
    this.runs = [];
    this.known = new Map(); // of each name that was seen: the number of its look, and whether it is drawn
    this.rows = new Map(); // of the table, by name
    this.asked = -Infinity;
  }

  // Fetches them if that is due. They are no reason to lose the connection.
  async look() {
    if (performance.now() - this.asked < PERIOD_MS) return;
    this.asked = performance.now();
    try {
      const { directory, error, runs, read } = await (await this.ask('/api/runs')).json();
      Object.assign(this, { directory, error, runs, read });
      this.changed();
    } catch {
      this.asked = -Infinity;
    }
  }

  // Those of other jobs. A run keeps its look, whatever comes and goes. One that has diverged is not drawn unless somebody
  // asks for it: beside its loss that of the job would be a flat line.
  others(state) {
    const others = this.runs.filter((run) => run.job !== state.job);
    for (const run of others.filter(({ name }) => !this.known.has(name))) {
      const drawn = [...this.known.values()].filter((one) => one.isDrawn).length;
      this.known.set(run.name, { look: this.known.size, isDrawn: drawn < DRAWN_AT_FIRST && run.verdict !== 'diverged' });
    }
    return others;
  }

  lookOf({ name }) {
    return lineOfRun(name, this.known.get(name).look);
  }

  // The lines of those that are switched on.
  lines(state) {
    return this.others(state).filter(({ name }) => this.known.get(name).isDrawn).map((run) => ({ run, look: this.lookOf(run) }));
  }

  show(state) {
    const others = this.others(state);
    at('runs').hidden = !this.directory;
    if (!this.directory) return;
    at('runs-note').textContent = this.error || (others.length === 0 ? `in ${this.directory}: none yet` :
      `in ${this.directory}, the latest first; those with a tick are drawn in the chart of the loss`);
    at('run-table').hidden = others.length === 0;
    const place = at('run-rows');
    for (const [name, row] of this.rows) {
      if (others.some((run) => run.name === name)) continue;
      row.remove();
      this.rows.delete(name);
    }
    // A row stays where it is: else a click could miss its box, and the keyboard would lose it.
    others.forEach((run, i) => {
      const row = this.rows.get(run.name) ?? this.addRow(run);
      this.fill(row, run);
      if (place.children[i] !== row) place.insertBefore(row, place.children[i] ?? null);
    });
  }

  addRow({ name }) {
    const row = document.createElement('tr');
    const cells = Array.from({ length: 8 }, () => document.createElement('td'));
    const label = document.createElement('label');
    const box = document.createElement('input');
    box.type = 'checkbox';
    box.checked = this.known.get(name).isDrawn;
    box.addEventListener('change', () => {
      this.known.get(name).isDrawn = box.checked;
      this.changed();
    });
    label.append(box, ' ', document.createElement('span'));
    cells[0].append(label);
    row.append(...cells);
    this.rows.set(name, row);
    return row;
  }

  fill(row, run) {
    const look = row.querySelector('span');
    const { label, stroke } = this.lookOf(run);
    look.textContent = label;
    look.style.color = stroke;
    const texts = [moment(run.begun), duration(run.seen - run.begun), run.rules, number(run.learning_rate), run.step, number(run.loss),
      wordOf(run, this.read)];
    texts.forEach((text, i) => { row.children[i + 1].textContent = text; });
  }
}
