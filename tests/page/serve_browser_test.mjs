// The page of `clrsampler serve` in a browser: what a user does and what comes of it. Run by serve_page_test, which says in the environment
//   PLAYWRIGHT  folder of playwright-core      CHROMIUM  the browser
//   PICTURES    folder that receives the pictures of docs/serve-page.md; may be missing
// The server is the one of fake_serve.mjs; serve_live_browser_test.mjs has a real one.
import assert from 'node:assert/strict';
import {join} from 'node:path';
import {describe, test} from 'node:test';
import {asked, NOW, withServer} from './fake_pages.mjs';
import {FakeServe, HOSTILE, POLICY, PROCESSES, realProfiles} from './fake_serve.mjs';
import {DataBuilder, manyStacks} from './page_data.mjs';
import {Opened} from './serve_opened.mjs';
import {slowness} from './slowness.mjs';

const GRACE = 4;  // what a test that shares its machine with others is allowed beyond the budgets

const withPage = (act, pageOptions) => withServer({}, act, pageOptions);

describe('what is shown', () => {
  test('the host, the timeline with its legend, and the flame graph of all that is in sight', () => withPage(async (opened, fake) => {
    const {page} = opened;
    assert.equal(await page.title(), 'shop-host-3 – clrsampler');
    assert.match(await page.locator('.head .facts').textContent(), /4 CPUs.*19 Hz a CPU.*297 MiB of history/);
    const legend = await opened.legend();
    assert.equal(legend.length, 7);
    assert.match(legend[0].join(), /^shop \(4711\),1\.\d\d cores$/);
    assert.match(await page.locator('.timeline').getAttribute('aria-label'), /^CPU by process, 14:00:00 – 14:05:00; nothing chosen/);
    assert.match(await opened.details(), /^alltotal[\d,]+ samples, 100\.0 %/);
    assert.match(await page.locator('.badge').textContent(), /nothing lost, 99\.6 % named/);
    assert.deepEqual(asked(fake, '/api/profile'), [{from: '-300s', to: 'now', view: 'cpu', format: 'page'}]);
    assert.notDeepEqual(await opened.pixel('.timeline-canvas', 0.5, 0.6), [255, 255, 255]);
  }));

  test('what is under the pointer', () => withPage(async (opened, fake) => {
    const {page} = opened;
    await page.mouse.move(...(await opened.at(0.5, 0.66)));
    assert.match(await page.locator('.tooltip').textContent(), /shop \(4711\)shop-webat14:02:\d0 – 14:02:\d0CPU[\d.]+ coresall[\d.]+ cores/);
    const pause = fake.answer('/api/timeline', {}).pauses.reduce((a, b) => (b.pause_ms > a.pause_ms ? b : a));
    await page.mouse.move(...(await opened.at((pause.t - (NOW - 300_000)) / 300_000 + 0.001, 0.9)));
    const words = await page.locator('.tooltip').textContent();
    assert.match(words, new RegExp(`GC.*, generation ${pause.generation}.*\\(${pause.pid}\\).*pause${(pause.pause_ms).toPrecision(3).slice(0, 3)}`));
    assert.match(words, /until all stood still.*reasonGC/);
  }));

  test('what was not recorded is hatched and said, what is still to come is not', () => withServer({gaps: [{from: NOW - 200_000, to: NOW - 150_000}, {from: NOW - 20_000, to: NOW}]}, async (opened) => {
    await opened.page.mouse.move(...(await opened.at(0.4)));
    assert.match(await opened.page.locator('.tooltip').textContent(), /Nothing was recorded here/);
    await opened.page.mouse.move(...(await opened.at(0.97)));
    assert.match(await opened.page.locator('.tooltip').textContent(), /Not recorded yet/);
    await opened.tab('Health');
    assert.match(await opened.page.locator('.account').textContent(), /! Time76\.7 % of 5 min are recorded/);
  }));

  test('the notices of the server', () => withServer({notices: [{text: 'The history is full.', hint: 'Give it more with --history-bytes.'}]}, async ({page}) => {
    assert.match(await page.locator('.head').textContent(), /The history is full\. Hint: Give it more/);
  }));

  test('both themes, by the system and by the button', async () => {
    const bright = (color) => color.reduce((sum, channel) => sum + channel, 0);
    for (const dark of [false, true]) {
      await withPage(async (opened) => {
        const first = await opened.pixel('.timeline-canvas', 0.01, 0.01);
        await opened.page.getByRole('button', {name: dark ? 'Light' : 'Dark'}).click();
        await opened.settled();
        const second = await opened.pixel('.timeline-canvas', 0.01, 0.01);
        const [light, night] = dark ? [second, first] : [first, second];
        assert.ok(bright(light) > 3 * 240 && bright(night) < 3 * 60, `${light} ${night}`);
      }, {dark});
    }
  });

  for (const width of [360, 3840]) {
    test(`a screen of ${width} pixels`, () => withPage(async ({page}) => {
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width);
      for (const name of ['.timeline', '.times', '.timeline-legend', '.flame-graph', '.methods']) {
        const box = await page.locator(name).boundingBox();
        assert.ok(box.x >= 0 && box.x + box.width <= width && box.width > Math.min(200, width / 2), `${name} ${JSON.stringify(box)}`);
      }
      for (const tab of ['Pauses', 'JIT', 'Health', 'Flight recordings']) {
        await page.getByRole('tab', {name: tab}).click();
        await page.locator('.answer table, .account').first().waitFor();
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, tab);
      }
    }, {width, height: width < 500 ? 740 : 2160}));
  }

  test('all that can be used has a name, and can be seen when it has the focus', () => withPage(async ({page}) => {
    const nameless = await page.evaluate(() => [...document.querySelectorAll('button, input, select, a, [tabindex="0"]')]
      .filter((element) => !(element.getAttribute('aria-label') || element.textContent.trim() || element.labels?.length || element.closest('label'))).map((element) => element.outerHTML));
    assert.deepEqual(nameless, []);
    const seen = [];
    for (let i = 0; i < 30; ++i) {
      await page.keyboard.press('Tab');
      seen.push(await page.evaluate(() => `${document.activeElement.className} ${getComputedStyle(document.activeElement).outlineStyle}`));
    }
    assert.ok(seen.some((one) => one.startsWith('timeline ')), seen.join());
    assert.deepEqual(seen.filter((one) => !/solid|auto/.test(one)), []);
    await page.getByRole('button', {name: 'Help'}).click();
    await page.getByText('The timeline', {exact: true}).waitFor();
    await page.getByText('Licences').click();
    assert.match(await page.locator('dialog pre').textContent(), /preact 11/);
  }));
});

