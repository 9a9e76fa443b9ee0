// A user with a browser: headless Chromium, controlled through a pipe with the DevTools protocol.
//
//   node drive.mjs PLAN
//
// PLAN is a JSON file:
//   chromium, profile     the program, and a folder for it alone
//   url                   where to begin
//   end                   what the address of the last page begins with
//   user, password        what is typed where a page asks for it
//   consent               false to refuse where a page asks for consent
//   before                addresses to visit before, each with a name
//   pictures, name        a folder for pictures of the pages, and what their names begin with
//
// It prints a line for each page, with its kind, its title and its text, and never an address with its parameters.
// It ends with 1 when it meets a page that it does not know, and by itself after two minutes.

import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const MAX_PAGES = 10;
const LIMIT_MS = 120_000;
const POLL_MS = 50;
const plan = JSON.parse(readFileSync(process.argv[2], 'utf8'));

/// Chromium's DevTools protocol: messages of JSON that end with a zero byte, on the descriptors 3 and 4.
class Chromium {
  #child;
  #session;
  #next = 1;
  #pending = new Map();
  #waiting = [];

  static async start() {
    const browser = new Chromium();
    const options = [
      '--headless=new', '--remote-debugging-pipe', `--user-data-dir=${plan.profile}`, '--no-first-run',
      '--disable-gpu', '--disable-dev-shm-usage', '--disable-extensions', '--disable-component-update',
      '--disable-background-networking', '--disable-sync', '--hide-scrollbars',
      // Nothing but this machine is reached, whatever a page names.
      '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost',
    ];
    if (process.getuid() === 0) {
      options.push('--no-sandbox');
    }
    browser.#child = spawn(plan.chromium, options, { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
    browser.#child.on('exit', (code) => fail(`Chromium ended with ${code}`));
    browser.#read(browser.#child.stdio[4]);
    const { targetInfos } = await browser.send('Target.getTargets');
    const { targetId } = targetInfos.find(({ type }) => type === 'page') ??
      await browser.send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await browser.send('Target.attachToTarget', { targetId, flatten: true });
    browser.#session = sessionId;
    await browser.send('Page.enable');
    await browser.send('Page.setLifecycleEventsEnabled', { enabled: true });
    return browser;
  }

