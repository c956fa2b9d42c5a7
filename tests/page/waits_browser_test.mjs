// Pages of waits in a browser: what somebody who has never seen the tool finds on them. Run by html_page_test and waits_page_live_test, which say
// in the environment
//   PLAYWRIGHT  folder of playwright-core      CHROMIUM  the browser
//   WAIT_PAGES  JSON: pages that the program wrote of real programs, {lock, starved, blocking}; may be missing
//   PICTURES    folder that receives the pictures of docs/waits.md; may be missing
import assert from 'node:assert/strict';
import {join} from 'node:path';
import {describe, test} from 'node:test';
import {pageOf, waitingShop} from './page_data.mjs';
import * as files from './page_files.mjs';

const PAGES = JSON.parse(process.env.WAIT_PAGES ?? '{}');

const own = files.browserOfTests();
const SCREEN = {width: 1200, height: 740};
const withFile = (path, act) => files.withFile(own, path, act, SCREEN);
const withPage = (html, act) => files.withPage(own, html, act, SCREEN);

const textsOf = async (page, selector) => (await page.locator(selector).allTextContents()).map((text) => text.trim());
const shoot = (page, name) => (process.env.PICTURES ? page.screenshot({path: join(process.env.PICTURES, `${name}.png`)}) : undefined);

/** [kind, method, [who ended it]] of each place. */
async function sites(page) {
  const places = await page.locator('.waits .sites > li').all();
  return Promise.all(places.map(async (place) => [
    await place.locator('.kind').textContent(), await place.locator('.site button').textContent(), await place.locator('.waker').allTextContents()]));
}

describe('a made-up recording', () => {
  const account = {thread_pool: 'the thread pool is starved: 24 of 27 workers wait'};

  test('opens with what threads wait for, and who ended it', () => withPage(pageOf(waitingShop().data()), async (page) => {
    assert.deepEqual(await textsOf(page, '.tabs [aria-selected=true]'), ['Waits']);
    assert.deepEqual(await textsOf(page, '.waits h3'), ['Running and waiting', 'Threads wait for each other', 'Other waits']);
    assert.deepEqual(await textsOf(page, '.waits .kinds .link'), ['task wait', 'idle', 'monitor', 'sleep', 'running', 'runnable', 'waits shorter than 1ms']);
    assert.deepEqual(await sites(page), [
      ['task wait', 'Shop.Answer', ['ended by thread .NET TP Worker in Shop.Look, 9.00 s']],
      ['monitor', 'Shop.Cart.Add', ['ended by thread slow one in Shop.Report.Write, 4.00 s', 'ended by an interrupt, 500 ms']],
      ['sleep', 'Shop.Report.Write', []],
    ]);
    assert.match(await page.locator('.facts').textContent(), /where threads ran, and where they waited/);
    assert.equal(await page.locator('.verdict').count(), 0);
  }));

  test('a click marks a kind or a method in the picture', () => withPage(pageOf(waitingShop().data()), async (page) => {
    await page.getByRole('button', {name: 'monitor', exact: true}).click();
    assert.deepEqual(await textsOf(page, '.chip'), ['marked: [monitor]×']);
    await page.locator('.sites').getByRole('button', {name: 'Shop.Cart.Add', exact: true}).click();
    assert.deepEqual(await textsOf(page, '.chip'), ['marked: Cart.Add×']);
  }));

  test('who ended the waits of a method, as a flame graph', () => withPage(pageOf(waitingShop().data()), async (page) => {
    await page.getByRole('button', {name: 'Wakers of waits in Shop.Cart.Add'}).click();
    assert.deepEqual(await textsOf(page, '.chip'), ['wakers of waits in: Cart.Add×']);
    assert.match(await page.locator('.details').textContent(), /wakers of waits in Cart\.Add.*4\.50 s/);
    await page.locator('.flame-graph').focus();
    const path = [];
    for (let depth = 0; depth < 4; ++depth) {
      await page.keyboard.press('ArrowDown');
      path.push(await page.locator('.details-name').textContent());
    }
    assert.deepEqual(path, ['[woken by thread slow one]', 'Shop.Report.Loop', 'Shop.Report.Write', 'System.Threading.Monitor.Exit']);
    await page.getByRole('button', {name: 'Take back: wakers of waits in'}).click();
    assert.deepEqual(await textsOf(page, '.chip'), []);
  }));

  test('of one thread alone', () => withPage(pageOf(waitingShop().data()), async (page) => {
    await page.getByRole('combobox', {name: 'Thread'}).selectOption({index: 2});
    const threads = (await sites(page)).map(([, method]) => method);
    assert.ok(threads.length < 3, threads);
  }));

  test('a pool that is not judged is neither good nor poor', () => withPage(pageOf(waitingShop().data({account: {thread_pool: 'whether the thread pool starves is not known'}})), async (page) => {
    assert.equal(await page.locator('.verdict').count(), 1);
    assert.equal(await page.locator('.verdict.poor, .verdict.good').count(), 0);
  }));

  test('the verdict on the thread pool stands first', () => withPage(pageOf(waitingShop().data({account})), async (page) => {
    assert.deepEqual(await textsOf(page, '.waits .verdict.poor'), ['the thread pool is starved: 24 of 27 workers wait']);
  }));

  test('a profile of CPU time has no such section', async () => {
    const builder = waitingShop();
    builder.about.view = 'cpu';
    await withPage(pageOf(builder.data()), async (page) => assert.ok(!(await textsOf(page, '.tabs button')).includes('Waits')));
  });
});