describe('a range of time', () => {
  test('is chosen by mouse, changed at its ends, and taken back', () => withPage(async (opened, fake) => {
    const {page} = opened;
    await opened.drag(0.21, 0.48);
    const begin = NOW - 300_000;
    assert.deepEqual(await opened.range(), [begin + 60_000, begin + 150_000]);  // whole steps of 10 s
    assert.match(await page.locator('.range-text').textContent(), /^14:01:00 – 14:02:30 \(1 min 30 s\)$/);
    assert.deepEqual(asked(fake, '/api/profile').at(-1), {from: String(begin / 1000 + 60), to: String(begin / 1000 + 150), view: 'cpu', format: 'page'});
    assert.equal(await page.getByRole('button', {name: 'Live'}).getAttribute('aria-pressed'), 'false');
    await opened.drag(0.5, 0.69);  // its end
    assert.deepEqual(await opened.range(), [begin + 60_000, begin + 210_000]);
    await opened.drag(0.2, 0.99);  // its beginning, over its end
    assert.deepEqual(await opened.range(), [begin + 210_000, begin + 300_000]);
    await page.goBack();
    await opened.settled();
    assert.deepEqual(await opened.range(), [begin + 60_000, begin + 210_000]);
    await page.getByRole('button', {name: 'Clear range'}).click();
    assert.deepEqual(await opened.state(), {});
    assert.equal(await page.getByRole('button', {name: 'Live'}).getAttribute('aria-pressed'), 'true');
    await page.goBack();
    assert.deepEqual(await opened.range(), [begin + 60_000, begin + 210_000]);
    await page.goForward();
    assert.equal(await opened.range(), null);
  }));

  test('is chosen by keyboard', () => withPage(async (opened) => {
    const {page} = opened;
    const begin = NOW - 300_000, label = () => page.locator('.timeline').getAttribute('aria-label');
    await opened.key('t', 'ArrowLeft');
    assert.deepEqual(await opened.range(), [NOW - 10_000, NOW]);
    await opened.key('ArrowLeft', 'ArrowLeft', 'Shift+ArrowRight');
    assert.deepEqual(await opened.range(), [NOW - 30_000, NOW - 10_000]);
    assert.match(await label(), /chosen: 14:04:30 – 14:04:50/);
    await opened.key('Home', 'Shift+ArrowRight');
    assert.deepEqual(await opened.range(), [begin, begin + 30_000]);
    await opened.key('Shift+End');
    assert.deepEqual(await opened.range(), [begin, NOW]);
    await opened.key('Home', 'Shift+Home', 'End', 'a');
    assert.deepEqual(await opened.range(), [begin, NOW]);
    await opened.key('Escape');
    assert.deepEqual(await opened.state(), {});
    await opened.key('-');
    assert.deepEqual((await opened.state()).span, `${begin - 150_000}-${NOW + 150_000}`);
    await opened.key('Home', 'Shift+ArrowRight', 'Enter');
    assert.deepEqual((await opened.state()).span, `${begin - 150_000}-${begin - 130_000}`);
    assert.match(await label(), /13:57:30 – 13:57:50/);
    await opened.key('l');
    assert.deepEqual(await opened.state(), {last: '20'});
    assert.equal(await page.evaluate(() => document.activeElement.className), 'timeline');
  }));

  test('a held key asks no more than a few questions, and is few steps back', () => withPage(async (opened, fake) => {
    const {page} = opened;
    await page.locator('.timeline').focus();
    fake.requests.length = 0;
    const entries = () => page.evaluate(() => history.length), before = await entries();
    for (let i = 0; i < 25; ++i) await page.keyboard.down('ArrowLeft');
    await page.keyboard.up('ArrowLeft');
    await opened.key();
    assert.deepEqual(await opened.range(), [NOW - 250_000, NOW - 240_000]);
    assert.ok(asked(fake, '/api/profile').length < 10, String(asked(fake, '/api/profile').length));
    assert.equal(asked(fake, '/api/profile').at(-1).from, String(NOW / 1000 - 250));
    await opened.key('-', '-', '-');
    assert.equal((await opened.state()).span.split('-').reduce((from, to) => to - from), 8 * 300_000);
    // Keys within a second of each other are one step. A busy machine may take longer between some.
    const steps = (await entries()) - before;
    assert.ok(steps >= 1 && steps <= 5, String(steps));
    await page.evaluate((back) => history.go(-back), steps);
    await page.waitForFunction(() => !location.hash.includes('range='));
    await opened.settled();
    assert.deepEqual(await opened.state(), {});
  }));

  test('is typed', () => withPage(async (opened) => {
    const {page} = opened;
    const [from, to] = [page.getByLabel('From'), page.getByLabel('To', {exact: true})];
    assert.deepEqual([await from.inputValue(), await to.inputValue()], ['-5m', 'now']);
    await from.fill('14:01:05');
    await to.fill('-2m');
    await to.press('Enter');
    await opened.settled();
    assert.deepEqual(await opened.range(), [NOW - 235_000, NOW - 120_000]);
    assert.deepEqual([await from.inputValue(), await to.inputValue()], ['14:01:05', '14:03:00']);
    await from.fill('2026-11-22 09:00');
    await to.fill('2026-11-22T09:30:00Z');
    await to.press('Enter');
    await opened.settled();
    assert.match(await page.locator('.timeline').getAttribute('aria-label'), /08:57:00 – 09:33:00; chosen: 09:00:00 – 09:30:00/);
    await from.fill('yesterday');
    await from.press('Enter');
    assert.match(await page.locator('.times [role="alert"]').textContent(), /“yesterday” is no time/);
    await from.fill('10:00');
    await from.press('Enter');
    assert.match(await page.locator('.times [role="alert"]').textContent(), /ends before it begins/);
  }));

  test('moves with the buttons, the wheel and the choice of a length', () => withPage(async (opened, fake) => {
    const {page} = opened;
    await page.getByRole('button', {name: 'Earlier'}).click();
    await opened.settled();
    assert.equal((await opened.state()).span, `${NOW - 450_000}-${NOW - 150_000}`);
    await page.getByRole('button', {name: 'Zoom in'}).click();
    await opened.settled();
    assert.equal((await opened.state()).span, `${NOW - 375_000}-${NOW - 225_000}`);
    await page.mouse.move(...(await opened.at(0.5)));
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, 100);
    await page.keyboard.up('Control');
    await opened.settled();
    const [from, to] = (await opened.state()).span.split('-').map(Number);
    assert.ok(to - from > 180_000, `${to - from}`);
    await page.getByRole('combobox', {name: 'Last'}).selectOption({label: '1 h'});
    await opened.settled();
    assert.deepEqual(await opened.state(), {last: '3600'});
    assert.equal(asked(fake, '/api/timeline').at(-1).from, '-3600s');
  }));
});

