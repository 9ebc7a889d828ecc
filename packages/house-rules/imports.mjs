import * as allocationApi from './allocation-api.mjs'
import * as leaseWitness from './lease-witness.mjs'
import { contract, npm, only, tests } from './only.mjs'

/**
 * Which room may import which: the table of docs/architecture.md as rules of dependency-cruiser. A file that is in no
 * room is itself a breach, so a new file must be given one in the table of its app.
 */

const apps = '^apps/[^/]+/src/'
export const rooms = [allocationApi.rooms, leaseWitness.rooms].flatMap(app => Object.values(app))
/** What biome.json holds to purity. */
export const pure = [allocationApi.rooms.rules, leaseWitness.rooms.rules, contract]
const entries = [allocationApi.rooms.entry, leaseWitness.rooms.entry]
const wiring = [...entries, allocationApi.rooms.wiring]

export default {
  forbidden: [
    ...only('contract-imports-zod-only', contract, [contract, npm('zod')], 'The contract is shared by every client.'),
    ...allocationApi.forbidden,
    ...leaseWitness.forbidden,
    {
      name: 'nobody-imports-main',
      comment: 'Whoever wires everything is at the top.',
      severity: 'error',
      from: { pathNot: tests },
      to: { path: [...entries, '^apps/lease-witness/local/main\\.ts$'] },
    },
    {
      name: 'wiring-is-at-the-top',
      comment: 'Only wiring imports wiring.',
      severity: 'error',
      from: { pathNot: [...wiring, tests] },
      to: { path: wiring },
    },
    {
      name: 'no-app-imports-another',
      comment: 'Apps meet in the contract.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    { name: 'no-cycle', severity: 'error', from: {}, to: { circular: true } },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true, pathNot: '^cloudflare:' } },
    {
      name: 'every-file-has-a-room',
      comment: 'Name the new file in the table of its app in packages/house-rules.',
      severity: 'error',
      from: { path: apps, pathNot: [...rooms, tests] },
      to: {},
    },
    {
      name: 'every-imported-file-has-a-room',
      comment: 'Name the new file in the table of its app in packages/house-rules.',
      severity: 'error',
      from: {},
      to: { path: apps, pathNot: [...rooms, tests, '\\.sql$'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: 'specify',
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}
