import { freePort } from '@pool/dev/ports'
import { findProgram, startServerAndWait } from '@pool/dev/server-process'
import type { HttpResponse } from '@pool/test-kit/http1.ts'
import { type BenchRequest, expectStatus, type ResponseError } from '../load/target.ts'
import type { SlotClient } from './lease-client.ts'

const program = findProgram('etcd')

/** What is missing and how to install it; undefined: it is installed. */
export const missingEtcd =
  program === undefined
    ? 'etcd is not installed, the comparison with it is skipped: apt-get install etcd-server'
    : undefined

export interface Etcd extends AsyncDisposable {
  /** Of its JSON gateway. */
  readonly port: number
}

/** A single node with its default settings: it writes each revision durably before it responds. */
export const startEtcd = async (folder: string): Promise<Etcd> => {
  if (program === undefined) throw new Error(missingEtcd)
  const [port, peerPort] = await Promise.all([freePort(), freePort()])
  const clientUrl = `http://127.0.0.1:${port}`
  const peerUrl = `http://127.0.0.1:${peerPort}`
  const stop = await startServerAndWait({
    name: 'etcd',
    folder,
    command: [
      program,
      '--name=bench',
      `--data-dir=${folder}/etcd-${port}`,
      `--listen-client-urls=${clientUrl}`,
      `--advertise-client-urls=${clientUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=bench=${peerUrl}`,
      '--log-level=error',
    ],
    // Without the settings of another etcd in this environment.
    env: {},
    isUp: () =>
      fetch(`${clientUrl}/health`).then(
        ({ ok }) => ok,
        () => false,
      ),
  })
  return { port, [Symbol.asyncDispose]: stop }
}

const toBase64 = (text: string): string => Buffer.from(text).toString('base64')

const post = (path: string, body: object): BenchRequest => ({ method: 'POST', path, body: JSON.stringify(body) })

/** As many bytes as the state of a lease. */
const VALUE = toBase64(
  JSON.stringify({
    holder: 'region-a/controller-0',
    acquiredAt: '2026-01-01T00:00:00.000Z',
    expiresAt: '2026-01-02T00:00:00.000Z',
  }),
)

/** One revision per write of a key, as the witness has one generation per write of a slot. */
export class EtcdClient implements SlotClient {
  readonly slots: number
  readonly #name: string
  readonly #revisions: number[]

  constructor(name: string, slots: number) {
    this.slots = slots
    this.#name = name
    this.#revisions = Array.from({ length: slots }, () => 0)
  }

  /** Linearizable, which is the default. */
  get(slot: number): BenchRequest {
    return post('/v3/kv/range', { key: this.#key(slot) })
  }

  /** A compare-and-set by `mod_revision`. A rejection reads the key in the same transaction, as a 412 shows the lease. */
  put(slot: number): BenchRequest {
    const key = this.#key(slot)
    return post('/v3/kv/txn', {
      compare: [{ key, target: 'MOD', result: 'EQUAL', mod_revision: `${this.#revisions[slot]}` }],
      success: [{ requestPut: { key, value: VALUE } }],
      failure: [{ requestRange: { key } }],
    })
  }

  update(slot: number, response: HttpResponse): number {
    // The header has the revision of the last write of any key: after a put, that is this one.
    const field = this.isGranted(response) ? 'revision' : 'mod_revision'
    const revision = Number(new RegExp(`"${field}":"(\\d+)"`).exec(response.text)?.[1] ?? 0)
    this.#revisions[slot] = revision
    return revision
  }

  checkRead(slot: number, response: HttpResponse): ResponseError {
    const isExpected = response.text.includes(`"mod_revision":"${this.#revisions[slot]}"`)
    return expectStatus(200)(response) ?? (isExpected ? null : `an unexpected key: ${response.text}`)
  }

  isGranted({ status, text }: HttpResponse): boolean {
    return status === 200 && text.includes('"succeeded":true')
  }

  isRejected({ status, text }: HttpResponse): boolean {
    return status === 200 && !text.includes('"succeeded":true')
  }

  #key(slot: number): string {
    return toBase64(`/lease/${this.#name}-${slot}`)
  }
}