describe('whose samples', () => {
  test('one process, from the legend or from the picture', () => withPage(async (opened, fake) => {
    const {page} = opened;
    await page.getByRole('button', {name: 'Narrow to orders (4812)'}).click();
    await opened.settled();
    assert.deepEqual(await opened.chips(), ['process orders (4812)×']);
    for (const path of ['/api/timeline', '/api/profile']) assert.equal(asked(fake, path).at(-1).pid, '4812', path);
    assert.deepEqual((await opened.legend()).map(([name]) => name), ['orders (4812)']);
    await page.getByRole('button', {name: 'Take back: process'}).click();
    await opened.settled();
    assert.equal((await opened.legend()).length, 7);
    await page.mouse.click(...(await opened.at(0.5, 0.66)));
    await opened.settled();
    assert.equal((await opened.state()).pid, '4711');
  }));

  test('the labels of one process say what it is', () => withPage(async (opened, fake) => {
    const {page} = opened, facts = page.getByLabel('Labels of the process');
    assert.equal(await facts.count(), 0);
    assert.deepEqual(asked(fake, '/api/processes'), []);
    await page.getByRole('button', {name: 'Narrow to orders (4812)'}).click();
    await facts.waitFor();
    const texts = await facts.locator('div').evaluateAll((rows) => rows.map((row) => [...row.children].map((part) => part.textContent)));
    assert.deepEqual(texts, [['service', HOSTILE.replace('\u202e', '\ufffd')], ['version', '2.1'], ['pod', 'orders-7c9'], ['team', 'shop'], ['.NET', '10.0.14']]);
    assert.equal(asked(fake, '/api/processes').at(-1).pid, '4812');
    await page.getByRole('button', {name: 'Take back: process'}).click();
    await facts.waitFor({state: 'detached'});
    await page.getByRole('button', {name: 'Narrow to nginx (871)'}).click();
    await opened.settled();
    assert.equal(await facts.count(), 0);
  }));

  test('one container, and then its processes', () => withPage(async (opened, fake) => {
    const {page} = opened;
    await page.getByRole('radio', {name: 'Container'}).click();
    await opened.settled();
    assert.ok((await opened.legend()).some(([name]) => name === 'no container'));
    assert.equal(await page.getByRole('button', {name: 'Narrow to no container'}).count(), 0);
    await page.getByRole('button', {name: 'Narrow to <img'}).click();
    await opened.settled();
    assert.equal(asked(fake, '/api/timeline').at(-1).container, `${HOSTILE}"><svg onload=window.broken=1>`);  // as it is
    assert.deepEqual(asked(fake, '/api/timeline').at(-1).by, 'process');
    assert.deepEqual((await opened.legend()).length, 1);
    assert.match((await opened.chips())[0], /^container <img src=x onerror=window\.broken=1>\ufffd/);
  }));

  test('each view is asked for, and says what its numbers are', () => withPage(async (opened, fake) => {
    for (const [name, view, unit] of [['JIT', 'jit', 'ms/s'], ['Pauses', 'pause', 'ms/s'], ['Suspend delay', 'suspend-delay', 'ms/s'], ['Allocations', 'alloc', 'MB/s'], ['Waits', 'off-cpu', 'threads'], ['CPU', 'cpu', 'cores']]) {
      await opened.page.getByRole('radio', {name, exact: true}).click();
      await opened.settled();
      assert.equal(asked(fake, '/api/profile').at(-1).view, view);
      assert.ok((await opened.legend())[0][1].endsWith(unit), name);
    }
  }));
});

