// Asks the collector. Everything that this page can do, it does through /api/v1.

let changeToken = null;

/** An answer that is no success: problem details (RFC 9457). */
export class Problem extends Error {
  constructor(status, title, detail) {
    super(detail);
    [this.status, this.title] = [status, title];
  }
}

export function address(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") query.append(name, one);
    }
  }
  const text = query.toString();
  return `/api/v1${path}${text ? "?" + text : ""}`;
}

async function call(url, options) {
  let response;
  try {
    response = await fetch(url, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "No answer", "The collector does not answer. Look whether it runs, then try again.");
  }
  if (response.ok) return response;
  let body = {};
  try { body = await response.json(); } catch { /* not from the collector itself */ }
  throw new Problem(response.status, body.title ?? "Error", body.detail ?? `The answer is ${response.status}.`);
}

export async function get(path, parameters, signal) {
  return (await call(address(path, parameters), { signal })).json();
}

export async function text(path, limit) {
  const buffer = await (await call(address(path))).arrayBuffer();
  const shown = buffer.slice(0, limit);
  return { text: new TextDecoder().decode(shown), bytes: buffer.byteLength, isCut: buffer.byteLength > limit };
}

export async function post(path, body, { method = "POST", ...parameters } = {}) {
  const headers = { "Content-Type": "application/json" };
  if (changeToken) headers["X-Prism-Change"] = changeToken;
  const response = await call(address(path, parameters), { method, headers, body: JSON.stringify(body ?? {}) });
  return response.json();
}

export async function session(signal) {
  return keep(await get("/session", {}, signal));
}

export function keep(session) {
  changeToken = session.changeToken;
  return session;
}
