// Pages of the made-up server, as its tests begin and end.
import {FakeServe} from './fake_serve.mjs';
import {Opened} from './serve_opened.mjs';

export const NOW = Date.parse('2026-11-22T14:05:00Z');

/** options: of the server; pageOptions: of the page. */
export async function withServer(options, act, pageOptions = {}) {
  const fake = new FakeServe({now: NOW, ...options});
  const url = await fake.listen();
  try {
    const opened = await Opened.at(url, pageOptions);
    await opened.settled();
    await act(opened, fake);
    await opened.close();
  } finally {
    await fake.close();
  }
}

/** Parameters of the requests to a path. */
export const asked = (fake, path) => fake.requests.filter((request) => request.startsWith(path)).map((request) => Object.fromEntries(new URL(request, 'http://x').searchParams));