describe('what threads do', () => {
  test('running and waiting by kind, of one process; a kind can be hidden and shown', () => withPage(async (opened, fake) => {
    const {page} = opened;
    await page.getByRole('radio', {name: 'Thread states'}).click();
    await opened.settled();
    assert.equal(asked(fake, '/api/timeline').at(-1).by, 'process');
    const names = async () => (await opened.legend()).map(([name]) => name);
    assert.deepEqual(await names(), ['running', 'monitor', 'task wait', 'idle']);
    assert.ok((await opened.legend()).every(([, mean]) => /threads?$/.test(mean)));
    const isShown = (name) => page.getByRole('button', {name: new RegExp(`^${name}, .* threads?$`)}).getAttribute('aria-pressed');
    assert.deepEqual([await isShown('idle'), await isShown('monitor')], ['false', 'true']);
    const total = async () => {
      await page.mouse.move(...(await opened.at(0.5, 0.5)));
      return Number(/all([\d.]+) threads/.exec((await page.locator('.tooltip').textContent()).replaceAll(',', ''))[1]);
    };
    const withoutIdle = await total();
    await page.getByRole('button', {name: /^idle, /}).click();
    assert.equal(await isShown('idle'), 'true');
    assert.ok(await total() > withoutIdle + 30, 'forty threads of each process are idle');
  }));

  test('where no waits were recorded it says so', () => withPage(async (opened, fake) => {
    fake.options.noWaits = true;
    await opened.page.getByRole('radio', {name: 'Thread states'}).click();
    await opened.settled();
    await opened.page.getByText('No waits were recorded in this time: serve --waits does.').waitFor();
  }));
});

describe('comparing', () => {
  test('two ranges', () => withPage(async (opened, fake) => {
    const {page} = opened;
    const begin = NOW - 300_000;
    await opened.drag(0.11, 0.29);
    await page.getByRole('button', {name: 'Set as base'}).click();
    await opened.settled();
    assert.match((await opened.chips())[0], /^base 14:00:30 – 14:01:30/);
    await page.getByText('Now choose the range to compare with it.').waitFor();
    assert.equal(asked(fake, '/api/diff').length, 0);
    await opened.drag(0.61, 0.79);
    assert.deepEqual(asked(fake, '/api/diff'), [{
      base_from: String(begin / 1000 + 30), base_to: String(begin / 1000 + 90), from: String(begin / 1000 + 180), to: String(begin / 1000 + 240), view: 'cpu', format: 'page',
    }]);
    assert.match((await opened.chips())[0], /^compared with 14:00:30 – 14:01:30/);
    await page.getByText('Changes and noise can’t be told apart').waitFor();
    assert.equal(await page.getByText('within the noise').count(), 0);
    assert.equal(await page.locator('td.noise').count(), 0);
    assert.match(await opened.details(), /before[\d,]+ samples/);
    await page.getByRole('radio', {name: 'before'}).click();
    await page.getByRole('button', {name: 'Swap range and base'}).click();
    await opened.settled();
    assert.equal(asked(fake, '/api/diff').at(-1).from, String(begin / 1000 + 30));
    await page.getByRole('button', {name: 'Take back: base'}).click();
    await opened.settled();
    assert.equal(await page.getByText('can’t be told apart').count(), 0);
    assert.match(await opened.details(), /^alltotal[\d,]+ samples, 100\.0 %self/);
  }));

  test('by keyboard alone', () => withPage(async (opened, fake) => {
    await opened.key('t', 'Home', 'b', 'End');
    assert.equal(asked(fake, '/api/diff').length, 1);
  }));

  test('a search finds the same methods in the next range', () => withPage(async (opened) => {
    const {page} = opened;
    await page.locator('.search input').fill('mailer.program');
    await page.getByText('% of all matched').waitFor();
    await opened.drag(0.11, 0.29);
    const row = page.locator('tr', {has: page.getByText('mailer.Program.Main', {exact: true})}).first();
    const share = (await row.locator('td.number').last().textContent()).match(/[\d.]+ %/)[0];
    assert.equal(await page.locator('.search output').textContent(), `${share} of all matched`);
  }));

  test('search, zoom and filters mean the same in the next range', () => withPage(async (opened) => {
    const {page} = opened;
    await page.locator('.search input').fill('parse');
    await page.getByText('% of all matched').waitFor();
    const menu = page.getByRole('button', {name: 'Menu for Shop.Text.Parser.Parse'});
    await menu.click();
    await page.getByRole('menuitem', {name: 'Who calls this?'}).click();
    await opened.drag(0.11, 0.29);
    assert.equal(await page.locator('.search input').inputValue(), 'parse');
    assert.deepEqual(await page.locator('.picture').locator('..').locator('..').locator('nav[aria-label="Where the picture is"] .chip').allTextContents(), ['callers of: Parser.Parse×']);
    assert.match(await opened.details(), /callers of Parser\.Parse/);
  }));
});

