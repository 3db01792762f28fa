// Requests to the server: JSON in, JSON out; an episode is streamed as one line of JSON per event.

export class RequestError extends Error {
  constructor(detail, status) {
    super(detail);
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
    throw new Unreachable("The server does not respond.");
  }
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  throw new RequestError(answer.detail ?? `The server responded with status ${response.status}.`, response.status);
}

export async function fetchJson(path, body, signal) {
  return (await send(path, body, signal)).json();
}

export async function fetchBlob(path, body) {
  return (await send(path, body)).blob();
}

export async function* fetchLines(path, body, signal) {
  const reader = (await send(path, body, signal)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}

// Wraps `work(signal, ...)` so that a newer call aborts the older one: only the visitor's last choice counts.
export function latest(work) {
  let running = null;
  const call = async (...args) => {
    running?.abort();
    const mine = (running = new AbortController());
    try {
      return await work(mine.signal, ...args);
    } catch (error) {
      if (!mine.signal.aborted) throw error;
    }
  };
  call.abort = () => running?.abort();
  return call;
}

export const taskImage = (index, part) => `/api/tasks/${index}/${part}.png`;