// The steps that docs/waits.md tells people to take, on pages of real programs.
describe('real programs', {skip: PAGES.lock ? false : 'WAIT_PAGES is not set'}, () => {
  test('the lock: its place, who holds it, and what that thread does meanwhile', () => withFile(PAGES.lock, async (page) => {
    const locks = (await sites(page)).filter(([kind]) => kind === 'monitor');
    assert.deepEqual(locks.map(([, method]) => method).sort(), ['Waits.Program.EntersFirst', 'Waits.Program.EntersSecond']);
    for (const [, method, [first]] of locks) {
      assert.match(first, method.endsWith('First') ? /^ended by thread owner two in Waits\.Program\.SecondOwner, / : /^ended by thread owner one in Waits\.Program\.FirstOwner, /);
    }
    await page.locator('.waits .sites > li', {hasText: 'Waits.Program.EntersSecond'}).first().scrollIntoViewIfNeeded();
    await shoot(page, 'waits-lock');
    await page.getByRole('button', {name: 'Wakers of waits in Waits.Program.EntersFirst'}).click();
    assert.match(await page.locator('.details').textContent(), /wakers of waits in/);
    await page.locator('.flame-graph').focus();
    await page.keyboard.press('ArrowDown');
    assert.equal(await page.locator('.details-name').textContent(), '[woken by thread owner two]');
    await shoot(page, 'waits-wakers');
  }));

  test('the starvation: the verdict and its method', () => withFile(PAGES.starved, async (page) => {
    const [verdict] = await textsOf(page, '.waits .verdict.poor');
    assert.match(verdict, /^the thread pool is starved: \d+ of \d+ workers wait, \d+ of them in a task wait below Waits\.Program\.AnswersRequest; /);
    await shoot(page, 'waits-starved');
  }));

  test('the call that is sync over async: the method that waits for a task, and the one that completes it', () => withFile(PAGES.blocking, async (page) => {
    assert.match((await textsOf(page, '.waits .verdict.good'))[0], /^the thread pool is not starved: /);
    const [kind, method, wakers] = (await sites(page)).find(([, name]) => name === 'Waits.Program.AnswersRequest');
    assert.equal(kind, 'task wait');
    assert.match(wakers[0], /^ended by thread \.NET TP Worker in Waits\.Program\.Looks/);
    await page.getByRole('button', {name: `Stacks that wait in ${method}`}).click();
    assert.deepEqual(await textsOf(page, '.chip'), ['only stacks with Program.AnswersRequest×']);
    await shoot(page, 'waits-sync-over-async');
  }));
});