describe('panels', () => {
  test('pauses are listed with their culprits, sort, and choose their time', () => withPage(async (opened, fake) => {
    const {page} = opened;
    await opened.tab('Pauses');
    const answer = fake.answer('/api/pauses', {limit: '500'});
    assert.match(await page.locator('.answer .note').textContent(), new RegExp(`^${answer.count} pauses, .* until all threads stood still`));
    const times = await opened.column('Pauses', 0);
    assert.equal(times.length, answer.count);
    const order = (pauses, of) => [...pauses].sort(of).map(({t}) => new Date(t).toISOString().slice(11, 23));
    assert.deepEqual(times, order(answer.pauses, (a, b) => b.pause_ms - a.pause_ms));
    await page.getByRole('button', {name: 'Time', exact: true}).click();
    assert.deepEqual(await opened.column('Pauses', 0), order(answer.pauses, (a, b) => b.t - a.t));
    await page.getByRole('button', {name: 'Time'}).first().click();
    assert.deepEqual(await opened.column('Pauses', 0), order(answer.pauses, (a, b) => a.t - b.t));
    assert.equal(await page.getByRole('columnheader', {name: 'Time'}).getAttribute('aria-sort'), 'ascending');
    assert.ok((await opened.column('Pauses', 7)).some((text) => /Shop\.Text\.Parser\.Scan\(System\.String\) .* ms, thread \d+/.test(text)));
    const [first] = [...answer.pauses].sort((a, b) => a.t - b.t);
    await page.getByRole('button', {name: /^Choose the time/}).first().click();
    await opened.settled();
    const [from, to] = await opened.range();
    assert.ok(from <= first.t && to > first.t && to - from <= 20_000, `${from} ${to}`);
    await page.getByRole('button', {name: /^Narrow to/}).last().click();
    await opened.settled();
    assert.ok((await opened.state()).pid);
  }));

  test('a click on a mark chooses the time of the pause', () => withPage(async (opened, fake) => {
    const pause = fake.answer('/api/timeline', {}).pauses.reduce((a, b) => (b.pause_ms > a.pause_ms ? b : a));
    await opened.page.mouse.click(...(await opened.at((pause.t - (NOW - 300_000)) / 300_000 + 0.001, 0.9)));
    await opened.settled();
    const [from, to] = await opened.range();
    assert.ok(from <= pause.t && to > pause.t && to - from <= 20_000);
  }));

  test('JIT cost sorts', () => withPage(async (opened) => {
    const {page} = opened;
    await opened.tab('JIT');
    const sizes = async () => (await opened.column('JIT cost by method', 4)).map((text) => Number(text.split(' ')[0]) * (text.endsWith('KiB') ? 1024 : 1));
    await page.getByRole('button', {name: 'Code'}).click();
    const down = await sizes();
    assert.ok(down.length > 50 && down.every((size, i) => i === 0 || size <= down[i - 1]));
    await page.getByRole('button', {name: 'Method'}).click();
    const names = await opened.column('JIT cost by method', 0);
    assert.deepEqual(names, [...names].sort());
    await page.getByRole('button', {name: 'Narrow to mailer (6021)'}).first().click();
    await opened.settled();
    assert.equal((await opened.column('JIT cost by method', 0)).length, 30);
  }));

  test('health in words', () => withServer({lost: 1500}, async (opened) => {
    assert.match(await opened.page.locator('.badge').textContent(), /lost/);
    await opened.page.locator('.badge').click();
    const text = await opened.page.locator('.account').textContent();
    for (const part of ['Lost: 1,500, the agent read too slowly', 'Managed: 99.6 %', 'of one CPU; 74.6 MiB of memory, 16.0 MiB in the kernel', '19 samples a second and CPU, all the time', 'mailer (6021): names', '2 × no-perf-map', 'clrsampler 0.8.0', '297 MiB of at most 1.0 GiB']) {
      assert.ok(text.includes(part), `${part} in ${text}`);
    }
  }));

  test('a flight recording opens, from the list and from its flag', () => withPage(async (opened) => {
    const {page} = opened;
    await opened.tab('Flight recordings');
    assert.deepEqual(await opened.column('Flight recordings', 1), ['pause>100ms', 'cpu>80% for 10s']);
    const links = await page.locator('.data .downloads').last().locator('a').evaluateAll((all) => all.map((link) => link.getAttribute('href')));
    assert.equal(links[0], 'api/recordings/cpu%201%2F%3Cx%3E?format=pprof');
    await page.getByRole('button', {name: /^Open the recording/}).last().click();
    await opened.settled();
    await page.getByRole('button', {name: 'Shop.Recorded.OnlyHere'}).first().waitFor();
    assert.match(await page.locator('.recording-head').textContent(), /cpu>80% for 10s87 % <img src=x onerror=window\.broken=1>\ufffdthe host13:/);
    assert.equal((await opened.state()).recording, 'cpu 1/<x>');
    await page.getByRole('button', {name: 'All recordings'}).click();
    await page.getByRole('table', {name: 'Flight recordings'}).waitFor();
    const flag = (Math.floor((NOW - 90_000) / 10_000) * 10_000 + 4000 - (NOW - 300_000)) / 300_000;
    await page.mouse.move(...(await opened.at(flag, 0.01)));
    assert.match(await page.locator('.tooltip').textContent(), /Flight recordingpause>100ms: a pause of 163 ms/);
    await page.mouse.click(...(await opened.at(flag, 0.01)));
    await opened.settled();
    assert.equal((await opened.state()).recording, 'pause-2');
    await page.getByRole('button', {name: 'Choose its time on the timeline'}).click();
    await opened.settled();
    const [from, to] = await opened.range();
    assert.equal(to - from, 60_000);
  }));

  test('lines of a method, in this range and in the next one', () => {
    const profile = (_, range) => {
      const builder = new DataBuilder({start_unix_ns: range.from * 1e6});
      const line = (range.to - range.from) / 1000;  // another one for each length
      return builder.stack([{name: 'Shop.Cart.Total', file: '/src/Cart.cs', line, lineKind: 'optimised'}], 40).data();
    };
    return withServer({profile}, async (opened) => {
      const {page} = opened;
      await page.getByRole('button', {name: 'Menu for Shop.Cart.Total'}).click();
      await page.getByRole('menuitem', {name: 'Show its lines'}).click();
      const row = page.locator('.lines tbody tr');
      assert.equal(await row.textContent(), '30040 100.0 %40 100.0 %\u2248Cart.cs');
      assert.equal(await page.getByRole('tab', {name: 'How good is this?'}).count(), 0);
      await page.getByRole('combobox', {name: 'Last'}).selectOption({label: '1 h'});
      await opened.settled();
      assert.equal(await row.textContent(), '360040 100.0 %40 100.0 %\u2248Cart.cs');
    });
  });

  test('tabs by keyboard', () => withPage(async (opened) => {
    await opened.page.getByRole('tab', {name: 'Flame graph'}).focus();
    await opened.key('ArrowRight', 'ArrowRight');
    assert.equal((await opened.state()).tab, 'jit');
    assert.equal(await opened.page.evaluate(() => document.activeElement.id), 'tab-jit');
    await opened.key('ArrowLeft', 'ArrowLeft', 'ArrowLeft');
    assert.equal((await opened.state()).tab, 'recordings');
  }));
});

