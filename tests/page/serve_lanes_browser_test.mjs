// The map and the lanes of the page of `clrsampler serve` in a browser. Run by serve_page_test, which says in the environment
//   PLAYWRIGHT  folder of playwright-core      CHROMIUM  the browser
// The server is the one of fake_serve.mjs.
import assert from 'node:assert/strict';
import {describe, test} from 'node:test';
import * as fakes from './fake_pages.mjs';
import * as mouse from './mouse.mjs';

const {asked, NOW} = fakes, BEGIN = NOW - 300_000;

const withServer = (options, act, pageOptions) => fakes.withServer(options, act, {hash: '#lanes=open', ...pageOptions});
const withPage = (act, pageOptions) => withServer({}, act, pageOptions);
const map = (page) => page.locator('.timeline-map');
const slider = (page) => page.getByRole('slider', {name: 'Map of the time'});

async function drag(opened, ...where) {
  await mouse.drag(opened.page, ...where);
  await opened.settled();
}

describe('map and lanes', () => {
  test('are asked for when they are opened, and not before', () => withPage(async (opened, fake) => {
    const {page} = opened;
    assert.deepEqual(asked(fake, '/api/lanes'), []);
    await page.getByRole('button', {name: 'Map and lanes of threads'}).click();
    await map(page).waitFor();
    await opened.settled();
    assert.deepEqual(asked(fake, '/api/lanes'), [{from: '-300s', to: 'now', points: '10000', threads: '12'}]);
    assert.equal((await opened.state()).lanes, 'open');
    await page.getByRole('button', {name: 'Map and lanes of threads'}).click();
    assert.equal(await map(page).count(), 0);
  }, {hash: ''}));

  test('choose the range of the page by pointer: whole windows', () => withPage(async (opened, fake) => {
    // Five columns of a minute, with cells of a window of 10 s.
    await drag(opened, map(opened.page), [0.25, 0.01], [0.55, 0.99]);
    assert.deepEqual(await opened.range(), [BEGIN + 60_000, BEGIN + 180_000]);
    assert.deepEqual(asked(fake, '/api/profile').at(-1), {from: String(BEGIN / 1000 + 60), to: String(BEGIN / 1000 + 180), view: 'cpu', format: 'page'});
    assert.match(await opened.page.locator('.range-text').textContent(), /^14:01:00 – 14:03:00/);
    assert.ok(await opened.page.locator('.timeline-range').isVisible(), 'the timeline has the same range');
    await drag(opened, opened.page.locator('.lane-host canvas'), [0.01, 0.1], [0.19, 0.1]);
    assert.deepEqual(await opened.range(), [BEGIN, BEGIN + 60_000]);
  }));

  test('compare two ranges, with Shift and by keyboard alone', () => withPage(async (opened, fake) => {
    const {page} = opened;
    await drag(opened, map(page), [0.05, 0.01], [0.15, 0.99]);
    await drag(opened, map(page), [0.25, 0.01], [0.35, 0.99], {shift: true});
    const wanted = {base: `${BEGIN}-${BEGIN + 60_000}`, range: `${BEGIN + 60_000}-${BEGIN + 120_000}`};
    const {base, range} = await opened.state();
    assert.deepEqual({base, range}, wanted);
    assert.equal(asked(fake, '/api/diff').length, 1);
    await page.getByRole('button', {name: 'Take back: base'}).click();
    await opened.settled();
    await slider(page).focus();
    await opened.key('Home', 'Enter');
    await opened.key('c');
    await opened.key('ArrowRight', 'Enter');
    const again = await opened.state();
    assert.deepEqual({base: again.base, range: again.range}, wanted);
  }));

  test('are described to screen readers', () => withPage(async (opened) => {
    await slider(opened.page).focus();
    await opened.key('Home');
    assert.match(await slider(opened.page).getAttribute('aria-valuetext'), /^14:00:00: \d\.\d\d CPUs$/);
    await opened.key('ArrowDown');
    assert.match(await slider(opened.page).getAttribute('aria-valuetext'), /^14:00:10: /);
    const names = await opened.page.getByRole('list', {name: 'Threads over time'}).getByRole('button').evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')));
    assert.match(names[0], /^shop \(4711\): \.NET \d\d\.\d %/);
  }));

  test('a lane narrows the page to its thread', () => withPage(async (opened, fake) => {
    const {page} = opened;
    await page.getByRole('button', {name: /^shop \(4711\): \.NET/}).click();
    await opened.settled();
    assert.deepEqual([(await opened.state()).pid, (await opened.state()).thread], ['4711', '4711']);
    assert.equal(asked(fake, '/api/profile').at(-1).thread, '4711');
    assert.equal(await page.getByRole('button', {name: /^shop \(4711\): \.NET/}).getAttribute('aria-pressed'), 'true');
    await page.getByRole('button', {name: /^shop \(4711\): \.NET/}).click();
    await opened.settled();
    assert.equal((await opened.state()).thread, undefined);
  }));

  test('the map is coloured by CPU, waits, pauses and a search', () => withPage(async (opened, fake) => {
    const {page} = opened;
    const values = async () => {
      await slider(page).focus();
      await opened.key('Home');
      return slider(page).getAttribute('aria-valuetext');
    };
    const answered = async (method) => {
      while (asked(fake, '/api/lanes').at(-1).method !== method) await page.waitForTimeout(20);
      await opened.settled();
    };
    await page.getByRole('radio', {name: 'With waits'}).click();
    assert.match(await values(), /^14:00:00: [\d.]+ s$/);
    await page.locator('.live-times').getByRole('radio', {name: 'Pauses'}).click();
    assert.match(await values(), /pause/);
    await page.getByRole('radio', {name: 'Search'}).click();
    await page.getByRole('searchbox', {name: 'Methods on the map'}).fill('Burst');
    await answered('Burst');
    assert.doesNotMatch(await page.evaluate(() => location.hash), /Burst/);
    assert.match(await values(), /^14:00:00: [1-9][\d.]* m?s matched$/);
    await page.getByRole('searchbox', {name: 'Methods on the map'}).fill('nothing');
    await answered('nothing');
    assert.match(await values(), /^14:00:00: 0 \S+ matched$/);
  }));

  test('say that further threads are one lane', () => withServer({mostLanes: 3}, async ({page}) => {
    assert.match(await page.locator('.lane-names li').last().textContent(), /^11 other threads$/);
    assert.match(await page.locator('.live-times .timeline-note').textContent(), /The 3 threads with most time have lanes of their own; 11 other threads are one lane/);
  }));

  test('say what went wrong', () => withPage(async (opened, fake) => {
    fake.broken.set('/api/lanes', {status: 503, body: {error: 'The question took too long.', hint: 'Ask for a shorter time.'}});
    await opened.page.getByRole('button', {name: 'Map and lanes of threads'}).click();
    await opened.page.getByText('Hint: Ask for a shorter time.').waitFor();
    opened.forget();
  }, {hash: ''}));
});

describe('any screen', () => {
  for (const [width, height] of [[360, 740], [3840, 2000]]) {
    for (const dark of [false, true]) {
      test(`${width} pixels, ${dark ? 'dark' : 'light'}`, () => withPage(async (opened) => {
        const {page} = opened;
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
        const box = await map(page).boundingBox();
        assert.ok(box.width >= 0.6 * width && box.height >= 70, JSON.stringify(box));
        const paper = await page.evaluate(() => {
          const canvas = document.querySelector('.lane-host canvas');
          return canvas.getContext('2d').getImageData(1, 0, 1, 1).data[0];
        });
        assert.ok(dark ? paper < 80 : paper > 200, `${paper}`);
        await drag(opened, map(page), [0.05, 0.01], [0.15, 0.99]);
        assert.deepEqual(await opened.range(), [BEGIN, BEGIN + 60_000]);
      }, {width, height, dark}));
    }
  }
});
