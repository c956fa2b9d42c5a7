// The timeline in a browser. Run by html_page_test, which says in the environment
//   PLAYWRIGHT  folder of playwright-core      CHROMIUM  the browser
//   TIMED_PAGE  a page that the program wrote of a .json file, and TIMED_JSON that file
//   DAY_PAGE    a page of a day, to be measured (tests/bench/day_page.cc); may be missing
//   PICTURES    folder that receives the pictures of docs/flame-graph.md, of PICTURE_PAGE; both may be missing
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {describe, test} from 'node:test';
import {drag} from './mouse.mjs';
import {DataBuilder, pageOf, recorded} from './page_data.mjs';
import * as files from './page_files.mjs';
import {slowness} from './slowness.mjs';

const OPENINGS = 5;
const {TIMED_PAGE, TIMED_JSON, DAY_PAGE, PICTURES, PICTURE_PAGE} = process.env;

const own = files.browserOfTests();
const withFile = (path, act, options) => files.withFile(own, path, act, options);
const withPage = (html, act, options) => files.withPage(own, html, act, options);

const chosen = (page) => page.locator('.timeline-chosen output').textContent();
const map = (page) => page.locator('.timeline-map');

/** Ten seconds: Load in the first half, Save in the other, one second of Burst on a thread of its own; a pause. */
function program({stepMs = 20} = {}) {
  const builder = new DataBuilder({title: 'shop (4711)', duration_ns: 10e9, period_ns: 10e6});
  const main = builder.thread({pid: 4711, tid: 1, comm: 'shop', name: 'main'}), worker = builder.thread({pid: 4711, tid: 2, comm: 'shop', name: 'worker'});
  for (let ms = 0; ms < 10_000; ms += 10) builder.at(ms, ['Shop.Main', ms < 5000 ? 'Shop.Load' : 'Shop.Save'], 1, main);
  for (let ms = 7000; ms < 8000; ms += 10) builder.at(ms, ['Shop.Worker', {name: 'burst', kind: 'kernel'}], 1, worker);
  builder.event({timeMs: 2000, durationMs: 500, thread: main, detail: 'why'});
  return builder.data({stepMs});
}
const withProgram = (act, options) => withPage(pageOf(program()), act, options);

