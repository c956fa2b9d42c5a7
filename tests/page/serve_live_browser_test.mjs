// The page of a `clrsampler serve` that has recorded real .NET programs, in a browser. Run by serve_page_live_test, which says in the environment
//   PLAYWRIGHT  folder of playwright-core      CHROMIUM  the browser
//   PAGE_URL    the server's link, which has a token
//   PAGE_FACTS  JSON: busy {pid, label}, a program that does nothing but Workload.SplitMode.Burn*; pausing {pid, label, pauses}, one that collects
//               garbage; before and after {from, to} in ms: times without and with the busy one
import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Opened} from './serve_opened.mjs';

const url = process.env.PAGE_URL;
const {busy, pausing, before, after} = JSON.parse(process.env.PAGE_FACTS);
const BURN = 'Workload.SplitMode.Burn';

/** Opens the page, acts, and finds no error in it. */
async function withPage(act, hash = '') {
  const opened = await Opened.at(url, {hash, patience: 60_000});  // the server shares the machine with its programs
  await opened.settled();
  await act(opened);
  assert.deepEqual(await opened.page.getByRole('alert').allTextContents(), []);
  opened.forget();  // that nothing was found in a range is no error
  await opened.close();
}

/** How much of the picture is in these methods, in percent. */
async function shareOf(opened, text) {
  await opened.page.locator('.search input').fill(text);
  const words = opened.page.getByText('% of all matched');
  await words.waitFor();
  await opened.page.waitForTimeout(300);
  return Number(/([\d.]+) % of all matched/.exec(await words.first().textContent())[1]);
}

async function choose(opened, {from, to}) {
  await opened.page.getByLabel('From', {exact: true}).fill(new Date(from).toISOString());
  await opened.page.getByLabel('To', {exact: true}).fill(new Date(to).toISOString());
  await opened.page.getByLabel('To', {exact: true}).press('Enter');
  await opened.settled();
  assert.ok(await opened.range(), 'a range is chosen');
}

test('the page comes with its policy', async () => {
  const link = new URL(url);
  const answer = await fetch(new URL('/', link), {headers: {Authorization: `Bearer ${link.searchParams.get('token')}`}});
  assert.equal(answer.status, 200);
  assert.match(answer.headers.get('content-security-policy') ?? '', /default-src 'none'/);
  assert.match(answer.headers.get('content-type'), /text\/html/);
});

test('the last minutes show the methods of the programs that ran', () => withPage(async (opened) => {
  const {page} = opened;
  assert.match(await page.locator('.head .facts').textContent(), /\d CPUs?.*\d Hz a CPU.*of history/);
  const legend = (await opened.legend()).map(([name]) => name);
  assert.ok(legend.includes(busy.label), `${busy.label} in ${legend}`);
  await page.getByRole('button', {name: `Menu for ${BURN}A`}).waitFor();
  assert.ok(await shareOf(opened, BURN) > 1);
}));

test('one process, chosen from the legend, has its own methods and no others', () => withPage(async (opened) => {
  await opened.page.getByRole('button', {name: `Narrow to ${busy.label}`}).click();
  await opened.settled();
  assert.deepEqual(await opened.chips(), [`process ${busy.label}×`]);
  assert.deepEqual((await opened.legend()).map(([name]) => name), [busy.label]);
  assert.ok(await shareOf(opened, BURN) > 80);
  await opened.page.getByRole('button', {name: 'Take back: process'}).click();
  await opened.settled();
  assert.deepEqual(await opened.chips(), []);
}));

test('another one, chosen by the address, has none of these', () => withPage(async (opened) => {
  assert.deepEqual(await opened.chips(), [`process ${pausing.label}×`]);
  assert.ok(await shareOf(opened, 'Workload.PauseMode') > 0);
  assert.equal(await shareOf(opened, BURN), 0);
}, `#pid=${pausing.pid}`));

