// The page of `clrsampler serve` in a browser, as a user has it before them: for the tests against a made-up server and against a real one.
//   PLAYWRIGHT  folder of playwright-core      CHROMIUM  the browser
import assert from 'node:assert/strict';
import {createRequire} from 'node:module';
import {join} from 'node:path';
import {after, before} from 'node:test';

const {chromium} = createRequire(join(process.env.PLAYWRIGHT, 'x.js'))('playwright-core');
const [LEFT, RIGHT] = [50, 10];  // margins of the timeline

let browser;
before(async () => { browser = await chromium.launch({executablePath: process.env.CHROMIUM, args: ['--no-sandbox']}); });
after(async () => { await browser?.close(); });

/** A page of a server. Messages on its console, requests to others and breaks of its policy are errors at close(). */
export class Opened {
  static async at(url, {hash = '', width = 1280, height = 900, dark = false, clock = null, patience = 60_000, ...more} = {}) {
    const opened = new Opened();
    opened.complaints = [];
    opened.context = await browser.newContext({viewport: {width, height}, colorScheme: dark ? 'dark' : 'light', reducedMotion: 'reduce', timezoneId: 'UTC', ...more});
    const page = (opened.page = await opened.context.newPage());
    page.setDefaultTimeout(patience);
    if (clock !== null) await page.clock.install({time: clock});
    page.on('console', (message) => opened.complaints.push(`console: ${message.text()}`));
    page.on('pageerror', (error) => opened.complaints.push(`error: ${error.stack}`));
    page.on('dialog', (dialog) => { opened.complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    page.on('request', (request) => { if (new URL(request.url()).origin !== new URL(url).origin && !request.url().startsWith('data:')) opened.complaints.push(`request: ${request.url()}`); });
    await page.addInitScript(() => {
      window.violations = [];
      document.addEventListener('securitypolicyviolation', (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
    });
    await page.goto(url + hash);
    await page.locator('.head h1').waitFor();
    return opened;
  }

  async close() {
    const violations = await this.page.evaluate(() => window.violations);
    await this.context.close();
    assert.deepEqual([...this.complaints, ...violations], []);
  }

  /** The browser itself says on the console that an answer was an error. */
  forget() {
    this.complaints = this.complaints.filter((text) => !/Failed to load resource/.test(text));
  }

  /** Waits until no question is open and what came is drawn. */
  async settled() {
    await this.page.waitForFunction(() => !document.querySelector('[aria-busy="true"], .answer > [role="status"]:only-child:not(.empty-range)') && document.querySelector('.timeline-section'));
    await this.page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => requestAnimationFrame(resolve)); }));
  }

  /** A place on the timeline: fractions of its width and height. */
  async at(across, down = 0.3) {
    const box = await this.page.locator('.timeline').boundingBox();
    return [box.x + LEFT + across * (box.width - LEFT - RIGHT), box.y + down * box.height];
  }

  /** The place of a frame of the flame graph by its depth and how far from the left it is. */
  async atGraph(depth, across) {
    const box = await this.page.locator('.flame-graph').boundingBox();
    return [box.x + across * box.width, box.y + (depth + 0.5) * 20];
  }

  async drag(from, to) {
    await this.page.mouse.move(...(await this.at(from)));
    await this.page.mouse.down();
    await this.page.mouse.move(...(await this.at((from + to) / 2)));
    await this.page.mouse.move(...(await this.at(to)));
    await this.page.mouse.up();
    await this.settled();
  }

  async key(...keys) {
    for (const key of keys) await this.page.keyboard.press(key);
    await this.settled();
    // The address follows held keys a moment later: by a timer of the page, which is over when a longer one is that began later.
    await this.page.evaluate(() => new Promise((resolve) => { setTimeout(resolve, 150); }));
  }

  async state() {
    return Object.fromEntries(new URLSearchParams((await this.page.evaluate(() => location.hash)).slice(1)));
  }

  async range() {
    const {range} = await this.state();
    return range ? range.split('-').map(Number) : null;
  }

  chips() {
    return this.page.locator('.chosen .chip').allTextContents();
  }

  async legend() {
    const names = await this.page.locator('.timeline-legend .cut-end').allTextContents();
    const values = await this.page.locator('.timeline-legend .value').allTextContents();
    return names.map((name, i) => [name, values[i]]);
  }

  column(label, key) {
    return this.page.getByRole('table', {name: label}).locator('tbody tr').evaluateAll((rows, at) => rows.map((row) => row.children[at].textContent), key);
  }

  async tab(name) {
    await this.page.getByRole('tab', {name}).click();
    await this.settled();
  }

  details() {
    return this.page.locator('.details').textContent();
  }

  pixel(selector, across, down) {
    return this.page.locator(selector).evaluate((canvas, [x, y]) => {
      const one = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d');
      one.drawImage(canvas, -Math.floor(x * canvas.width), -Math.floor(y * canvas.height));
      return [...one.getImageData(0, 0, 1, 1).data].slice(0, 3);
    }, [across, down]);
  }
}