describe('a range', () => {
  test('by the pointer drives picture, tables and account', () => withProgram(async (page) => {
    assert.match(await chosen(page), /All of the time/);
    await drag(page, map(page), [0.71, 0.01], [0.79, 0.99]);
    assert.match(await chosen(page), /^7\.00 s – 8\.00 s: 200 samples, 18\.2 %/);
    assert.match(await page.locator('.details').textContent(), /total200 samples/);
    await files.isSettled(page);
    const names = await page.locator('.methods tbody td.name').allTextContents();
    assert.deepEqual(names.map((name) => name.trim()).sort(), ['Shop.Main', 'Shop.Save', 'Shop.Worker', 'burst']);
    await page.getByRole('tab', {name: 'How good is this?'}).click();
    assert.match(await page.locator('.account').textContent(), /Chosen range7\.00 s to 8\.00 s: 200 samples, 18\.2 % of the recording/);
    assert.match(await page.locator('.facts').textContent(), /1,100 samples/);
    await page.getByRole('button', {name: 'Clear'}).click();
    assert.match(await page.locator('.details').textContent(), /total1,100 samples/);
  }));

  test('a click chooses a column', () => withProgram(async (page) => {
    const box = await map(page).boundingBox();
    await page.mouse.click(box.x + 0.25 * box.width, box.y + 20);
    assert.match(await chosen(page), /^2\.00 s – 3\.00 s: 100 samples/);
  }));

  test('by the lanes, whose names choose threads', () => withProgram(async (page) => {
    await drag(page, page.locator('.lane-host canvas'), [0, 0.2], [0.5, 0.2]);
    assert.match(await chosen(page), /^0\.00 s – 5\.0\d s: 50\d samples/);
    await page.getByRole('button', {name: /^worker \(2\): kernel 100\.0 %/}).click();
    assert.match(await page.locator('.details').textContent(), /total0 samples/);
    assert.match(await page.getByText('No samples are left').textContent(), /Take back a filter/);
    await page.getByRole('button', {name: /^worker \(2\)/}).click();
    assert.match(await page.locator('.details').textContent(), /total50\d samples/);
  }));

  test('stands in the address and comes from there', () => withProgram(async (page) => {
    assert.match(await chosen(page), /^4\.00 s – 6\.00 s: 200 samples.*compared with 0\.00 s – 2\.00 s/);
    assert.equal(await page.getByRole('radio', {name: 'Pauses'}).getAttribute('aria-checked'), 'true');
    await page.locator('.graph-host').click({position: {x: 5, y: 5}});
    await page.keyboard.press('Escape');
    assert.equal(await page.evaluate(() => location.hash), '#range=4-6&colour=pauses');
    await page.keyboard.press('Escape');
    assert.equal(await page.evaluate(() => location.hash), '#colour=pauses');
    await page.evaluate(() => { location.hash = '#range=1-2'; });
    await page.getByText('1.00 s – 2.00 s').waitFor();
  }, {hash: '#range=4-6&base=0-2&colour=pauses'}));

  test('keeps what was done to the picture', () => withProgram(async (page) => {
    await page.getByRole('button', {name: 'Menu for Shop.Save', exact: true}).click();
    await page.getByRole('menuitem', {name: 'Who calls this?'}).click();
    await drag(page, map(page), [0.61, 0.01], [0.69, 0.99]);
    assert.match(await page.locator('.chip').textContent(), /callers of: Shop\.Save/);
    assert.match(await page.locator('.details').textContent(), /total100 samples/);
  }));

  test('counts what the .json file has in it', {skip: TIMED_PAGE ? false : 'TIMED_PAGE is not set'}, () => withFile(TIMED_PAGE, async (page) => {
    const {samples, strings, nodes, frames} = JSON.parse(readFileSync(TIMED_JSON, 'utf8'));
    for (const [from, to] of [[0, 0.02], [0.5, 1.5], [3.14, 3.16], [2, 9.98]]) {
      await page.evaluate((hash) => { location.hash = hash; }, `#range=${from}-${to}`);
      await page.getByText(`${from.toFixed(2)} s – ${to.toFixed(2)} s`).waitFor();
      const self = new Map();
      let total = 0;
      samples.time_ns.forEach((ns, i) => {
        if (ns === null || ns < Math.round(from * 1e9) || ns >= Math.round(to * 1e9)) return;
        const name = strings[frames.name[nodes.frame[samples.stack[i]]]];
        self.set(name, (self.get(name) ?? 0) + samples.weight[i]);
        total += samples.weight[i];
      });
      assert.match(await page.locator('.details').textContent(), new RegExp(`total${total.toLocaleString('en')} samples?,`), `${from}-${to}`);
      await files.isSettled(page);
      const rows = await page.locator('.methods tbody tr').evaluateAll((all) => all.map((row) => [row.querySelector('td.name').textContent.trim(), row.querySelector('td.number').title]));
      assert.deepEqual(new Map(rows.filter(([, text]) => text !== '0').map(([name, text]) => [name, Number(text.replaceAll(',', ''))])), self);
    }
    assert.match(await page.locator('.timeline-note').textContent(), /7 samples have no time/);
  }));
});

describe('two ranges', () => {
  const compares = async (page) => {
    assert.match(await chosen(page), /^5\.00 s – 10\.00 s: 600 samples.*compared with 0\.00 s – 5\.00 s/);
    await files.isSettled(page);
    const rows = await page.locator('.methods tbody tr').evaluateAll((all) => all.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent.trim())));
    const row = (name) => rows.find(([text]) => text === name);
    assert.deepEqual(row('Shop.Load').slice(1, 4), ['100.0 %', '0 %', '\u2212100.00']);
    assert.deepEqual(row('Shop.Save').slice(1, 4), ['0 %', '83.3 %', '+83.33']);
    // burst is in one second of five: it scatters too much to be told from chance.
    assert.deepEqual(await page.locator('.methods td.up').allTextContents(), ['+83.33']);
    assert.match(await page.locator('.legend').textContent(), /no change beyond the noise/);
  };

  test('with the button', () => withProgram(async (page) => {
    await drag(page, map(page), [0.01, 0.01], [0.49, 0.99]);
    await page.getByRole('button', {name: 'Compare'}).click();
    assert.match(await chosen(page), /choose the range to compare it with/);
    await drag(page, map(page), [0.51, 0.01], [0.99, 0.99]);
    await compares(page);
  }));

  test('with Shift', () => withProgram(async (page) => {
    await drag(page, map(page), [0.01, 0.01], [0.49, 0.99]);
    await drag(page, map(page), [0.51, 0.01], [0.99, 0.99], {shift: true});
    await compares(page);
  }));

  test('with the keyboard alone', () => withProgram(async (page) => {
    await map(page).focus();
    const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
    await press('Home', ...Array(4).fill('Shift+ArrowRight'), ...Array(49).fill('Shift+ArrowDown'));
    await press('Enter', 'c');
    await press('ArrowDown', ...Array(4).fill('Shift+ArrowRight'), ...Array(49).fill('Shift+ArrowDown'), 'Enter');
    await compares(page);
  }));
});

