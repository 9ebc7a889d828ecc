/**
 * The witness with counters of everything that Cloudflare bills, and with a clock that can run faster or slower than real
 * time. It replaces functions of the runtime, so the witness itself is the unchanged code. JavaScript, because the types of
 * the runtime and those of Node exclude each other.
 */
import worker, { LeaseObject as Witness } from 'lease-witness/src/index.ts'

const zero = () => ({
  workerRequests: 0,
  /** RPC calls and requests to objects, without alarms. */
  objectRequests: 0,
  webSocketMessages: 0,
  /** Real milliseconds in which an object handled an event and so could not sleep. */
  objectMs: 0,
  rowsRead: 0,
  rowsWritten: 0,
  kvReads: 0,
  kvWrites: 0,
  kvLists: 0,
  logLines: 0,
  /** Of the copies in KV alone: alarms, and the rows that they write, with those of the alarms themselves. */
  alarms: 0,
  copyRows: 0,
})
let counts = zero()

const realNow = Date.now
const realSetTimeout = globalThis.setTimeout
let speed = 1
/** The moment at which the clock got its speed, in real time and on the clock. */
let anchor

const setSpeed = value => {
  const real = realNow()
  anchor = { real, shown: anchor ? Date.now() : real }
  speed = value
}
Date.now = () => (anchor ? Math.floor(anchor.shown + (realNow() - anchor.real) * speed) : realNow())
globalThis.setTimeout = (callback, ms = 0, ...args) => realSetTimeout(callback, ms / speed, ...args)
const toRealTime = time => (anchor ? anchor.real + (time - anchor.shown) / speed : time)

// biome-ignore-start lint/suspicious/noConsole: the Workers runtime collects logs from the console only
const writeLine = console.log
console.log = (...parts) => {
  counts.logLines += 1
  writeLine(...parts)
}
// biome-ignore-end lint/suspicious/noConsole: see above

/** Replaces a method of a class of the runtime once, for all its instances. */
const patched = new Set()
const patch = (instance, name, wrap) => {
  const prototype = Object.getPrototypeOf(instance)
  const key = `${prototype.constructor.name}.${name}`
  if (patched.has(key)) return
  patched.add(key)
  const original = prototype[name]
  prototype[name] = function (...args) {
    return wrap.call(this, original, args)
  }
}

const patchKv = kv => {
  const countReads = function (original, args) {
    counts.kvReads += Array.isArray(args[0]) ? args[0].length : 1
    return original.apply(this, args)
  }
  patch(kv, 'get', countReads)
  patch(kv, 'getWithMetadata', countReads)
  for (const name of ['put', 'delete'])
    patch(kv, name, function (original, args) {
      counts.kvWrites += 1
      return original.apply(this, args)
    })
  patch(kv, 'list', function (original, args) {
    counts.kvLists += 1
    return original.apply(this, args)
  })
}

/** The storages of the objects whose alarm runs. */
const copying = new WeakSet()

const patchStorage = storage => {
  for (const name of ['get', 'list'])
    patch(storage.kv, name, function (original, args) {
      counts.rowsRead += 1
      return original.apply(this, args)
    })
  for (const name of ['put', 'delete'])
    patch(storage.kv, name, function (original, args) {
      if (copying.has(this)) counts.copyRows += 1
      else counts.rowsWritten += 1
      return original.apply(this, args)
    })
  patch(storage, 'setAlarm', function (original, [time, ...rest]) {
    counts.copyRows += 1
    return original.call(this, toRealTime(Number(time)), ...rest)
  })
}

const EVENTS = { alarm: 'alarms', webSocketMessage: 'webSocketMessages', webSocketClose: null, webSocketError: null }

export class LeaseObject extends Witness {
  #activeEvents = 0
  #activeSince = 0

  constructor(ctx, env) {
    super(ctx, env)
    patchStorage(ctx.storage)
    patchKv(env.OPENOVA_LEASES)
  }

  /** An event lasts until the storage has confirmed its writes. */
  async countEvent(name, handle) {
    const counter = name in EVENTS ? EVENTS[name] : 'objectRequests'
    if (counter) counts[counter] += 1
    if (this.#activeEvents === 0) this.#activeSince = performance.now()
    this.#activeEvents += 1
    const { storage } = this.ctx
    if (name === 'alarm') copying.add(storage.kv)
    const end = () => {
      this.#activeEvents -= 1
      if (this.#activeEvents === 0) counts.objectMs += performance.now() - this.#activeSince
    }
    try {
      return await handle()
    } finally {
      if (name === 'alarm') copying.delete(storage.kv)
      storage.sync().then(end, end)
    }
  }

  // Without it, the end of a WebSocket would be handled without an event that can be timed.
  webSocketClose() {}
}

for (const name of new Set([...Object.getOwnPropertyNames(Witness.prototype), 'webSocketClose'])) {
  const method = LeaseObject.prototype[name]
  if (name === 'constructor' || typeof method !== 'function') continue
  LeaseObject.prototype[name] = function (...args) {
    return this.countEvent(name, () => method.apply(this, args))
  }
}

const CONTROL = '/bench/counts'

export default {
  fetch(request, env, ctx) {
    const url = new URL(request.url)
    if (url.pathname === CONTROL) {
      const response = Response.json({ ...counts, now: Date.now() })
      if (request.method === 'DELETE') {
        setSpeed(Number(url.searchParams.get('speed') ?? speed))
        counts = zero()
      }
      return response
    }
    counts.workerRequests += 1
    return worker.fetch(request, env, ctx)
  },
}
