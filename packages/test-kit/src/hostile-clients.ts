import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { fileURLToPath } from 'node:url'

// Clients that send something and then neither read nor send, in a process of their own, so that they do not delay the test.

export interface Attack {
  readonly port: number
  readonly bytes: Buffer
  readonly connections: number
  /** How many client addresses the connections have. */
  readonly addresses: number
  /** Absent: the loopback interface. */
  readonly network?: ShapedNetwork | undefined
}

/** A network namespace that reaches this machine by a link of limited bandwidth. */
export interface ShapedNetwork extends Disposable {
  readonly name: string
}

const LINK = '10.77.0'
const MAX_ADDRESSES = 100

/** Needs root, and `ip` and `tc`: otherwise it throws. */
export const createShapedNetwork = (megabitsPerSecond: number): ShapedNetwork => {
  const name = `pool-${process.pid}`
  const [here, there] = [`pool-a${process.pid}`, `pool-b${process.pid}`]
  const run = (command: string) => execFileSync('/bin/sh', ['-ec', command], { stdio: 'pipe' })
  const shape = (link: string) =>
    `tc qdisc add dev ${link} root tbf rate ${megabitsPerSecond}mbit burst 1mb latency 50ms`
  run(`ip netns add ${name}; ip link add ${here} type veth peer name ${there} netns ${name}
    ip addr add ${LINK}.1/24 dev ${here}; ip link set ${here} up; ${shape(here)}
    for i in $(seq 2 ${MAX_ADDRESSES + 1}); do ip -n ${name} addr add ${LINK}.$i/24 dev ${there}; done
    ip -n ${name} link set ${there} up; ip netns exec ${name} ${shape(there)}`)
  return { name, [Symbol.dispose]: () => void run(`ip link del ${here}; ip netns del ${name}`) }
}

/** Disposal ends the clients. */
export const startAttack = ({ network, ...attack }: Attack): AsyncDisposable & { isComplete(): boolean } => {
  const node = [process.execPath, fileURLToPath(import.meta.url)]
  const [command = '', ...args] = network ? ['ip', 'netns', 'exec', network.name, ...node] : node
  const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], serialization: 'advanced' })
  child.send({ ...attack, host: network ? `${LINK}.1` : '127.0.0.1', range: network ? LINK : '127.0.1' })
  let isComplete = false
  child.once('message', () => {
    isComplete = true
  })
  return {
    /** Whether every connection is open or was refused. */
    isComplete: () => isComplete,
    async [Symbol.asyncDispose]() {
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    },
  }
}

type Order = Omit<Attack, 'network'> & { readonly host: string; readonly range: string }

const run = async ({ port, host, range, bytes, connections, addresses }: Order): Promise<void> => {
  const open = (i: number): Promise<unknown> => {
    const socket: Socket = connect({ port, host, localAddress: `${range}.${2 + (i % addresses)}` })
    socket.on('error', () => {})
    socket.pause()
    socket.write(bytes)
    return Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => {})
  }
  await Promise.all(Array.from({ length: connections }, (_, i) => open(i)))
  process.send?.('open')
}

if (import.meta.main) {
  process.on('disconnect', () => process.exit())
  process.on('message', order => void run(order as Order))
}