test('the lanes of one process are those of its threads, and choose the range of the page', () => withPage(async (opened) => {
  const {page} = opened;
  await page.locator('.timeline-map').waitFor();
  const names = await page.getByRole('list', {name: 'Threads over time'}).getByRole('button').evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')));
  assert.ok(names.length > 0 && names.some((name) => / \.NET \d/.test(name)), names.join());
  const box = await page.locator('.timeline-map').boundingBox();
  await page.mouse.click(box.x + 0.99 * box.width, box.y + 5);
  await opened.settled();
  const [from, to] = await opened.range();
  assert.ok(to - from > 0 && from % 10_000 === 0, `${from} ${to}`);
}, `#pid=${busy.pid}&lanes=open`));

test('two times are compared: what has begun to run since is there', () => withPage(async (opened) => {
  const {page} = opened;
  await choose(opened, before);
  assert.ok(!((await page.locator('.methods').textContent()).includes(BURN)), 'it did not run yet');
  await page.getByRole('button', {name: 'Set as base'}).click();
  await opened.settled();
  await choose(opened, after);
  assert.match((await opened.chips())[0], /^compared with/);
  assert.match(await opened.details(), /before[\d.]+ m?s, 100\.0 %/);
  await page.getByRole('button', {name: `Menu for ${BURN}A`}).waitFor();
  const change = await page.getByRole('button', {name: `Menu for ${BURN}A`}).locator('xpath=ancestor::tr').textContent();
  assert.match(change, /\+/, 'more than before');
}));

test('a dragged range, the keyboard, and each view', () => withPage(async (opened) => {
  const {page} = opened;
  await opened.drag(0.5, 0.9);
  assert.ok(await opened.range());
  await opened.key('t', 'ArrowLeft', 'ArrowLeft', 'Shift+ArrowRight', 'b', 'ArrowLeft');
  assert.match((await opened.chips())[0], /^compared with/);
  await opened.key('Escape', 'Escape');
  for (const by of ['Container', 'Process']) {
    await page.getByRole('radio', {name: by}).click();
    await opened.settled();
  }
  for (const view of ['JIT', 'Pauses', 'Suspend delay', 'CPU']) {
    await page.getByRole('radio', {name: view, exact: true}).click();
    await opened.settled();
    assert.equal(await page.locator('.flame-graph, .empty-range').count(), 1, view);
    assert.deepEqual(await page.getByRole('alert').allTextContents(), [], view);
  }
}));

test('pauses are those of the program that paused, and one chooses its time', () => withPage(async (opened) => {
  const {page} = opened;
  await opened.tab('Pauses');
  const shown = Number(/^([\d,]+) pauses?,/.exec(await page.locator('.answer .note').first().textContent())[1].replaceAll(',', ''));
  assert.ok(shown >= pausing.pauses, `${shown} of ${pausing.pauses}`);
  assert.ok((await page.getByRole('table', {name: 'Pauses'}).textContent()).includes('generation') || (await opened.column('Pauses', 3)).length > 0);
  await page.getByRole('button', {name: /^Choose the time/}).first().click();
  await opened.settled();
  const [from, to] = await opened.range();
  assert.ok(from >= before.from - 10_000 && to <= after.to + 10_000, `${from} - ${to}`);
}, `#pid=${pausing.pid}`));

test('compilations, health and a flight recording', () => withPage(async (opened) => {
  const {page} = opened;
  await opened.tab('JIT');
  assert.ok((await opened.column('JIT cost by method', 0)).some((name) => name.startsWith('Workload.')));
  await opened.tab('Health');
  assert.match(await page.locator('.account').textContent(), /of one CPU; [\d.]+ MiB of memory/);
  await opened.tab('Flight recordings');
  assert.deepEqual([...new Set(await opened.column('Flight recordings', 1))], ['pause>1us']);
  await page.getByRole('button', {name: /^Open the recording/}).first().click();
  await opened.settled();
  await page.locator('.flame-graph').waitFor();
  assert.match(await page.locator('.recording-head').textContent(), /a pause of/);
}));