describe('the map', () => {
  /** Colour in the middle of a cell. */
  const pixel = (page, column, row, columns, rows) => page.evaluate(([x, y]) => {
    const canvas = document.querySelector('.timeline-map canvas');
    const one = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d', {willReadFrequently: true});
    one.drawImage(canvas, -Math.floor(x * canvas.width), -Math.floor(y * canvas.height));
    return [...one.getImageData(0, 0, 1, 1).data].slice(0, 3);
  }, [(column + 0.5) / columns, (row + 0.5) / rows]);

  test('is coloured by samples, CPU, pauses and a search', () => withProgram(async (page) => {
    const at = (column) => pixel(page, column, 10, 10, 50);
    assert.notDeepEqual(await at(7), await at(6), 'twice as many samples');
    await page.getByRole('radio', {name: 'Pauses'}).click();
    assert.notDeepEqual(await at(2), [255, 255, 255]);
    assert.deepEqual(await at(3), [255, 255, 255]);
    await page.getByRole('radio', {name: 'Search'}).click();
    await page.locator('.search input').fill('Shop.Load');
    await page.getByText(/% of all matched/).waitFor();
    assert.notDeepEqual(await at(1), [255, 255, 255]);
    assert.deepEqual(await at(8), [255, 255, 255]);
    await page.getByRole('radio', {name: 'CPU'}).click();
    await page.mouse.move(...(await map(page).boundingBox().then(({x, y, width}) => [x + 0.75 * width, y + 20])));
    assert.match(await page.locator('.tooltip').textContent(), /7\.\d+ s: 2\.00 CPUs/);
  }));

  test('zooms into a range and out again', () => withProgram(async (page) => {
    await drag(page, map(page), [0.71, 0.01], [0.79, 0.99]);
    await map(page).focus();
    await page.keyboard.press('+');
    assert.deepEqual(await page.locator('.timeline-axis span').allTextContents().then((all) => [all[0], all.at(-1)]), ['7.00 s', '8.00 s']);
    await page.keyboard.press('-');
    assert.equal(await page.locator('.timeline-axis span').last().textContent(), '10.00 s');
  }));

  test('says what it knows of times', () => withPage(pageOf(program({stepMs: 1000})), async (page) => {
    assert.match(await page.locator('.timeline-note').textContent(), /in steps of 1 s: finer ones would make it too large/);
    const box = await map(page).boundingBox();
    await page.mouse.click(box.x + 5, box.y + 0.02 * box.height);
    assert.match(await chosen(page), /samples/);
  }));

  test('is described to screen readers, and helped by a list of keys', () => withProgram(async (page) => {
    const slider = page.getByRole('slider', {name: 'Map of the time'});
    await slider.focus();
    await page.keyboard.press('Home');
    assert.equal(await slider.getAttribute('aria-valuetext'), '0.00 s: 2 samples');
    await page.keyboard.press('ArrowRight');
    assert.equal(await slider.getAttribute('aria-valuetext'), '1.00 s: 2 samples');
    await page.keyboard.press('?');
    assert.match(await page.getByRole('dialog').textContent(), /The timeline.*choose a range: every view shows it/s);
  }));

  test('a profile without times looks as ever', () => withPage(pageOf(recorded('web')), async (page) => {
    assert.equal(await page.locator('.timeline').count(), 0);
  }));

  test('stacks that come later answer when they are there', () => {
    const data = (() => {
      const builder = new DataBuilder({duration_ns: 3600e9, period_ns: 1e9});
      for (let s = 0; s < 3600; ++s) builder.at(s * 1000, ['Main', s < 1800 ? 'Early' : 'Late']);
      return builder.data({stepMs: 10_000, lanesMs: 1000});
    })();
    return withPage(pageOf(data), async (page) => {
      // The map knows how many samples a range has before the stacks do: the table is what says that they answer.
      await page.waitForFunction(() => document.querySelectorAll('.methods tbody td.name').length === 2);
      assert.match(await chosen(page), /600 samples/);
      assert.match(await chosen(page), /^0:30:00 – 0:40:00|^0?:?30:00/);
      assert.deepEqual((await page.locator('.methods tbody td.name').allTextContents()).map((name) => name.trim()).sort(), ['Late', 'Main']);
    }, {hash: '#range=1800-2400'});
  });
});