describe('the address', () => {
  test('shows the same to whoever opens it', () => withPage(async (opened, fake) => {
    assert.match(await opened.page.locator('.range-text').textContent(), /^14:02:00 – 14:03:00/);
    assert.deepEqual(await opened.chips(), ['process shop (4711)×']);
    assert.equal(await opened.page.getByRole('tab', {selected: true}).first().textContent().then((text) => text.startsWith('Pauses')), true);
    assert.deepEqual(asked(fake, '/api/pauses'), [{from: String(NOW / 1000 - 180), to: String(NOW / 1000 - 120), pid: '4711', limit: '500'}]);
    assert.equal(asked(fake, '/api/profile').length, 0);
  }, {hash: `#span=${NOW - 300_000}-${NOW}&range=${NOW - 180_000}-${NOW - 120_000}&pid=4711&tab=pauses&view=pause`}));

  test('that makes no sense shows the beginning', () => withPage(async (opened) => {
    assert.match(await opened.page.locator('.range-text').textContent(), /The last 5 min/);
  }, {hash: '#span=9-1&tab=<script>&view=constructor&pid=-3'}));
});

describe('while time goes on', () => {
  test('all is asked again each 10 s: not while a range is chosen, nor while nobody looks', () => withPage(async (opened, fake) => {
    const {page} = opened;
    const later = async () => {
      fake.requests.length = 0;
      await page.clock.runFor(10_500);
      await page.clock.resume();
      await opened.settled();
      return [...new Set(fake.requests.map((request) => request.split('?')[0]))].sort();
    };
    const all = ['/api/health', '/api/profile', '/api/recordings', '/api/status', '/api/timeline'];
    fake.options.now = NOW + 10_000;
    assert.deepEqual(await later(), all);
    assert.match(await page.locator('.timeline').getAttribute('aria-label'), /14:00:10 – 14:05:10/);
    await page.mouse.click(...(await opened.atGraph(2, 0.1)), {button: 'right'});
    await later();
    assert.equal(await page.getByRole('menuitem').first().isVisible(), true);  // what is open stays open
    await page.getByRole('menuitem', {name: 'Focus: only stacks with this'}).click();
    await page.getByRole('button', {name: /^Take back: only stacks with/}).waitFor();
    await page.evaluate(() => Object.defineProperty(document, 'hidden', {value: true, configurable: true}));
    assert.deepEqual(await later(), []);
    await page.evaluate(() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange')); });
    await opened.settled();
    await opened.drag(0.2, 0.4);
    assert.deepEqual(await later(), []);
    await page.getByRole('button', {name: 'Live'}).click();
    await opened.settled();
    assert.deepEqual(await later(), all);
    await page.getByRole('button', {name: 'Live'}).click();
    await opened.settled();
    assert.deepEqual(await later(), []);
    assert.equal((await opened.state()).span, `${NOW - 290_000}-${NOW + 10_000}`);
  }, {clock: NOW}));
});

describe('when something is wrong', () => {
  test('the server\u2019s errors are shown with their hints, and what can be shown is', () => withPage(async (opened, fake) => {
    const {page} = opened;
    fake.broken.set('/api/profile', {status: 503, body: {error: `Too many questions at once ${HOSTILE}.`, hint: 'Wait a second.'}});
    await opened.drag(0.2, 0.4);
    assert.match(await page.locator('.trouble').textContent(), /^Too many questions at once <img src=x onerror=window\.broken=1>\ufffd\.Hint: Wait a second\.Try again$/);
    assert.equal(await page.locator('.flame-graph').count(), 0);  // not that of another range
    fake.broken.clear();
    await page.getByRole('button', {name: 'Try again'}).click();
    await page.locator('.flame-graph').waitFor();
    assert.equal(await page.locator('.trouble').count(), 0);
    fake.broken.set('/api/timeline', {status: 400, body: {error: 'There is no pid 5.', hint: ''}});
    await page.getByRole('radio', {name: 'Container'}).click();
    await page.getByText('There is no pid 5.').waitFor();
    fake.broken.set('/api/jit', {status: 502, body: '<html>bad gateway</html>'});
    await page.getByRole('tab', {name: 'JIT'}).click();
    await page.getByText('The server answered with status 502 and no explanation.').waitFor();
    opened.forget();
  }));

  test('a server that is gone is said, and found again', () => withPage(async (opened) => {
    const {page} = opened;
    await opened.context.setOffline(true);
    await page.getByRole('tab', {name: 'Pauses'}).click();
    await page.getByText('The server does not answer.').first().waitFor();
    await opened.context.setOffline(false);
    await page.getByRole('button', {name: 'Try again'}).last().click();
    await page.getByRole('table', {name: 'Pauses'}).waitFor();
    opened.forget();
  }));

  test('answers without sense break nothing', () => withPage(async (opened, fake) => {
    const {page} = opened;
    for (const [path, body] of [['/api/timeline', {steps: 2, begin: NOW, step_ms: 10_000, series: [{}], pauses: [{t: NOW}, {}]}], ['/api/status', {}], ['/api/health', {}], ['/api/recordings', {}], ['/api/pauses', {}], ['/api/jit', {}]]) fake.broken.set(path, {status: 200, body});
    await page.reload();
    for (const tab of ['Pauses', 'JIT', 'Health', 'Flight recordings']) await opened.tab(tab);
    await page.getByText('No flight recordings').waitFor();
    fake.broken.set('/api/profile', {status: 200, body: {version: 99}});
    await page.getByRole('tab', {name: 'Flame graph'}).click();
    await page.getByText('data of version 99').waitFor();
  }));

  test('nothing recorded is said in words, everywhere', () => withServer({gaps: [{from: 0, to: 1e15}], recordings: []}, async (opened) => {
    const {page} = opened;
    await page.getByText('Nothing was recorded in this time').waitFor();
    await page.getByText('No samples in this range: clrsampler was not recording then').waitFor();
    for (const [tab, words] of [['Pauses', 'No pauses in this range'], ['Health', 'Nothing of this range is recorded'], ['Flight recordings', 'No flight recordings: no trigger has fired']]) {
      await opened.tab(tab);
      await page.getByText(words).waitFor();
    }
  }));

  test('a filter that leaves nothing is said', () => withPage(async (opened) => {
    await opened.page.getByText('Nothing that was chosen ran in this time.').waitFor();
    await opened.page.getByText('No samples in this range: no program that was watched ran on a CPU.').waitFor();
    await opened.page.getByRole('button', {name: 'Take back: process 99'}).click();
    await opened.page.locator('.flame-graph').waitFor();
  }, {hash: '#pid=99'}));

  test('that nothing was found is no error, but for a recording', () => withPage(async (opened, fake) => {
    fake.broken.set('/api/profile', {status: 404, body: {error: 'nothing that fits was sampled in that time', hint: ''}});
    fake.broken.set('/api/recordings/pause-2', {status: 404, body: {error: 'there is no such recording', hint: '/api/recordings lists them'}});
    await opened.drag(0.2, 0.4);
    await opened.page.locator('.empty-range').waitFor();
    assert.equal(await opened.page.getByRole('alert').count(), 0);
    await opened.tab('Flight recordings');
    await opened.page.getByRole('button', {name: /^Open the recording/}).first().click();
    await opened.page.getByText('there is no such recording').waitFor();
    opened.forget();
  }));
});

describe('strangers', () => {
  test('names with markup are names, wherever they stand', () => withPage(async (opened) => {
    const {page} = opened;
    for (const tab of ['Pauses', 'JIT', 'Health', 'Flight recordings', 'Flame graph']) {
      await opened.tab(tab);
      assert.equal(await page.locator('#app script, #app img, #app svg, #app iframe').count(), 0);
      assert.ok(!(await page.content()).includes('\u202e'), tab);
    }
    for (let i = 0; i < 10; ++i) await page.mouse.move(...(await opened.at(0.5, 0.3 + 0.03 * i)));
    assert.equal(await page.evaluate(() => window.broken), undefined);
  }));

  test('no script but the page\u2019s own runs, and no request goes elsewhere', () => withPage(async (opened, fake) => {
    const {page} = opened;
    const violations = await page.evaluate(async () => {
      const script = document.createElement('script');
      try {
        script.append('window.broken = 1');
        document.body.append(script);
      } catch {
        // Trusted types refuse it before the policy does.
      }
      await fetch('http://127.0.0.1:9/x').catch(() => 0);
      document.body.append(Object.assign(document.createElement('img'), {src: 'http://127.0.0.1:9/x'}));
      await new Promise((resolve) => { setTimeout(resolve, 50); });
      const seen = window.violations.splice(0);
      return {seen, broken: window.broken};
    });
    assert.equal(violations.broken, undefined);
    for (const directive of ['connect-src', 'img-src']) assert.ok(violations.seen.some((text) => text.startsWith(directive)), String(violations.seen));
    opened.complaints = opened.complaints.filter((text) => !/Content Security Policy|TrustedScript|127\.0\.0\.1:9/.test(text));
    assert.ok(POLICY.includes("script-src 'self'") && fake.requests.every((request) => /^\/($|assets\/|api\/)/.test(request)), fake.requests.join());
  }));
});

test('600 steps of 50 processes with 10,000 pauses, and 200,000 nodes, are fluid', async (context) => {
  const processes = Array.from({length: 50}, (_, i) => ({pid: 1000 + i, comm: `p${i}`, container: `c${i}`, dotnet: true, cores: 0.1, wave: 0.05, pauses: 3}));
  const profile = manyStacks(58_000);
  assert.ok(profile.nodes.frame.length > 200_000, String(profile.nodes.frame.length));
  const data = profile.data();
  const fake = new FakeServe({now: NOW, processes, mostPauses: 10_000, profile: () => data});
  // The page asks for twelve series; more may come.
  const timeline = fake.answer('/api/timeline', {from: '-6000s', points: '600', series: '50'});
  assert.ok(timeline.steps === 600 && timeline.series.length === 50 && timeline.pauses.length === 10_000);
  fake.broken.set('/api/timeline', {status: 200, body: timeline});
  context.after(() => fake.close());
  const opened = await Opened.at(await fake.listen(), {width: 1920, height: 1080});
  await opened.page.locator('.flame-graph').waitFor();
  await opened.settled();
  const slow = await slowness(opened.page);
  const draws = () => opened.page.evaluate(() => performance.getEntriesByName('timeline-draw').map(({startTime, duration}) => ({startTime, duration})));
  // From then on nothing is asked again, and drawn again, by itself.
  await opened.page.mouse.move(...(await opened.at(0.3)));
  await opened.page.mouse.down();
  await opened.page.mouse.move(...(await opened.at(0.5)));
  await opened.page.mouse.up();
  await opened.settled();
  const first = await draws();
  await opened.page.evaluate(() => {
    window.frames_ms = [];
    let before = performance.now();
    const next = (now) => { window.frames_ms.push(now - before); before = now; requestAnimationFrame(next); };
    requestAnimationFrame(next);
  });
  await opened.page.mouse.move(...(await opened.at(0.1)));
  await opened.page.mouse.down();
  for (let i = 0; i < 40; ++i) await opened.page.mouse.move(...(await opened.at(0.1 + i / 50)));
  const frames = await opened.page.evaluate(() => window.frames_ms);
  assert.deepEqual(await draws(), first);  // a drag draws nothing again
  await opened.page.mouse.up();
  await opened.settled();
  const worst = first[0].duration, slowest = frames.slice(2).sort((a, b) => a - b)[Math.floor(0.9 * frames.length) - 2];
  const grace = GRACE * Math.max(slow, await slowness(opened.page));
  context.diagnostic(`timeline drawn in ${worst.toFixed(0)} ms, frames while dragging ${slowest?.toFixed(0)} ms, grace ${grace.toFixed(1)}`);
  assert.ok(worst < grace * 50, `drawing took ${worst} ms`);
  assert.ok(slowest < grace * 17, `frames took ${frames} ms`);
  await opened.close();
});

test('pictures for the docs', {skip: process.env.PICTURES ? false : 'PICTURES is not set'}, async () => {
  const processes = PROCESSES.filter(({comm}) => comm !== HOSTILE);
  const recordings = [{id: 'pause-2', trigger: 'pause>100ms', t: NOW - 86_000, from: NOW - 116_000, to: NOW - 56_000, pid: 4711, comm: 'shop', value: 'a pause of 163 ms', bytes: 1_830_211, files: []}];
  const shoot = (name, act, options) => withServer({profile: realProfiles(NOW - 300_000), processes, recordings}, async (opened) => {
    await act(opened);
    await opened.page.screenshot({path: join(process.env.PICTURES, `${name}.png`)});
  }, {width: 1280, height: 880, hash: '#last=600', ...options});
  await shoot('serve-page', async (opened) => {
    await opened.drag(0.61, 0.74);
    await opened.page.mouse.move(...(await opened.at(0.82, 0.6)));
  }, {});
  await shoot('serve-page-compare', async (opened) => {
    await opened.page.getByRole('button', {name: 'Narrow to shop (4711)'}).click();
    await opened.settled();
    await opened.drag(0.11, 0.29);
    await opened.page.getByRole('button', {name: 'Set as base'}).click();
    await opened.settled();
    await opened.drag(0.61, 0.79);
    await opened.page.mouse.move(600, 480);
  }, {dark: true});
});
