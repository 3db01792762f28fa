// What the page asks of the server: JSON in, JSON out, and for an episode one line of JSON after the other.

export class Refusal extends Error {
  constructor(reason, status) {
    super(reason);
    this.status = status;
  }
}

export class Unreachable extends Error {}

async function send(path, body, signal) {
  const options = { signal, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers = { "content-type": "application/json" };
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("The server does not answer.");
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  throw new Refusal(answer.reason ?? `The server answered ${response.status}.`, response.status);
}

export async function ask(path, body, signal) {
  return (await send(path, body, signal)).json();
}

export async function* lines(path, body, signal) {
  const reader = (await send(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) yield JSON.parse(part);
  }
}

// Runs `work(signal)` so that a newer call ends the older one: only the last choice of a visitor counts.
export function latest(work) {
  let running = null;
  return async (...given) => {
    running?.abort();
    const mine = (running = new AbortController());
    try {
      return await work(mine.signal, ...given);
    } catch (error) {
      if (!mine.signal.aborted) throw error;
    }
  };
}

export const picture = (index, part) => `/api/task/${index}/${part}.png`;
