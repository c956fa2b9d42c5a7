// The table of methods in a browser: only rows in sight are in the document, and nobody notices. Run by html_page_test, which
// says in the environment
//   PLAYWRIGHT  folder of playwright-core      CHROMIUM  the browser
import assert from 'node:assert/strict';
import {describe, test} from 'node:test';
import {DataBuilder, pageOf} from './page_data.mjs';
import * as files from './page_files.mjs';

const METHODS = 3000;
const own = files.browserOfTests();

const name = (i) => `Shop.Method${String(i).padStart(4, '0')}`;

function many() {
  const builder = new DataBuilder({title: 'shop (4711)'});
  for (let i = 0; i < METHODS; ++i) builder.stack(['Shop.Main', name(i)], METHODS - i);
  return pageOf(builder.data());
}
const withMany = (act, options) => files.withPage(own, many(), act, options);

const rows = (page) => page.locator('.methods tbody tr');
/** Texts of the rows that can be seen, below the table's head. */
const inSight = (page) => page.evaluate(() => {
  const box = document.querySelector('.methods-host').getBoundingClientRect(), head = document.querySelector('.methods th').getBoundingClientRect();
  return [...document.querySelectorAll('.methods tbody tr')].filter((row) => {
    const {top, bottom} = row.getBoundingClientRect();
    return top >= head.bottom - 1 && bottom <= box.bottom + 1;
  }).map((row) => row.querySelector('td.name').textContent.trim());
});
const focused = (page) => page.evaluate(() => document.activeElement.textContent.trim());
const scroll = (page, top) => page.evaluate((y) => { document.querySelector('.methods-host').scrollTop = y; }, top);

describe('a long table', () => {
  test('has all rows for who scrolls, and few in the document', () => withMany(async (page) => {
    assert.ok((await rows(page).count()) < 100);
    assert.equal((await inSight(page))[0], name(0));
    const height = await page.evaluate(() => document.querySelector('.methods-host').scrollHeight);
    const row = await rows(page).first().evaluate((one) => one.getBoundingClientRect().height);
    assert.ok(Math.abs(height - row * (METHODS + 1)) < 2 * row, `${height}`);
    await scroll(page, 1500 * row);
    await page.getByRole('button', {name: name(1500), exact: true}).waitFor();
    assert.equal((await inSight(page))[0], name(1500));
    await scroll(page, height);
    await page.getByRole('button', {name: 'Shop.Main', exact: true}).waitFor();
    assert.equal((await inSight(page)).at(-1), 'Shop.Main');
    assert.ok((await rows(page).count()) < 100);
  }));

  test('says to screen readers how many rows it has, and which ones it shows', () => withMany(async (page) => {
    assert.equal(await page.getByRole('table').getAttribute('aria-rowcount'), String(METHODS + 2));
    assert.equal(await rows(page).first().getAttribute('aria-rowindex'), '2');
    await scroll(page, 26 * 100);
    const row = page.locator('tr', {has: page.getByRole('button', {name: name(100), exact: true})});
    assert.equal(await row.getAttribute('aria-rowindex'), '102');
  }));

  test('by keyboard', () => withMany(async (page) => {
    await page.getByRole('button', {name: name(0), exact: true}).focus();
    const press = async (key, wanted) => {
      await page.keyboard.press(key);
      await page.waitForFunction((text) => document.activeElement.textContent.trim() === text, wanted);
      assert.ok((await inSight(page)).includes(wanted), `${wanted} is in sight`);
    };
    await press('ArrowDown', name(1));
    await press('ArrowDown', name(2));
    await press('ArrowUp', name(1));
    await press('End', 'Shop.Main');
    await press('ArrowUp', name(METHODS - 1));
    // Keys that come faster than rows are drawn.
    for (const key of ['Home', 'ArrowDown', 'End', 'ArrowUp']) await page.keyboard.press(key);
    await page.waitForFunction((text) => document.activeElement.textContent.trim() === text, name(METHODS - 1));
    await press('Home', name(0));
    await page.keyboard.press('PageDown');
    await page.waitForFunction((text) => document.activeElement.textContent.trim() !== text, name(0));
    assert.match(await focused(page), /^Shop\.Method00[1-9]\d$/);
    await page.keyboard.press('Enter');
    assert.equal(await page.locator('.methods tr.marked').count(), 1);
    await press('Home', name(0));
    // The key Tab goes through all rows, two places in each.
    for (let i = 0; i < 160; ++i) {
      await page.keyboard.press('Tab');
      if (i % 8 === 7) await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));  // the next rows are drawn
    }
    assert.equal(await focused(page), name(80));
    // The element that had the focus may leave the document: keys go on from what is in sight.
    await scroll(page, 26 * 2000);
    await page.waitForFunction(() => document.activeElement.classList.contains('methods-host'));
    await press('ArrowDown', name(2000));
  }));

  test('leaves the focus where the key Tab took it from a row that a key led to', () => withMany(async (page) => {
    await page.getByRole('button', {name: name(20), exact: true}).focus();
    await page.keyboard.press('ArrowDown');
    assert.equal(await focused(page), name(21));
    for (let i = 0; i < 10; ++i) await page.keyboard.press('Tab');
    await scroll(page, 26 * 12);
    await page.waitForFunction((text) => document.querySelector('.methods tbody tr').textContent.includes(text), name(4));
    assert.equal(await focused(page), name(26));
  }));

  test('sorts and searches all rows', () => withMany(async (page) => {
    await page.getByRole('button', {name: 'Self'}).click();
    await page.getByRole('button', {name: 'Shop.Main', exact: true}).waitFor();
    assert.deepEqual((await inSight(page)).slice(0, 2), ['Shop.Main', name(METHODS - 1)]);
    await scroll(page, 26 * 2500);
    await page.locator('.search input').fill('Method17');
    await page.waitForFunction(() => document.querySelector('.methods').getAttribute('aria-rowcount') === '101');
    await scroll(page, 0);
    await page.getByRole('button', {name: name(1799), exact: true}).waitFor();
    assert.equal((await inSight(page))[0], name(1799));
    await page.locator('.search input').fill('nothing at all');
    await page.getByText('No method matches.').waitFor();
  }));

  for (const [width, height] of [[360, 740], [3840, 2000]]) {
    test(`fits into ${width} pixels`, () => withMany(async (page) => {
      const {scrolls, inner} = await page.evaluate(() => ({scrolls: document.documentElement.scrollWidth, inner: innerWidth}));
      assert.ok(scrolls <= inner, `${scrolls} > ${inner}`);
      const box = await page.locator('.methods-host').boundingBox();
      assert.ok(box.height <= height && box.height > 200, JSON.stringify(box));
      assert.ok((await inSight(page)).length >= Math.floor(box.height / 40));
    }, {width, height}));
  }
});
