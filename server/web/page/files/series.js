// The rows of the job's history, as columns, and what can be computed from them.

const KEPT = 4000; // rows in this page

// The letters of events on time axes, by the events' kinds.
export const MARKS = { joined: '+', left: '−', lost: '?', evicted: '×', policy: 'P', rate: 'R', checkpoint: 'C', warning: '!', server: 'S' };

// In the order in which they get room: checkpoints, which are many, come last.
export function marked(events) {
  const isRare = (event) => event.kind !== 'checkpoint';
  return [...events.filter(isRare), ...events.filter((one) => !isRare(one))];
}

export class Series {
  constructor(history) {
    this.columns = history.columns ?? {};
    this.columns.time ??= [];
    // The time of the first row with a loss, which stays when that row is dropped; undefined: there is none yet.
    this.trained = this.columns.time[(this.columns.loss ?? []).findIndex((loss) => loss !== null)];
    this.lanes = history.lanes;
    this.events = history.events;
  }

  get times() {
    return this.columns.time;
  }

  // Adds the newest row of a state. Returns false if it was there already.
  add(state) {
    const row = state.row;
    const last = this.times.at(-1);
    if (last !== undefined && row.time <= last) return false;
    for (const name of Object.keys(row)) {
      if (name !== 'losses' && name !== 'activities') (this.columns[name] ??= []).push(row[name]);
    }
    this.lanes.forEach((lane, i) => {
      if (lane.name !== state.lanes[i]) {
        lane.name = state.lanes[i];
        lane.losses = lane.losses.map(() => null);
        lane.activities = ' '.repeat(lane.activities.length);
      }
      lane.losses.push(row.losses[i]);
      lane.activities += row.activities[i];
    });
    if (row.loss !== null) this.trained ??= row.time;
    if (this.times.length > KEPT) this.dropOldest();
    this.addEvents(state.events);
    return true;
  }

  dropOldest() {
    for (const values of Object.values(this.columns)) values.shift();
    for (const lane of this.lanes) {
      lane.losses.shift();
      lane.activities = lane.activities.slice(1);
    }
  }

  addEvents(newest) {
    const seen = new Set(this.events.map(keyOf));
    for (const event of newest.filter((one) => !seen.has(keyOf(one)))) {
      // As in the server's history: of checkpoints that follow each other only the last one stays.
      if (event.kind === 'checkpoint' && this.events.at(-1)?.kind === 'checkpoint') this.events.pop();
      this.events.push(event);
    }
    this.events = this.events.slice(-200);
  }

  // The index of the first row that is not older than so many seconds before the newest.
  begin(span) {
    const from = (this.times.at(-1) ?? 0) - span;
    let low = 0;
    let high = this.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < from) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // For each row from `begin` on, whether nothing was seen before it for far longer than between the rows before:
  // the server was not there.
  gaps(begin) {
    const { times } = this;
    return times.slice(begin).map((time, i) => {
      const at = begin + i;
      return i > 0 && time - times[at - 1] > 5 && time - times[at - 1] > 3 * (times[at - 1] - (times[at - 2] ?? -Infinity));
    });
  }

  column(name, begin) {
    return (this.columns[name] ?? []).slice(begin);
  }

  // Whether the column has a number.
  has(name) {
    return (this.columns[name] ?? []).some((value) => value !== null);
  }

  // How fast a counter has grown in the latest seconds, per second. Unknown if it has begun anew, and of less than two rows.
  speed(name, span) {
    const values = this.columns[name] ?? [];
    const first = this.begin(span);
    const grown = values.at(-1) - values[first];
    return first < this.times.length - 1 && grown >= 0 ? grown / (this.times.at(-1) - this.times[first]) : null;
  }

  // How fast a counter grows, per second. Unknown where it has begun anew.
  rate(name, begin) {
    const values = this.columns[name] ?? [];
    return this.times.slice(begin).map((time, i) => {
      const at = begin + i;
      if (at === 0) return null;
      const grown = values[at] - values[at - 1];
      return grown < 0 ? null : grown / (time - this.times[at - 1]);
    });
  }
}

function keyOf(event) {
  return `${event.time} ${event.kind} ${event.text}`;
}

// At each number the mean of up to nine, as many after it as before: so it is not late. The first and the last number have
// no neighbours on one side, and stay.
export function smoothed(values) {
  const reach = 4;
  const places = values.flatMap((value, i) => (value === null ? [] : [i]));
  const means = values.map(() => null);
  places.forEach((place, i) => {
    const side = Math.min(reach, i, places.length - 1 - i);
    const near = places.slice(i - side, i + side + 1);
    means[place] = near.reduce((sum, other) => sum + values[other], 0) / near.length;
  });
  return means;
}

// Between two numbers, the mean of both by their distances; null of no number.
export function quantile(values, share) {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const place = share * (sorted.length - 1);
  const before = sorted[Math.floor(place)];
  return before + (place % 1) * (sorted[Math.ceil(place)] - before);
}