  send(method, params = {}) {
    const id = this.#next++;
    const message = { id, method, params, ...(this.#session && { sessionId: this.#session }) };
    this.#child.stdio[3].write(`${JSON.stringify(message)}\0`);
    return new Promise((resolve, reject) => this.#pending.set(id, { resolve, reject }));
  }

  /// The next event of this name.
  event(name) {
    return new Promise((resolve) => this.#waiting.push({ name, resolve }));
  }

  /// Does what leads to another page, and waits until that is there.
  async navigated(act) {
    const loaded = this.event('Page.loadEventFired');
    await act();
    await loaded;
    await this.evaluate('document.fonts.ready.then(() => true)');
  }

  /// Does what leads to a page that continues elsewhere by itself, and waits until that other page is there.
  async continued(act) {
    const before = JSON.stringify(await this.evaluate('location.href'));
    const arrived = `document.readyState === 'complete' && location.href !== ${before} &&
      document.querySelector('meta[http-equiv=refresh]') === null`;
    await act();
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      // No page can be read while one replaces another.
      if (await this.evaluate(arrived).catch(() => false)) {
        return;
      }
    }
  }

  async evaluate(expression) {
    const { result, exceptionDetails } =
      await this.send('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) {
      throw new Error(`the page cannot be read: ${exceptionDetails.text}`);
    }
    return result.value;
  }

  /// Moves the mouse to the first element of this selector, and presses its button.
  async click(selector) {
    const at = await this.evaluate(`(() => {
      const element = document.querySelector(${JSON.stringify(selector)});
      element.scrollIntoView({ block: 'center' });
      const { x, y, width, height } = element.getBoundingClientRect();
      return { x: x + width / 2, y: y + height / 2 };
    })()`);
    for (const type of ['mousePressed', 'mouseReleased']) {
      await this.send('Input.dispatchMouseEvent', { type, ...at, button: 'left', clickCount: 1 });
    }
  }

  async type(selector, text) {
    await this.evaluate(`document.querySelector(${JSON.stringify(selector)}).select()`);
    await this.click(selector);
    await this.evaluate(`document.querySelector(${JSON.stringify(selector)}).select()`);
    await this.send('Input.insertText', { text });
  }

  /// Pictures of the page: as it is, in the dark, and on a narrow screen.
  async pictures(name) {
    const shapes = [
      ['', 'light', 1000, 720],
      ['-dark', 'dark', 1000, 720],
      ['-narrow', 'light', 320, 640],
    ];
    for (const [suffix, value, width, height] of shapes) {
      await this.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
      await this.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
      const { data } = await this.send('Page.captureScreenshot', { format: 'png' });
      writeFileSync(join(plan.pictures, `${plan.name}-${name}${suffix}.png`), Buffer.from(data, 'base64'));
    }
    await this.send('Emulation.clearDeviceMetricsOverride');
    await this.send('Emulation.setEmulatedMedia', { features: [] });
  }

  async end() {
    this.#child.removeAllListeners('exit');
    const ended = new Promise((resolve) => this.#child.once('exit', resolve));
    this.#child.kill();
    await ended;
  }

  #read(stream) {
    let rest = '';
    stream.setEncoding('utf8').on('data', (text) => {
      const messages = (rest + text).split('\0');
      rest = messages.pop();
      messages.forEach((message) => this.#take(JSON.parse(message)));
    });
  }

  #take({ id, method, result, error }) {
    if (id !== undefined) {
      const { resolve, reject } = this.#pending.get(id);
      this.#pending.delete(id);
      error ? reject(new Error(error.message)) : resolve(result);
      return;
    }
    const waiting = this.#waiting;
    this.#waiting = waiting.filter((one) => one.name !== method);
    waiting.filter((one) => one.name === method).forEach((one) => one.resolve());
  }
}

// The current page and the user's action on it.
const KINDS = [
  {
    // The broker's, whose button names the provider.
    kind: 'broker',
    is: ['input[name=request]', 'button[name=decision]'],
    act: (browser) => browser.continued(() =>
      browser.click(`button[name=decision]${plan.consent ? '[value^="allow:"]' : '[value=deny]'}`)),
  },
  {
    kind: 'login',
    is: ['input[name=password]'],
    act: async (browser) => {
      await browser.type('input[name=username], input[name=login]', plan.user);
      await browser.type('input[name=password]', plan.password);
      await browser.navigated(() => browser.click('[type=submit]'));
    },
  },
  {
    // oidc-provider's, whose refusal is a link.
    kind: 'consent',
    is: ['input[name=prompt][value=consent]'],
    act: (browser) => browser.navigated(() => browser.click(plan.consent ? '[type=submit]' : 'a[href*=abort]')),
  },
  {
    // Keycloak's.
    kind: 'consent',
    is: ['[name=accept]'],
    act: (browser) => browser.navigated(() => browser.click(plan.consent ? '[name=accept]' : '[name=cancel]')),
  },
  {
    // The development server's, which asks for the name on the same page.
    kind: 'consent',
    is: ['input[name=user]', 'button[value=allow]'],
    act: async (browser) => {
      await browser.type('input[name=user]', plan.user);
      await browser.navigated(() => browser.click(plan.consent ? 'button[value=allow]' : 'button[value=deny]'));
    },
  },
];

async function visitPages(browser) {
  await browser.navigated(() => browser.send('Page.navigate', { url: plan.url }));
  for (let page = 1; page <= MAX_PAGES; page++) {
    const ended = (await browser.evaluate('location.href')).startsWith(plan.end);
    const kind = ended ? undefined : await kindOf(browser);
    await told(browser, ended ? 'end' : kind?.kind ?? 'unknown', page);
    if (ended) {
      return;
    }
    if (kind === undefined) {
      throw new Error('this page is neither a login nor a consent page');
    }
    await kind.act(browser);
  }
  throw new Error(`there was no end within ${MAX_PAGES} pages`);
}

async function kindOf(browser) {
  for (const kind of KINDS) {
    const selectors = JSON.stringify(kind.is);
    if (await browser.evaluate(`${selectors}.every((one) => document.querySelector(one) !== null)`)) {
      return kind;
    }
  }
  return undefined;
}

async function told(browser, kind, page) {
  const [title, text] = await browser.evaluate('[document.title, document.body?.innerText ?? ""]');
  console.log(JSON.stringify({ kind, title, text: text.replaceAll(/\s+/gu, ' ').trim().slice(0, 1000) }));
  await browser.pictures(`${page}-${kind}`);
}

function fail(reason) {
  console.log(JSON.stringify({ kind: 'failed', title: '', text: reason }));
  process.exit(1);
}

setTimeout(() => fail(`there was no end within ${LIMIT_MS / 1000} s`), LIMIT_MS).unref();
mkdirSync(plan.pictures, { recursive: true });
const browser = await Chromium.start();
process.on('exit', () => browser.end());
try {
  for (const { name, url } of plan.before) {
    await browser.navigated(() => browser.send('Page.navigate', { url }));
    await told(browser, name, 0);
  }
  await visitPages(browser);
} catch (error) {
  fail(error.message);
}
await browser.end();
process.exit(0);
