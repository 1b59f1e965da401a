// Opens the page in Chromium, waits until it shows a state, does what a person would do, and prints as JSON what it holds.
//
//   node browse.js '{"url": …, "until": JavaScript of `state`, "acts": […], "read": JavaScript, "shots": prefix of PNGs}'

const fs = require('fs');
const { chromium } = require('playwright-core');

const PATIENCE_MS = 40000;
const VIEWS = [['light', 1280], ['light', 390], ['dark', 1280], ['dark', 390], ['light', 1700]];
// How many pixels the rows of tiles leave empty at the right.
const EMPTY = `Math.max(...[...document.querySelectorAll('.tiles')].flatMap((place) => {
  const ends = {};
  const tiles = [...place.children].map((tile) => tile.getBoundingClientRect()).filter(({ width }) => width > 0);
  for (const { top, right } of tiles) ends[top] = Math.max(right, ends[top] ?? 0);
  return Object.values(ends).map((end) => Math.round(place.getBoundingClientRect().right - end));
}))`;

// The page's rules forbid Playwright's own waiting, which evaluates text in the page.
async function reach(page, expression) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!await page.evaluate(expression)) {
    if (Date.now() > deadline) throw new Error(`never came: ${expression}`);
    await page.waitForTimeout(100);
  }
}

// An act is {"press": key}, {"type": text}, {"await": JavaScript}, {"touch": a file that is made
// then} or {"shots": prefix of PNGs}.
async function act(page, step) {
  if (step.press) await page.keyboard.press(step.press);
  if (step.type) await page.keyboard.type(step.type);
  if (step.touch) fs.writeFileSync(step.touch, '');
  if (step.await) await reach(page, step.await);
  if (step.shots) await shoot(page, step.shots);
}

// The page draws what has come in the next frame.
const DRAWN = 'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))';

// How far something sticks out of the page at each view, and how much of it is empty; takes a screenshot of each if there
// is a prefix.
async function shoot(page, shots) {
  const seen = { wide: [], empty: [] };
  for (const [colorScheme, width] of VIEWS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    await page.evaluate(DRAWN);
    seen.wide.push(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
    seen.empty.push(await page.evaluate(EMPTY));
    if (shots) await page.screenshot({ path: `${shots}-${colorScheme}-${width}.png`, fullPage: true });
  }
  return seen;
}

async function main() {
  const task = JSON.parse(process.argv[2]);
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const said = [];
  const hosts = new Set();
  page.on('console', (message) => { if (message.type() === 'error') said.push(message.text()); });
  page.on('pageerror', (error) => said.push(String(error)));
  page.on('dialog', (dialog) => { said.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', (request) => hosts.add(new URL(request.url()).host));
  await page.goto(task.url);
  await reach(page, `(() => { const state = globalThis.sluicePage?.state ?? null; return state !== null && (${task.until}); })()`);
  for (const step of task.acts ?? []) await act(page, step);
  await page.evaluate(DRAWN);
  const read = await page.evaluate(task.read ?? '({})');
  const seen = task.shots || task.narrow ? await shoot(page, task.shots) : {};
  await browser.close();
  console.log(JSON.stringify({ read, said, hosts: [...hosts], ...seen }));
}

main().catch((error) => {
  console.error(`browse.js: ${error.stack}`);
  process.exit(1);
});
