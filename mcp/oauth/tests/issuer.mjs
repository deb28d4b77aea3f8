// A token issuer for tests, in a separate process: `node issuer.mjs` prints its address and serves until its
// input ends. It creates its keys at the start, serves discovery and JWKS, mints any requested token, valid or
// invalid, and fails on command. It needs only Node 20.

import crypto from "node:crypto";
import http from "node:http";
import { promisify } from "node:util";

const generate = promisify(crypto.generateKeyPair);

const TYPES = {
  rsa: { generate: ["rsa", { modulusLength: 2048 }], alg: "RS256" },
  "rsa-1024": { generate: ["rsa", { modulusLength: 1024 }], alg: "RS256" },
  ec: { generate: ["ec", { namedCurve: "P-256" }], alg: "ES256" },
  "ec-384": { generate: ["ec", { namedCurve: "P-384" }], alg: "ES384" },
  ed: { generate: ["ed25519", {}], alg: "EdDSA" },
};

/** All keys by their kid; those that were removed still sign. */
const keys = new Map();
/** Documents at paths of their own: `{ "/path": { status, json } }`. */
const documents = new Map();
const counts = { jwks: 0, discovery: 0, bytes: 0 };
/** How JWKS fails, and how long it takes. */
let fault = null;
let delay = 0;
let discovery = ["openid-configuration", "oauth-authorization-server"];
let claimed = null;

async function addKey({ kid, type = "rsa", jwk = {} }) {
  const pair = await generate(...TYPES[type].generate);
  keys.set(kid, { type, pair, jwk, published: true });
}

function publicKeys() {
  const published = [...keys].filter(([, key]) => key.published);
  return published.map(([kid, key]) =>
    overridden({ ...key.pair.publicKey.export({ format: "jwk" }), kid, use: "sig" }, key.jwk),
  );
}

/** `null` takes a member away. */
function overridden(object, changes) {
  const merged = Object.entries({ ...object, ...changes });
  return Object.fromEntries(merged.filter(([, value]) => value !== null));
}

function sign(alg, message, key) {
  const bytes = Buffer.from(message);
  if (alg === "EdDSA") return crypto.sign(null, bytes, key);
  const hash = `sha${alg.slice(2)}`;
  if (alg.startsWith("ES")) return crypto.sign(hash, bytes, { key, dsaEncoding: "ieee-p1363" });
  if (alg.startsWith("PS")) {
    const padding = crypto.constants.RSA_PKCS1_PSS_PADDING;
    return crypto.sign(hash, bytes, { key, padding, saltLength: crypto.constants.RSA_PSS_SALTLEN_DIGEST });
  }
  return crypto.sign(hash, bytes, key);
}

/** Mints `{ key, header, claims, trick }`. The two objects override the defaults of a valid token. */
async function mint({ key: kid = "rsa-1", header = {}, claims = {}, trick = null }) {
  const { type, pair } = keys.get(kid);
  const now = Math.floor(Date.now() / 1000);
  const good = { iss: base, sub: "alice", aud: "https://api.example/mcp", iat: now, exp: now + 600 };
  const head = overridden({ typ: "at+jwt", alg: TYPES[type].alg, kid }, header);
  const parts = [head, overridden(good, claims)].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
  const message = parts.join(".");
  const signature = await {
    // Signed with the algorithm and the key in the header.
    null: () => sign(head.alg, message, pair.privateKey),
    // Not signed at all.
    none: () => Buffer.alloc(0),
    // Signed with the public key as a shared secret.
    hmac: () => {
      const secret = pair.publicKey.export({ type: "spki", format: "pem" });
      return crypto.createHmac("sha256", secret).update(message).digest();
    },
    // Signed by an unknown key of the same kind.
    stranger: async () => sign(head.alg, message, (await generate(...TYPES[type].generate)).privateKey),
    // A valid signature of other claims.
    swapped: () => sign(head.alg, `${parts[0]}.e30`, pair.privateKey),
  }[trick]();
  return `${message}.${signature.toString("base64url")}`;
}

async function control(orders) {
  for (const key of orders.add ?? []) await addKey(key);
  for (const kid of orders.remove ?? []) keys.get(kid).published = false;
  for (const [path, document] of Object.entries(orders.documents ?? {})) documents.set(path, document);
  if ("fault" in orders) fault = orders.fault;
  if ("delay" in orders) delay = orders.delay;
  if ("discovery" in orders) discovery = orders.discovery;
  if ("claimed" in orders) claimed = orders.claimed;
  return {};
}

const FAULTS = {
  500: (response) => response.writeHead(500).end("broken"),
  garbage: (response) => response.writeHead(200).end("<html>not keys</html>"),
  empty: (response) => json(response, { keys: [] }),
  // Keys that cannot verify a token.
  useless: (response) => json(response, { keys: [{ kty: "oct", k: "c2VjcmV0" }, { ...publicKeys()[0], use: "enc" }] }),
  // No response.
  hang: () => {},
  // Valid keys beyond a limit.
  huge: (response) => json(response, { keys: publicKeys(), padding: "x".repeat(2 << 20) }),
  many: (response) => json(response, { keys: [...publicKeys(), ...Array(1001).fill({ kty: "unknown" })] }),
  // An endless body. `counts.bytes` is the number of bytes sent.
  endless: (response) => {
    const piece = Buffer.alloc(64 << 10, " ");
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write(piece)) counts.bytes += piece.length;
    };
    response.on("drain", more);
    more();
  },
  // One byte at a time.
  drip: (response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write(" "), 20);
    response.on("close", () => clearInterval(timer));
  },
  cut: (response) => {
    response.writeHead(200, { "content-length": 1000 }).write("{");
    setTimeout(() => response.destroy(), 20);
  },
};

function answerKeys(request, response) {
  counts.jwks += 1;
  if (fault?.startsWith("redirect ")) {
    return response.writeHead(302, { location: fault.slice("redirect ".length) }).end();
  }
  if (fault) return FAULTS[fault](response);
  return json(response, { keys: publicKeys() });
}

function json(response, value, status = 200) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

async function read(request) {
  let text = "";
  for await (const piece of request) text += piece;
  return JSON.parse(text || "{}");
}

async function answer(request, response) {
  const path = new URL(request.url, base).pathname;
  const known = documents.get(path);
  if (known) {
    if (path.includes("/.well-known/")) counts.discovery += 1;
    if (path.endsWith("/keys")) counts.jwks += 1;
    return json(response, known.json, known.status);
  }
  if (path === "/token") return json(response, { token: await mint(await read(request)) });
  if (path === "/control") return json(response, await control(await read(request)));
  if (path === "/counts") return json(response, counts);
  // The target of redirects within the issuer.
  if (path === "/moved") return json(response, { keys: publicKeys() });
  if (path === "/jwks") return setTimeout(() => answerKeys(request, response), delay);
  if (discovery.some((name) => path.startsWith("/.well-known/") && path.split("/")[2] === name)) {
    counts.discovery += 1;
    return json(response, { issuer: claimed ?? base, jwks_uri: `${base}/jwks` });
  }
  return json(response, { error: "not found" }, 404);
}

await Promise.all(["rsa", "ec", "ed"].map((type) => addKey({ kid: `${type}-1`, type })));
const server = http.createServer((request, response) => {
  answer(request, response).catch((error) => json(response, { error: String(error) }, 400));
});
server.listen(0, "127.0.0.1");
await new Promise((done) => server.once("listening", done));
const base = `http://127.0.0.1:${server.address().port}`;
console.log(base);
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
