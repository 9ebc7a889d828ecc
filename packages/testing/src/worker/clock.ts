/*
 * The clock of the worker, which a test moves. It runs inside workerd. The objects share the isolate of the worker, so one
 * variable is the clock of all.
 */

const MachineDate = Date
let aheadMs = 0

const now = (): number => MachineDate.now() + aheadMs

/** `Date`, whose present is that of the clock. */
globalThis.Date = new Proxy(MachineDate, {
  construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  get: (target, key, receiver) => (key === 'now' ? now : Reflect.get(target, key, receiver)),
})

const toMilliseconds = (time: number | Date): number => (typeof time === 'number' ? time : time.getTime())

/** The alarms of an object are times of the clock. The runtime needs times of the machine. */
const translateAlarms = (storage: DurableObjectStorage): void => {
  const { setAlarm, getAlarm } = storage
  storage.setAlarm = (time, options) => setAlarm.call(storage, toMilliseconds(time) - aheadMs, options)
  storage.getAlarm = async options => {
    const time = await getAlarm.call(storage, options)
    return time === null ? null : time + aheadMs
  }
}

/** The methods of an object that a move of the clock needs. */
interface ObjectMethods {
  fetch(request: Request): Promise<Response>
  webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): Promise<void>
  readMachineClock(): number
}

type ObjectClass<Env> = new (ctx: DurableObjectState, env: Env) => ObjectMethods

/** By the id of an object: what a waiter sends to ask it for its state. */
const waitMessages = new Map<string, string>()
/** The objects that this isolate has run. */
const knownObjects = new Set<string>()

/** The class with a clock that can be moved. `toWaitMessage` converts the URL of a wait. */
export const withMovableClock = <Env>(Base: ObjectClass<Env>, toWaitMessage: (url: string) => string) => {
  class MovableClockObject extends Base {
    readonly #ctx: DurableObjectState

    constructor(ctx: DurableObjectState, env: Env) {
      translateAlarms(ctx.storage)
      super(ctx, env)
      this.#ctx = ctx
      knownObjects.add(ctx.id.toString())
    }

    override async fetch(request: Request): Promise<Response> {
      waitMessages.set(this.#ctx.id.toString(), toWaitMessage(request.url))
      return super.fetch(request)
    }

    /** The witness compares it with `Date`. */
    override readMachineClock(): number {
      return super.readMachineClock() + aheadMs
    }

    /** The clock has moved by `ms`: a due alarm fires, and an expired lease ends its waits. */
    async onClockMoved(ms: number): Promise<void> {
      const { storage } = this.#ctx
      const alarm = await storage.getAlarm()
      // It was set for the time of the machine that the clock had then.
      if (alarm !== null) await storage.setAlarm(alarm - ms)
      const message = waitMessages.get(this.#ctx.id.toString())
      if (message === undefined) return
      for (const socket of this.#ctx.getWebSockets()) await this.webSocketMessage(socket, message)
    }
  }
  return MovableClockObject
}

interface ClockEnv {
  readonly LEASES: DurableObjectNamespace
  /** A path that no client can guess. */
  readonly TEST_CLOCK_PATH: string
}

/** The worker with one more path, which sets the clock: `POST TEST_CLOCK_PATH?ahead=MILLISECONDS`. */
export const withClockPath = <Env>(worker: {
  fetch: (request: Request, env: Env) => Response | Promise<Response>
}) => ({
  async fetch(request: Request, env: Env & ClockEnv): Promise<Response> {
    const [path, query] = request.url.slice(request.url.indexOf('/', 'http://'.length)).split('?ahead=', 2)
    if (path !== env.TEST_CLOCK_PATH) return worker.fetch(request, env)
    const previousMs = aheadMs
    aheadMs = Number(query)
    for (const id of knownObjects) {
      const object: unknown = env.LEASES.get(env.LEASES.idFromString(id))
      await (object as { onClockMoved: (ms: number) => Promise<void> }).onClockMoved(aheadMs - previousMs)
    }
    return new Response(null, { status: 204 })
  },
})
