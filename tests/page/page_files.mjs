// Pages opened from disk in one browser for all tests of a file.
//   PLAYWRIGHT  folder of playwright-core      CHROMIUM  the browser
import assert from 'node:assert/strict';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {after, before} from 'node:test';
import {pathToFileURL} from 'node:url';

/** @returns {{browser: object, folder: string}}  filled in before the first test, and gone after the last */
export function browserOfTests() {
  const own = {browser: null, folder: null};
  before(async () => {
    const {chromium} = createRequire(join(process.env.PLAYWRIGHT, 'x.js'))('playwright-core');
    own.browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: ['--no-sandbox']});
    own.folder = mkdtempSync(join(tmpdir(), 'clrsampler-page-'));
  });
  after(async () => {
    await own.browser?.close();
    if (own.folder) rmSync(own.folder, {recursive: true, force: true});
  });
  return own;
}

/** A context without a network and without movement. */
export function newContext(own, {width = 1200, height = 800, dark = false} = {}) {
  return own.browser.newContext({viewport: {width, height}, colorScheme: dark ? 'dark' : 'light', offline: true, reducedMotion: 'reduce'});
}

/** A page, and the list that receives what it says on its console and what breaks in it. */
export async function newPage(context) {
  const page = await context.newPage(), complaints = [];
  page.setDefaultTimeout(60_000);
  page.on('console', (message) => complaints.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => complaints.push(`error: ${error.stack}`));
  return {page, complaints};
}

export const isDrawn = (page) => page.waitForFunction(() => performance.getEntriesByName('page-ready').length > 0 || document.querySelector('.failure'));

/** Waits until nothing in the page says that it is still being made: tables follow the picture. */
export const isSettled = (page) => page.waitForFunction(() => document.querySelector('[aria-busy="true"]') === null);

/** Opens a page, acts, and finds no complaints. */
export async function withFile(own, path, act, {hash = '', ...screen} = {}) {
  const context = await newContext(own, screen);
  const {page, complaints} = await newPage(context);
  await page.goto(pathToFileURL(path).href + hash);
  await isDrawn(page);
  await act(page);
  await context.close();
  assert.deepEqual(complaints, []);
}

export async function withPage(own, html, act, options) {
  const path = join(own.folder, 'page.html');
  writeFileSync(path, html);
  await withFile(own, path, act, options);
}