describe('any screen', () => {
  for (const [width, height] of [[360, 740], [3840, 2000]]) {
    for (const dark of [false, true]) {
      test(`${width} pixels, ${dark ? 'dark' : 'light'}`, () => withProgram(async (page) => {
        const {scroll, inner} = await page.evaluate(() => ({scroll: document.documentElement.scrollWidth, inner: innerWidth}));
        assert.ok(scroll <= inner, `${scroll} > ${inner}`);
        const box = await map(page).boundingBox();
        assert.ok(box.width >= 0.6 * width && box.height >= 70, JSON.stringify(box));
        const canvas = await page.locator('.timeline-map canvas').boundingBox();
        assert.ok(Math.abs(canvas.width - box.width) <= 2 && Math.abs(canvas.height - box.height) <= 2);
        const paper = await page.evaluate(() => {
          const of = document.querySelector('.lane-host canvas');
          return of.getContext('2d').getImageData(Math.floor(0.99 * of.width), of.height - 5, 1, 1).data[0];
        });
        assert.ok(dark ? paper < 80 : paper > 200, `${paper}`);
        await drag(page, map(page), [0.71, 0.01], [0.79, 0.99]);
        assert.match(await chosen(page), /200 samples/);
      }, {width, height, dark}));
    }
  }
});

test('a day: how fast', {skip: DAY_PAGE ? false : 'DAY_PAGE is not set'}, async () => {
  const ready = [], ranges = [], later = [];
  let slow = 1;
  for (let run = 0; run < OPENINGS; ++run) {
    await withFile(DAY_PAGE, async (page) => {
      ready.push(await page.evaluate(() => performance.getEntriesByName('page-ready')[0].startTime));
      await page.waitForFunction(() => performance.getEntriesByName('times-ready').length > 0);
      later.push(await page.evaluate(() => performance.getEntriesByName('times-ready')[0].startTime));
      slow = await slowness(page);
      for (const [from, to] of [[3600, 3660], [7200, 10_800], [0, 43_200], [40_000, 40_600], [20_000, 80_000]]) {
        ranges.push(await page.evaluate(async (hash) => {
          const begin = performance.now(), drawing = () => performance.getEntriesByName('flame-graph-draw').at(-1);
          location.hash = hash;
          while (!(drawing()?.startTime > begin)) await new Promise((next) => requestAnimationFrame(next));
          return drawing().startTime + drawing().duration - begin;
        }, `#range=${from}-${to}`));
      }
    });
  }
  const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1].toFixed(0);
  console.log(`day: map after ${median(ready)} ms, stacks after ${median(later)} ms, a range after ${median(ranges)} ms (at most ${Math.max(...ranges).toFixed(0)}); this browser is ${slow.toFixed(1)} times slower than a quiet one`);
});

test('pictures for the docs', {skip: PICTURE_PAGE ? false : 'PICTURE_PAGE is not set'}, async () => {
  const shoot = (name, hash, options = {}) => withFile(PICTURE_PAGE, async (page) => {
    await page.locator('h1').evaluate((title) => { title.textContent = 'workload'; });
    await page.screenshot({path: join(PICTURES, `${name}.png`)});
  }, {width: 1200, height: 740, hash, ...options});
  await shoot('flame-graph-time', '#range=20-31');
  await shoot('flame-graph-time-compare', '#range=30-40&base=1-5', {dark: true});
});
