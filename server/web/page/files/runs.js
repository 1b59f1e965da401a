// The runs of a directory, whose losses are laid over those of the job, and the table in which each is switched on or off.

import { line } from '/chart_kinds.js';
import { duration, moment, number } from '/panels.js';

const PERIOD_MS = 30000; // between two questions for them
const SHOWN_AT_FIRST = 3;
const at = (id) => document.getElementById(id);

export class Runs {
  // `ask` asks the server; `changed` is called when other runs are to be drawn.
  constructor(ask, changed) {
    this.ask = ask;
    this.changed = changed;
    this.runs = [];
    this.chosen = new Map(); // whether a run is shown, by its name
    this.asked = -Infinity;
    this.shown = '';
  }

  // Fetches them if that is due. They are no reason to lose the connection.
  async look() {
    if (performance.now() - this.asked < PERIOD_MS) return;
    this.asked = performance.now();
    try {
      const { directory, error, runs } = await (await this.ask('/api/runs')).json();
      Object.assign(this, { directory, error, runs });
      this.changed();
    } catch {
      this.asked = -Infinity;
    }
  }

  // Those of other jobs.
  others(state) {
    return this.runs.filter((run) => run.job !== state.job);
  }

  isShown(run, index) {
    return this.chosen.get(run.name) ?? index < SHOWN_AT_FIRST;
  }

  // The lines of those that are switched on. A run keeps its look while others are switched.
  lines(state) {
    return this.others(state).map((run, i) => ({ run, look: line(run.name, i + 1, 1.2) }))
      .filter(({ run }, i) => this.isShown(run, i));
  }

  show(state) {
    const others = this.others(state);
    at('runs').hidden = !this.directory;
    if (!this.directory) return;
    const { matches: isDark } = matchMedia('(prefers-color-scheme: dark)');
    const key = JSON.stringify([isDark, this.directory, this.error, others.map((run, i) => [run.name, run.seen, this.isShown(run, i)])]);
    if (key === this.shown) return; // else a click could miss its box
    this.shown = key;
    at('runs-note').textContent = this.error || (others.length === 0 ? `in ${this.directory}: none yet` :
      `in ${this.directory}, the latest first; those with a tick are drawn in the chart of the loss`);
    at('run-table').hidden = others.length === 0;
    at('run-rows').replaceChildren(...others.map((run, i) => this.rowOf(run, i)));
  }

  rowOf(run, index) {
    const row = document.createElement('tr');
    const label = document.createElement('label');
    const box = document.createElement('input');
    const look = document.createElement('span');
    const { label: text, stroke } = line(run.name, index + 1);
    box.type = 'checkbox';
    box.checked = this.isShown(run, index);
    box.addEventListener('change', () => {
      this.chosen.set(run.name, box.checked);
      this.changed();
    });
    look.textContent = text;
    look.style.color = stroke;
    label.append(box, ' ', look);
    const cells = [label, moment(run.begun), duration(run.seen - run.begun), run.rules, number(run.learning_rate), run.step,
      number(run.loss), run.verdict === 'ending' ? 'was ended' : run.verdict];
    row.append(...cells.map((content) => {
      const cell = document.createElement('td');
      cell.append(content);
      return cell;
    }));
    return row;
  }
}
